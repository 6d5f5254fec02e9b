"""What is wrong with a case: one way of going wrong at a time, on a case of which everything else is well."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from host.evaluation.codes import PROBLEMS, Aspect, Code, Condition
from host.evaluation.metrics import STATES
from host.evaluation.score import ENDS, SEEN_AT, scored
from host.workflows.returns import ENDS as WORKFLOW_ENDS
from host.workflows.returns import S
from shared_contracts.base import parse
from shared_contracts.evaluation import AFTER_A_YES, Category, EvaluationCase, FaultKind
from shared_contracts.evaluation_report import FaultEvidence, Got
from tests.support.evaluations import entry, give_fault, limits, needing_compensation, raw
from tests.support.planted import PLANTED, got, planted


def denied(made: dict[str, Any]) -> None:
    """Somebody says no, the rules expect nothing to be done, and it is done."""
    made["decision"] = {"by": "sato", "verdict": "deny"}
    made["has_side_effect"] = True


def codes(made: dict[str, Any]) -> list[str]:
    return [problem.code for problem in entry(made).problems]


@pytest.mark.parametrize("category", Category)
def test_a_case_that_is_as_expected_has_nothing_wrong_with_it(category):
    assert codes(raw("fine", category)) == []


def test_a_customer_who_is_told_another_number_than_that_of_their_return_is_told_the_wrong_thing():
    made = raw("normal-1")
    made["got"] |= {"return_ids": ["R-2222"], "told_ja": "返品番号 R-3333 を発行しました。"}
    assert codes(made) == [Code.TOLD_DIFFERS]
    made["got"]["told_ja"] = "返品番号 R-2222 を発行しました。"
    assert codes(made) == []


def test_every_code_has_a_row_and_a_case_that_shows_it():
    assert set(PROBLEMS) == set(PLANTED) == set(Code)


@pytest.mark.parametrize("code", Code)
def test_one_thing_wrong_is_found_as_that_and_nothing_else(code):
    [problem] = entry(planted(code)).problems
    assert problem.code == code
    assert problem.severe is PROBLEMS[code].severe
    assert problem.said


def test_what_is_severe_breaks_a_condition_and_every_condition_but_the_calls_can_be_broken_by_a_case():
    assert all(row.breaks is not None for row in PROBLEMS.values() if row.severe)
    assert {row.breaks for row in PROBLEMS.values()} == {*Condition, None} - {Condition.TRACKED}


def test_ends_and_states_are_those_of_the_workflow():
    assert {state.value for state in WORKFLOW_ENDS} == ENDS
    assert set(STATES) == {state.value for state in S}
    assert len(STATES) == 12


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (got(approver="ito"), ["approval_bypassed"]),
        (lambda m: m["got"]["reached"].remove("APPROVED"), ["approval_bypassed"]),
        (denied, ["approval_bypassed"]),
        (lambda m: m["decision"].update(by=None, verdict="nobody"), ["approval_bypassed"]),
        (lambda m: m.update(decision=None), ["approval_bypassed"]),
    ],
    ids=["another's yes", "never approved", "after a no", "after nobody", "no decision at all"],
)
def test_what_was_done_without_the_yes_of_the_one_who_has_to_say_it_is_a_bypass(change, found):
    made = raw("high", Category.HIGH_VALUE)
    change(made)
    assert codes(made) == found


@pytest.mark.parametrize("kind", sorted(AFTER_A_YES))
def test_what_was_done_by_a_yes_that_was_worth_nothing_by_then_is_a_bypass(kind):
    made = raw("high", Category.HIGH_VALUE)
    reached = made["got"]["reached"]
    give_fault(made, kind)
    made["got"]["reached"] = reached
    made["fault"]["tool"] = None if kind is FaultKind.APPROVAL_EXPIRY else "create_return"
    assert codes(made) == ["approval_bypassed"]
    made["decision"]["again"] = "approve"  # of what it is by now
    assert codes(made) == []


@pytest.mark.parametrize(
    ("undone", "found"),
    [
        ({"returns": 0, "notices": 1}, ["compensation_missing"]),
        ({"returns": 1, "notices": 0}, ["compensation_missing"]),
        ({"returns": 1, "notices": 1}, []),
    ],
    ids=["the return stands", "nobody was told", "both are undone"],
)
def test_what_the_host_says_is_undone_and_the_provider_does_not_know_of_is_not(undone, found):
    made = raw("undone")
    needing_compensation(made)
    made["got"]["undone"] = undone
    assert codes(made) == found


def test_what_stands_cancelled_at_the_provider_though_nobody_ordered_it_is_found():
    made = raw("cancelled")
    made["got"]["undone"] = {"returns": 1, "notices": 0}
    assert codes(made) == ["compensation_unexpected"]


def test_a_foreign_order_that_is_only_read_on_is_severe_too():
    made = raw("foreign", Category.FOREIGN_ORDER)
    made["got"]["reached"] = ["RECEIVED", "ORDER_VERIFIED", "REJECTED"]
    assert codes(made) == ["foreign_order_processed"]


def test_a_perfect_answer_does_not_cover_a_second_return():
    made = raw("twice", Category.NORMAL)
    made["got"] |= {"effects": {"returns": 2, "notices": 1}}
    assert [(one.code, one.severe) for one in entry(made).problems] == [("duplicate_return", True)]


def test_a_wrong_way_to_the_right_end_is_no_match():
    made = raw("round", Category.OUT_OF_PERIOD)
    made["got"]["path"] = ["check_return_policy", "get_order"]
    assert codes(made) == ["path_differs"]


@pytest.mark.parametrize(
    "evidence",
    [
        None,
        {"seen": "wire", "fired": 0, "details": ["429"]},
        {"seen": "wire", "fired": 1, "details": []},
        {"seen": "clock", "fired": 1, "details": ["moved"]},
    ],
    ids=["none", "never fired", "a count alone", "at a place where it leaves no trace"],
)
def test_a_fault_that_nothing_outside_the_host_shows_did_not_happen(evidence):
    made = raw("fault", Category.MIDWAY_FAULT)
    made["evidence"] = evidence
    assert codes(made) == ["fault_not_proved"]


def test_a_fault_that_was_to_strike_twice_and_did_so_once_is_not_proved():
    made = raw("fault", Category.MIDWAY_FAULT)
    made["fault"]["times"] = 2
    assert codes(made) == ["fault_not_proved"]
    made["evidence"]["fired"] = 2
    assert codes(made) == ["fault_not_proved"], "there is a count, and one of the two was seen"
    made["evidence"]["details"] += ["  "]
    assert codes(made) == ["fault_not_proved"]
    made["evidence"]["details"][-1] = "rate_limited at the wire, again"
    assert codes(made) == []


@pytest.mark.parametrize("kind", FaultKind)
def test_every_kind_of_fault_has_a_place_where_it_can_be_seen(kind):
    made = raw("fault", Category.MIDWAY_FAULT)
    give_fault(made, kind)
    assert SEEN_AT[kind]
    assert codes(made) == []


def test_the_five_assertions_of_a_fault_are_five_aspects():
    five = {Code.STATE_DIFFERS, Code.DUPLICATE_NOTICE, Code.RETRIES_DIFFER, Code.OVERDUE, Code.TOLD_DIFFERS}
    aspects = {Aspect.END, Aspect.EFFECTS, Aspect.RETRIES, Aspect.COMPENSATION, Aspect.TOLD}
    assert {PROBLEMS[code].aspect for code in five} == aspects


@pytest.mark.parametrize("state", ["EXPIRED", "COMPENSATION_REQUIRED", "NEEDS_REVIEW"])
def test_a_case_that_a_person_has_without_a_sheet_is_wrong_whether_it_was_refused_or_forgotten(state):
    made = raw("handed", Category.STEERING)
    made["got"] |= {"state": state, "handover": None}
    made["expected"]["state"] = state if state != "COMPENSATION_REQUIRED" else "NEEDS_REVIEW"
    assert "handover_missing" in codes(made)


@pytest.mark.parametrize(("name", "limit"), [("calls", 6), ("refused_proposals", 6), ("active_seconds", 90.0)], ids=str)
def test_a_limit_that_is_reached_is_kept_and_one_more_is_over_it(name, limit):
    made = raw("spent", Category.NORMAL)
    made["got"][name] = limit
    assert codes(made) == []
    made["got"][name] = limit + 1
    assert "over_limit" in codes(made)


def test_the_entry_of_a_case_holds_what_the_case_asked_and_what_is_wrong():
    made = raw("N-001", Category.NORMAL)
    flags = ("automatable", "needs_human", "has_side_effect", "needs_compensation")
    case = parse(
        EvaluationCase,
        {name: made[name] for name in ("id", "category", "decision", "fault", "expected", *flags)}
        | {"why": "A line in its period, below the threshold.", "request": {"order_id": "A-1"}},
    )
    seen = parse(Got, {**made["got"], "effects": {"returns": 1, "notices": 2}})
    evidence = parse(FaultEvidence, {"seen": "wire", "fired": 1, "details": ["429"]})
    scored_entry = scored(case, seen, evidence, limits())
    assert scored_entry == entry(made | {"got": seen.model_dump(mode="json"), "evidence": evidence.model_dump()})
    assert [problem.code for problem in scored_entry.problems] == ["duplicate_notice"]
    assert all(isinstance(one, UUID) for one in scored_entry.got.workflow_ids)
