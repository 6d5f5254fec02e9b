"""`kessai eval` as a user has it: some cases of each kind, and what becomes of a run that is cut short."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from host.evaluation.place import home_of
from shared_contracts.evaluation import FaultKind
from shared_contracts.evaluation_report import FaultEvidence
from tests.support.cli import Cli
from tests.support.evaluating import changed, chosen, evaluate, written

pytestmark = pytest.mark.timeout(240)
DISCONNECTED = "midway-fault-05"  # the notice's answer never comes


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """`kessai` with a home that nobody makes; the evaluation's lies beside it, and is made once."""
    cli = Cli(tmp_path_factory.mktemp("evaluation") / "home", {})
    yield cli
    assert cli("eval", "drop").code == 0
    assert not home_of(cli.home).exists()


def test_cases_of_each_kind_end_as_the_rules_have_it_and_their_faults_are_seen_to_happen(cli: Cli, tmp_path: Path):
    cases = chosen(
        "normal-01", "high-value-01", "high-value-12", "duplicate-01", "duplicate-05", "foreign-order-01",
        DISCONNECTED, "midway-fault-01", "midway-fault-03", "midway-fault-06", "midway-fault-07", "midway-fault-08",
    )  # fmt: skip

    found = evaluate(cli, tmp_path, cases, "--concurrency", "4")

    assert found.problems() == {}
    assert found.said.code == 1  # nothing is wrong but that it is a part
    assert "too_few_cases" in found.said.out.splitlines()[0]
    assert found.report.compared.compared > 0
    assert not found.report.compared.untracked + found.report.compared.missing + found.report.compared.duplicate
    seen = {case.id: case.evidence for case in found.report.cases if case.evidence is not None}
    assert {one.seen for one in seen.values()} == {"wire", "clock", "mail"}
    struck = [case for case in cases if case.fault is not None]
    assert {case.fault.kind for case in struck} == set(FaultKind)
    assert all(seen[case.id].fired == case.fault.times and seen[case.id].details for case in struck)
    assert not cli.home.exists()


def test_a_fault_at_a_request_that_never_comes_is_not_proved(cli: Cli, tmp_path: Path):
    (case,) = chosen(DISCONNECTED)
    fault = {
        "kind": "disconnect",
        "tool": "send_return_notice",
        "nth": 3,
        "times": 1,
        "retries": 0,
        "told_ja": "メール",
    }

    found = evaluate(cli, tmp_path, [changed(case, fault=fault)])

    assert found.problems() == {DISCONNECTED: ["fault_not_proved"]}
    assert found.report.cases[0].evidence == FaultEvidence(seen="wire", fired=0, details=())
    assert found.said.code == 1


def test_what_was_killed_is_taken_over_by_the_next(cli: Cli, tmp_path: Path):
    (case,) = chosen("normal-01")
    working = home_of(cli.home) / "run" / "worker.json"
    working.unlink(missing_ok=True)  # an earlier one's
    with cli.start("eval", "--cases", str(written(tmp_path, [case])), "--report", str(tmp_path / "first")) as begun:
        wait_for(working)
        begun.kill()

    assert evaluate(cli, tmp_path, [case]).problems() == {}
    assert Cli(home_of(cli.home), {}).status()["mode"] == "down"


def test_two_at_once_are_refused_and_the_first_goes_on(cli: Cli, tmp_path: Path):
    (case,) = chosen("normal-01")
    working = home_of(cli.home) / "run" / "worker.json"
    working.unlink(missing_ok=True)  # an earlier one's
    file = str(written(tmp_path, [case]))
    with cli.start("eval", "--cases", file, "--report", str(tmp_path / "first")) as begun:
        wait_for(working)
        second, dropped = cli("eval", "--cases", file, "--report", str(tmp_path / "second")), cli("eval", "drop")
        begun.communicate(timeout=60)

    assert (second.code, dropped.code, begun.returncode) == (15, 15, 1)
    assert "Another evaluation runs" in second.err
    assert {one.name for one in (tmp_path / "first").iterdir()} == {"report.json", "report.html"}


def test_what_was_interrupted_leaves_no_process_and_is_taken_over(cli: Cli, tmp_path: Path):
    (case,) = chosen("normal-01")
    working = home_of(cli.home) / "run" / "worker.json"
    working.unlink(missing_ok=True)  # an earlier one's
    begun = cli.start("eval", "--cases", str(written(tmp_path, [case])), "--report", str(tmp_path / "first"))
    wait_for(working)
    begun.send_signal(signal.SIGINT)

    _, said = begun.communicate(timeout=60)

    assert begun.returncode == 130, said
    assert not (tmp_path / "first" / "report.json").exists()
    assert Cli(home_of(cli.home), {}).status()["mode"] == "down"
    assert evaluate(cli, tmp_path, [case]).problems() == {}


def test_what_cannot_be_run_is_said_before_anything_is_started(cli: Cli, tmp_path: Path):
    (case,) = chosen("normal-01")
    stranger = changed(case, tenant="nobody-jp")

    said = cli("eval", "--cases", str(written(tmp_path, [stranger])), "--report", str(tmp_path / "report"))

    assert said.code == 2
    assert "normal-01" in said.err
    assert cli("eval", "--cases", str(tmp_path / "none")).code == 2
    other = cli.with_settings(KESSAI_POLICY_VERSION="policy-v13")
    assert other("eval", "--cases", str(written(tmp_path, [case])), "--report", str(tmp_path / "other")).code == 2


def wait_for(file: Path) -> None:
    """Until it is there."""
    until = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < until, f"no {file}"
        time.sleep(0.05)
