"""The whole evaluation as it is run before production, and what is done with reports that were really made."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from host.evaluation.gate import gate
from host.evaluation.metrics import rates
from host.evaluation.place import home_of
from host.evaluation.score import ENDS, FOR_A_PERSON
from shared_contracts.base import parse
from shared_contracts.evaluation_report import EvaluationReport
from shared_contracts.tools import TOOLS
from tests.support.cli import Cli
from tests.support.defects import DEFECTS
from tests.support.evaluating import chosen, copied, evaluate, planted
from tests.support.evaluation_set import CASES

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.xdist_group("whole evaluation")]
SECONDS_MAX = 550  # a minute and a half where nothing else runs


@dataclass(frozen=True)
class Whole:
    """One run of all cases: what it ended with, what it said, what it left, and whom to believe."""

    code: int
    out: str
    file: Path
    keys: Path
    report: EvaluationReport


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """`kessai` with a home that is not there yet."""
    cli = Cli(tmp_path_factory.mktemp("whole") / "home", {})
    yield cli
    assert cli("eval", "drop").code == 0


@pytest.fixture(scope="module")
def whole(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("reports")
    given = ("--concurrency", "8", "--seed", "7", "--contract-tests-first", "--report", str(folder))
    with cli.start("eval", *given) as begun:
        out, err = begun.communicate(timeout=SECONDS_MAX)
    file, keys = folder / "report.json", folder / "seal-keys.json"
    assert file.exists(), err
    shutil.copy(home_of(cli.home) / "keys" / "seal-keys.json", keys)  # which goes with the evaluation's home
    return Whole(begun.returncode, out, file, keys, read(file))


def read(file: Path) -> EvaluationReport:
    return parse(EvaluationReport, json.loads(file.read_text(encoding="utf-8")))


def test_all_120_cases_end_as_the_rules_have_it_and_nothing_is_left_unaccounted_for(whole: Whole):
    entries = whole.report.cases
    assert {one.id: one.problems for one in entries if one.problems} == {}
    assert (whole.code, whole.out.splitlines()[0]) == (0, "passed")
    assert sorted(one.id for one in entries) == sorted(case.id for case in CASES)
    assert len(entries) == 120
    assert {one.got.state for one in entries} <= ENDS
    assert sum(state.ended for state in gate(whole.report).measures.funnel) == 120
    taken_over = [one for one in entries if one.got.state in FOR_A_PERSON]
    assert {one.got.state for one in taken_over} == {"NEEDS_REVIEW", "EXPIRED"}
    assert all(one.got.handover is True for one in taken_over)
    compared = whole.report.compared
    assert (compared.untracked, compared.missing, compared.duplicate) == ((), (), ())
    assert compared.compared > len(entries)
    assert (whole.report.stops, whole.report.stopped) == ((), ())
    undone = rates(entries).compensated
    assert undone.of == undone.n > 0
    assert {one.tool for one in whole.report.contract_tests} == {tool.name for tool in TOOLS.values() if tool.writes}
    assert all(one.passed == one.of for one in whole.report.contract_tests)


def test_a_release_is_recorded_by_the_report_of_a_real_run(cli: Cli, whole: Whole):
    assert cli("up").code == 0
    try:
        said = cli("release", "record", str(whole.file), "--keys", str(whole.keys), "--as", "sato", "--json")
        assert said.code == 0, said.err
        (act,) = said.json()["history"]
    finally:
        assert cli("empty", "--yes").code == 0
    assert (act["act"], act["release"]) == ("record", whole.report.conditions.workflow_release)
    assert act["report_sha256"] == hashlib.sha256(whole.file.read_bytes()).hexdigest()
    assert (act["build"], act["versions"]["seed"]) == (whole.report.build, 7)


def test_a_change_is_judged_by_real_reports_from_before_it_and_after_it(cli: Cli, tmp_path: Path):
    (defect,) = (one for one in DEFECTS if one.name == "what nobody knows the outcome of is sent again")
    code = copied(tmp_path / "code")
    for plant in defect.plants:
        planted(code, plant.file, plant.before, plant.after)
    defective = Cli(cli.home, {"PYTHONPATH": str(code), "PYTHONSAFEPATH": "1"})
    folders = [tmp_path / "bad", tmp_path / "good"]
    for folder, programs in zip(folders, (defective, cli), strict=True):
        folder.mkdir()
        evaluate(programs, folder, chosen(*defect.cases, "missing-order-01"), "--changed", "orchestrator")
    bad, good = (str(folder / "report.json") for folder in folders)

    mended, backwards = cli("eval", "compare", bad, good, "--json"), cli("eval", "compare", good, bad, "--json")
    later = folders[0] / "later.json"  # the same once more, as if it had been run after the good one
    after = json.loads((folders[1] / "report.json").read_text("utf-8"))["made_at"]
    later.write_text(json.dumps(json.loads(Path(bad).read_text("utf-8")) | {"made_at": after}), encoding="utf-8")
    spoiled = cli("eval", "compare", good, str(later), "--json")

    assert (backwards.code, backwards.json()["comparison"]) == (2, None)
    made = mended.json()
    assert (mended.code, made["comparison"]["verdict"], made["changed_component"]) == (0, "fixed", "orchestrator")
    groups = made["comparison"]["groups"]
    assert (groups["failed"], groups["neighbours"], groups["controls"]) == (
        ["midway-fault-05"], ["normal-01"], ["missing-order-01"],
    )  # fmt: skip
    assert made["comparison"]["fixed"] == {"value": 100.0, "of": 1, "n": 1}
    assert made["comparison"]["control_regression"] == {"value": 0.0, "of": 0, "n": 1}
    worse = spoiled.json()["comparison"]
    assert (spoiled.code, worse["verdict"]) == (1, "regression")
    assert [one["id"] for one in worse["worse"]] == ["midway-fault-05"]
