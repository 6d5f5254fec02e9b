"""Every code that can be recorded is sorted: into one of six parts, or as the business as it is meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import host
from host.domain.authorization import NO_RULE, RULES
from host.domain.reasons import HANDOVER
from host.evaluation.deviations import (
    ACCEPTED,
    ANSWERS,
    BEHIND,
    ENDS,
    FINDINGS,
    HIDDEN,
    INVENTED,
    PARTED,
    PLANNER,
    REFUSED,
    UNSENT,
    Sorted,
    of_output,
)  # fmt: skip
from host.evaluation.diagnosis import Cause, Label
from host.evaluation.reconcile import Why
from host.handover.agreement import DISAGREEMENTS
from shared_contracts.errors import ERRORS

ALONE = (ACCEPTED, BEHIND, HIDDEN, INVENTED, REFUSED, UNSENT)


def said_in_the_source(name: str, *folders: str) -> Iterator[str]:
    """The codes that such a thing is made with."""
    for folder in folders:
        for path in (Path(host.__file__).parent / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name and node.args:
                    code = node.args[0]
                    if isinstance(code, ast.Constant):
                        yield str(code.value)


def test_whatever_a_planners_output_is_refused_for_is_sorted():
    found = set(said_in_the_source("PlannerFault", "engine", "planner"))
    assert {"no_call", "several_calls", "arguments_invalid"} <= found
    assert found | {rule.reason for rule in RULES} | {NO_RULE.reason} == set(PLANNER)


def test_a_fault_of_a_foreign_adapter_is_of_the_output_whatever_its_code():
    assert of_output("their_own", None) == REFUSED
    assert (of_output("unknown_tool", "create_return"), of_output("unknown_tool", "x")) == (HIDDEN, INVENTED)


def test_whatever_a_call_can_end_with_is_sorted():
    found = set(said_in_the_source("CallError", "engine"))
    assert "not_success" in found
    assert found | set(ERRORS) == set(ANSWERS)


def test_every_end_every_finding_and_every_disagreement_is_sorted():
    assert set(ENDS) == set(HANDOVER)
    assert set(FINDINGS) == set(Why)
    assert set(PARTED) == set(DISAGREEMENTS)


def test_every_label_and_every_cause_is_used_and_every_deviation_is_told_in_a_sentence():
    tables = (PLANNER, ANSWERS, ENDS, FINDINGS, PARTED)
    each: list[Sorted] = [*ALONE, *(one for table in tables for one in table.values() if one is not None)]
    assert {one.label for one in each} == set(Label)
    assert {one.cause for one in each} - {None} == set(Cause)
    assert [one.said for one in each if not one.said.endswith(".") or not one.said[0].isupper()] == []


def test_an_answer_by_the_rules_is_no_deviation():
    assert [code for code in ("not_found", "not_eligible", "quantity_gone", "label_used") if ANSWERS[code]] == []
    assert [reason for reason in ("dangerous_goods", "data_missing", "draft_only", "compensated") if ENDS[reason]] == []
