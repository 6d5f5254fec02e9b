"""Every reason for which a case can go to a person has a class, and every class's reason can occur."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from host.domain.authorization import NO_RULE, RULES, Verdict
from host.domain.control import Control
from host.domain.reasons import FROM_PLANNER, HANDOVER, Handover, handover_class, review_end
from shared_contracts.errors import ERRORS
from shared_contracts.returns import DECISION_TABLE, RulingOutcome

ROOT = Path(__file__).parents[2]
SOURCES = [
    *sorted((ROOT / "host" / "engine").glob("*.py")),
    *sorted((ROOT / "host" / "workflows").glob("*.py")),
    ROOT / "host" / "domain" / "authorization.py",
    ROOT / "host" / "domain" / "step.py",
    ROOT / "shared_contracts" / "returns.py",
]
# The place of the reason among the arguments of each function that hands a case over.
REASON_AT = {"review": 1, "_denied": 1}
GIVES_REASONS = {"retry_forbidden", "_review_of"}


def trees() -> Iterator[ast.Module]:
    for source in SOURCES:
        yield ast.parse(source.read_text(encoding="utf-8"))


def texts(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def handed_over() -> set[str]:
    """The literal reasons in every call that hands over, and in every function whose result is one."""
    found: set[str] = set()
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node.func) in REASON_AT:
                place = REASON_AT[_name(node.func)]
                found |= set().union(*(texts(argument) for argument in node.args[place : place + 1]))
            if isinstance(node, ast.FunctionDef) and node.name in GIVES_REASONS:
                returned = (n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None)
                found |= {reason for value in returned for reason in _last(value)}
    return found


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _last(value: ast.expr) -> set[str]:
    """Of a pair of event and reason the reason, of a single reason itself; a condition is no reason."""
    match value:
        case ast.Tuple(elts=[_, reason]):
            return texts(reason)
        case ast.IfExp(body=body, orelse=orelse):
            return _last(body) | _last(orelse)
        case _:
            return texts(value)


def test_every_reason_that_the_engine_writes_has_a_class():
    reasons = handed_over()
    assert {"limit", "unknown_effect", "contract_broken", "retry_suspended", "protocol"} <= reasons
    assert reasons - HANDOVER.keys() - {"unreachable"} == set()


def test_every_denial_every_review_of_the_decision_table_and_every_error_has_a_class():
    denials = {rule.reason for rule in RULES if rule.verdict is Verdict.DENY} | {NO_RULE.reason}
    reviews = {row.reason for row in DECISION_TABLE if row.outcome is RulingOutcome.NEEDS_REVIEW}
    assert denials <= HANDOVER.keys()
    assert reviews <= HANDOVER.keys()
    assert ERRORS.keys() <= HANDOVER.keys()


def test_a_stored_call_that_a_rule_no_longer_allows_has_a_class_too():
    every = {rule.reason for rule in RULES if rule.verdict in {Verdict.DENY, Verdict.REQUIRE_APPROVAL}}
    assert every <= HANDOVER.keys()


def test_every_class_names_a_reason_that_the_code_knows():
    known = set().union(*(texts(tree) for tree in trees())) | ERRORS.keys() | FROM_PLANNER
    assert HANDOVER.keys() - known == set()
    assert set(HANDOVER.values()) == set(Handover)


def test_a_planner_may_give_only_reasons_that_are_a_persons_to_settle():
    assert HANDOVER.keys() >= FROM_PLANNER
    assert {review_end(reason) for reason in FROM_PLANNER} == {Control.NEEDS_HUMAN}


@pytest.mark.parametrize("reason", sorted(HANDOVER))
def test_only_our_or_the_planners_defect_ends_as_failed(reason):
    assert (review_end(reason) is Control.FAILED) == (reason in {"planner_exhausted", "contract_broken"})


def test_a_reason_that_nobody_classed_is_a_bug_that_shows():
    with pytest.raises(KeyError):
        handover_class("because")
