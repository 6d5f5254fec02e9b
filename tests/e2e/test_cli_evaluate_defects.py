"""One defect at a time in a copy of the programs: the evaluation finds it where it is, and nothing else is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from host.evaluation.codes import PROBLEMS, Code
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
    cli = programs(defect.plants)

    found = evaluate(cli, tmp_path, chosen(*defect.cases))

    problems = found.problems()
    assert set(problems) == {defect.at}
    codes = set(problems[defect.at])
    assert set(defect.codes) <= codes <= {*defect.codes, *defect.beside}
    first, *rows = found.said.out.splitlines()
    assert {(defect.at, code) for code in codes} <= {tuple(row.split()[:2]) for row in rows}
    weights = {code: PROBLEMS[Code(code)] for code in codes}
    severe = {code for code, weight in weights.items() if weight.severe}
    failed = {one.breaks.value for one in weights.values() if one.breaks is not None} | {*defect.broken}
    seen = told(first)
    if "stop_unasked" in defect.refused:  # whether it is lifted before the end is a matter of when it was raised
        seen["the report proves too little"].discard("stop_engaged")
    said = {
        "the report proves too little": {"too_few_cases", *defect.refused},
        "severe, of which one is enough": severe,
        "broken": failed,
        "not as expected": {"1 of the cases"},
    }
    assert seen == {what: which for what, which in said.items() if which}
    decided = cli("eval", "gate", str(tmp_path / "report.json"), "--json").json()
    assert {one["condition"] for one in decided["conditions"] if not one["held"]} == failed
    assert (decided["said"], found.said.code) == (first, 1)


def told(line: str) -> dict[str, set[str]]:
    """Take the gate's first line apart: each reason, and what it names."""
    passed, _, reasons = line.partition(". ")
    assert passed == "not passed"
    parts = (reason.partition(": ") for reason in reasons.split("; "))
    return {what: set(which.split(", ")) for what, _, which in parts}


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
