"""One defect at a time in a copy of the programs: the evaluation finds it where it is, and nothing else is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.defects import DEFECTS, Defect, Plant
from tests.support.defects_of_bounds import BOUNDS
from tests.support.defects_of_consent import CONSENT
from tests.support.evaluating import chosen, copied, evaluate, planted, written

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
ALL = (*DEFECTS, *BOUNDS, *CONSENT)
NAMES = [defect.name.replace(" ", "_") for defect in ALL]


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Callable[[tuple[Plant, ...]], Cli]]:
    """`kessai` of a copy with something planted in it, and a home of its own."""
    begun = list[Cli]()

    def made(plants: tuple[Plant, ...]) -> Cli:
        code = copied(tmp_path / "code")
        for plant in plants:
            planted(code, plant.file, plant.before, plant.after)
        begun.append(Cli(tmp_path / "home", {"PYTHONPATH": str(code), "PYTHONSAFEPATH": "1"}))
        return begun[0]

    yield made
    for cli in begun:
        assert cli("eval", "drop").code == 0


@pytest.mark.parametrize("defect", ALL, ids=NAMES)
def test_a_planted_defect_is_found_where_it_is(programs, defect: Defect, tmp_path: Path):
    found = evaluate(programs(defect.plants), tmp_path, chosen(*defect.cases))

    problems = found.problems()
    assert set(problems) == {defect.at}
    assert set(defect.codes) <= set(problems[defect.at])
    assert defect.said in found.said.out.splitlines()[0]
    assert found.said.code == 1


def test_the_same_cases_without_a_defect_are_red_for_nothing_but_their_count(programs, tmp_path: Path):
    cases = {name for defect in ALL for name in defect.cases}

    found = evaluate(programs(()), tmp_path, chosen(*sorted(cases)))

    assert found.problems() == {}
    assert found.said.out.splitlines()[0].endswith("the report proves too little: too_few_cases")


def test_a_run_under_another_version_than_the_pinned_is_no_report_and_names_the_version(programs, tmp_path: Path):
    pinned = "p ->> 'order_snapshot', p ->> 'policy', p ->> 'authz'"
    other = pinned.replace("p ->> 'policy'", "'policy-v11'")
    defective = programs((Plant("host/store/migrations/0003_commit_steps.sql", pinned, other),))
    cases = str(written(tmp_path, chosen("missing-order-01")))

    said = defective("eval", "--cases", cases, "--report", str(tmp_path / "report"))

    assert said.code == 2
    assert "missing-order-01 ran under other data than the pinned: policy policy-v11" in said.err
    assert not (tmp_path / "report" / "report.json").exists()


def test_a_stop_that_one_case_raises_is_told_and_the_others_are_run_all_the_same(programs, tmp_path: Path):
    asked = "_ruled(number, stated, facts), permitted)"
    wrong = '{**_ruled(number, stated, facts), **({"reason": "other"} if call.details.resource == "A-1107" else {})}'
    defective = programs((Plant("tool_server/tools/returns.py", asked, f"{wrong}, permitted)"),))
    others = ("normal-02", "normal-03", "normal-04", "normal-05", "high-value-01", "missing-order-01")

    found = evaluate(defective, tmp_path, chosen("normal-01", *others), "--concurrency", "2")

    assert set(found.problems()) == {"normal-01"}
    (stop,) = found.report.stops
    stopped_by = next(case for case in found.report.cases if case.id == "normal-01")
    assert stop.workflow_id == stopped_by.got.workflow_ids[0]
    assert (found.said.code, "stop_unasked" in found.said.out.splitlines()[0]) == (1, True)
