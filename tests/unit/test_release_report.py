"""What a release may be recorded by: this program's own evaluation, whole, with each tool tested on its own."""

from __future__ import annotations

from typing import Any

import pytest

from host.commands.exits import CommandError, Exit
from host.commands.release_report import own_of, refuse_anothers
from host.evaluation.anothers import anothers, untested
from host.evaluation.gate import gate
from host.workflows.catalogue import CURRENT
from shared_contracts.base import dump, parse
from shared_contracts.evaluation_report import EvaluationReport
from tests.support.recordable import recordable, with_tests

RETURNS = CURRENT["returns"]
OWN = own_of(RETURNS)
GOOD = dump(recordable())


def changed(**changes: Any) -> EvaluationReport:
    return parse(EvaluationReport, GOOD | changes)


def under(**changes: Any) -> EvaluationReport:
    return changed(conditions=GOOD["conditions"] | changes)


def asking(**changes: Any) -> EvaluationReport:
    """Let one case ask for something else, and let what was seen of it be just that."""
    first = next(one for one in GOOD["cases"] if one["id"] == "normal-01")
    other = first | {
        "expected": first["expected"] | changes,
        "got": first["got"] | {name: changes[name] for name in changes if name in first["got"]},
    }
    return changed(cases=[other if one["id"] == first["id"] else one for one in GOOD["cases"]])


def test_this_programs_own_report_passes_the_gate_and_nothing_of_it_is_anothers():
    report = recordable()
    assert gate(report).said == "passed"
    assert (anothers(report, OWN), untested(report, OWN)) == ((), ())
    refuse_anothers(report, RETURNS)


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (changed(scope="faults"), "it is of a run that no release passes by: faults"),
        (changed(build="0" * 64), "it is of build 000"),
        (under(policy="policy-v11"), "it is of policy policy-v11, and an evaluation is of policy-v12"),
        (under(authz="authz-v8"), "it is of authz authz-v8"),
        (under(order_snapshot="2026-07-31"), "it is of order_snapshot"),
        (under(tools={}), "of other contracts than this program's: check_return_policy, create_return, get_order"),
        (under(tools=GOOD["conditions"]["tools"] | {"create_return": "7"}), "of other contracts: create_return"),
        (under(dataset_sha256="0" * 64), "it is of other cases"),
        (changed(limits=GOOD["limits"] | {"calls": 1000}), "it is of other limits"),
        (changed(cases=GOOD["cases"][1:]), "1 cases ask for something else"),
        (changed(cases=[{**GOOD["cases"][0], "id": "x-01"}, *GOOD["cases"][1:]]), "2 cases ask for something else"),
        (asking(effects={"returns": 2, "notices": 2}), "1 cases ask for something else than this program's: normal-01"),
        (asking(calls_max=6), "1 cases ask for something else"),
    ],
)  # fmt: skip
def test_a_report_of_something_else_is_named_by_what_it_is_of(report: EvaluationReport, said: str):
    told = anothers(report, OWN)
    head, _, tail = said.partition(": ")
    assert any(head in one and tail in one for one in told), told
    with pytest.raises(CommandError) as refused:
        refuse_anothers(report, RETURNS)
    assert refused.value.code is Exit.BAD_INPUT


@pytest.mark.parametrize(
    ("tests", "named"),
    [
        ([], tuple(OWN.updating)),
        (with_tests(OWN)[1:], ("create_return",)),
        ([*with_tests(OWN)[1:], *with_tests(OWN)[1:]], ("create_return",)),
        (with_tests(OWN, passed=1, of=1), ("create_return",)),
        (with_tests(OWN, passed=OWN.tests - 1), ("create_return",)),
        (with_tests(OWN, version="0"), ("create_return",)),
        (with_tests(OWN, build="another"), ("create_return",)),
        (with_tests(OWN, tool="make_return"), ("create_return",)),
    ],
)
def test_without_all_tests_of_every_tool_that_updates_no_release_is_recorded(tests: list[Any], named: tuple[str, ...]):
    report = changed(contract_tests=tests)
    assert untested(report, OWN) == named
    with pytest.raises(CommandError) as refused:
        refuse_anothers(report, RETURNS)
    assert "kessai eval run --contract-tests-first" in str(refused.value.mend)
