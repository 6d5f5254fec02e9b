"""The business of returns: what is proposed, what arguments may be, and what an answer means."""

from __future__ import annotations

from typing import Any

import pytest

from host.domain.proposals import NeedsHuman, Observation, PlannerFault, PlannerView, ToolCall
from host.domain.workflow import Finding, Seen
from host.workflows.returns import RETURNS
from shared_contracts.digest import digest
from shared_contracts.returns import DECISION_TABLE, RulingOutcome
from shared_contracts.tools import TOOLS
from tests.support.fake_tools import FakeTools
from tests.unit.workflow_state import CASE

REQUEST = {"order_id": "A-1", "lines": [{"line_id": "1", "quantity": 1}], "reason": "changed_mind"}
CREATED = {"return_id": "R-1", "order_id": "A-1", "status": "created"}


def policy(**differs: Any) -> dict[str, Any]:
    tools = FakeTools(facts=differs.pop("facts", {}), line=differs.pop("line", {}))
    return {**tools.policy(REQUEST), **differs}


def view(state: str, *observations: Observation, refusals: int = 0, turn: int = 1) -> PlannerView:
    told = tuple(PlannerFault("tool_not_in_state", "no") for _ in range(refusals))
    return PlannerView("returns", "returns-1", state, turn, dict(CASE), observations, told)


@pytest.mark.parametrize(
    ("state", "tool", "arguments"),
    [
        ("RECEIVED", "get_order", {"order_id": "A-1"}),
        ("ORDER_VERIFIED", "check_return_policy", REQUEST),
        ("ELIGIBLE", "create_return", REQUEST),
        ("APPROVED", "create_return", REQUEST),
        ("RETURN_CREATED", "send_return_notice", {"order_id": "A-1", "return_id": "R-1"}),
    ],
)
def test_each_state_proposes_its_own_call_under_the_id_of_its_turn(state, tool, arguments):
    created = Observation("create_return", "call_3", REQUEST, CREATED, None)
    assert RETURNS.propose(view(state, created, turn=4)) == ToolCall(f"call_{digest(CASE)[:16]}_4", tool, arguments)


def test_a_call_of_another_case_has_another_id():
    other = PlannerView("returns", "returns-1", "RECEIVED", 1, {**CASE, "order_id": "A-2"}, (), ())
    ids = {said.call_id for said in map(RETURNS.propose, (view("RECEIVED"), other)) if isinstance(said, ToolCall)}
    assert len(ids) == 2


@pytest.mark.parametrize("state", ["REJECTED", "COMPLETED", "NEEDS_REVIEW", "RETRY_WAIT", "COMPENSATION_REQUIRED"])
def test_where_nothing_is_to_be_proposed_a_person_is_asked_for(state):
    assert RETURNS.propose(view(state)) == NeedsHuman("planner_needs_human")


def test_a_notice_without_a_verified_return_is_not_proposed():
    failed = Observation("create_return", "call_3", REQUEST, None, "not_success")
    assert RETURNS.propose(view("RETURN_CREATED", failed)) == NeedsHuman("evidence_insufficient")


def test_every_argument_is_bound_and_the_return_only_once_it_is_verified():
    assert RETURNS.bindings(CASE, ()) == REQUEST
    unverified = Seen("create_return", None, "wrong_effect")
    assert "return_id" not in RETURNS.bindings(CASE, (unverified,))
    assert RETURNS.bindings(CASE, (Seen("create_return", CREATED, None),))["return_id"] == "R-1"
    named = {name for tools in RETURNS.tools.values() for tool in tools for name in TOOLS[tool].arguments.model_fields}
    assert named == set(RETURNS.bindings(CASE, (Seen("create_return", CREATED, None),)))


@pytest.mark.parametrize(
    ("seen", "event", "reason"),
    [
        (Seen("get_order", None, "not_found"), "order_not_found", "order_not_found"),
        (Seen("get_order", {"snapshot": "s"}, None), "order_verified", "order_verified"),
        (Seen("check_return_policy", None, "not_found"), "undecidable", "evidence_insufficient"),
        (Seen("create_return", CREATED, None), "return_verified", "return_verified"),
        (Seen("send_return_notice", {"status": "sent"}, None), "notice_verified", "notice_verified"),
    ],
)
def test_an_answer_means_one_event(seen, event, reason):
    finding = RETURNS.interpret(CASE, seen)
    assert isinstance(finding, Finding)
    assert (finding.event, finding.reason) == (event, reason)


@pytest.mark.parametrize("tool", ["create_return", "send_return_notice", "other"])
def test_a_writes_refusal_is_left_to_its_class(tool):
    assert RETURNS.interpret(CASE, Seen(tool, None, "quantity_gone")) is None


@pytest.mark.parametrize("tool", ["get_order", "check_return_policy"])
def test_a_read_that_the_business_refuses_is_not_asked_again_but_goes_to_a_person(tool):
    finding = RETURNS.interpret(CASE, Seen(tool, None, "not_eligible"))
    assert finding is not None
    assert (finding.event, finding.reason) == ("undecidable", "not_eligible")


# reason of the decision table · what differs in the facts · in the line · event
RULINGS: tuple[tuple[str, dict[str, Any], dict[str, Any], str], ...] = (
    ("undecidable", {"approval_threshold": None}, {}, "undecidable"),
    ("not_returnable", {"order_status": "cancelled"}, {}, "ineligible"),
    ("already_returned", {}, {"left": 0}, "ineligible"),
    ("dangerous_goods", {}, {"dangerous": True}, "undecidable"),
    ("final_sale", {}, {"final_sale": True}, "ineligible"),
    ("out_of_period", {}, {"window_ends_at": "2026-07-01T00:00:00Z"}, "ineligible"),
    ("high_value", {"other_returns": {"amount": 50_000, "currency": "JPY"}}, {}, "eligible"),
    ("eligible", {}, {}, "eligible"),
)


@pytest.mark.parametrize(("reason", "facts", "line", "event"), RULINGS)
def test_the_policys_facts_become_the_event_of_the_decision_tables_row(reason, facts, line, event):
    answer = policy(facts=facts, line=line)
    finding = RETURNS.interpret(CASE, Seen("check_return_policy", answer, None))
    assert isinstance(finding, Finding)
    assert (finding.event, finding.reason) == (event, reason)
    assert finding.versions == {"policy": "policy-v12", "order_snapshot": answer["snapshot"]}
    assert finding.rule_version == "policy-v12"
    assert finding.facts is not None
    assert finding.facts["facts"] == answer["facts"]


@pytest.mark.parametrize("reason", ["defective", "wrong_item", "damaged"])
def test_a_final_sale_and_a_late_return_with_a_sellers_fault_go_to_a_person(reason):
    case = {**CASE, "reason": reason}
    for line, expected in (
        ({"final_sale": True}, "final_sale_defect"),
        ({"window_ends_at": None}, "exception_claimed"),
    ):
        answer = policy(facts={"reason": reason}, line=line)
        finding = RETURNS.interpret(case, Seen("check_return_policy", answer, None))
        assert finding is not None
        assert (finding.event, finding.reason) == ("undecidable", expected)


def test_what_is_asked_beyond_a_return_is_out_of_scope():
    finding = RETURNS.interpret({**CASE, "asks": ["refund"]}, Seen("check_return_policy", policy(), None))
    assert finding is not None
    assert (finding.event, finding.reason) == ("out_of_scope", "out_of_scope")


@pytest.mark.parametrize(
    "differs",
    [
        {"line": {"line_id": "2"}},
        {"line": {"requested": 2}},
        {"facts": {"reason": "defective"}},
    ],
)
def test_facts_of_another_request_decide_nothing(differs):
    finding = RETURNS.interpret(CASE, Seen("check_return_policy", policy(**differs), None))
    assert finding == Finding("undecidable", "evidence_insufficient")


def test_only_a_contract_with_a_condition_may_need_an_approval_and_without_facts_it_does():
    assert not RETURNS.needs_approval("", (), CASE)
    assert RETURNS.needs_approval("amount_reaches_threshold", (), CASE)
    low, high = policy(), policy(facts={"refund": {"amount": 50_000, "currency": "JPY"}})
    assert not RETURNS.needs_approval("amount_reaches_threshold", (Seen("check_return_policy", low, None),), CASE)
    assert RETURNS.needs_approval("amount_reaches_threshold", (Seen("check_return_policy", high, None),), CASE)


def test_a_condition_that_the_kind_does_not_know_always_needs_a_person():
    assert RETURNS.needs_approval("amount_exceeds_internal_limit", (Seen("check_return_policy", policy(), None),), CASE)


def test_the_newest_facts_count_and_a_failed_read_is_no_fact():
    low, high = policy(), policy(facts={"refund": {"amount": 50_000, "currency": "JPY"}})
    seen = (Seen("check_return_policy", low, None), Seen("check_return_policy", high, None))
    assert RETURNS.needs_approval("amount_reaches_threshold", seen, CASE)
    lost = (Seen("check_return_policy", low, None), Seen("check_return_policy", None, "no_answer"))
    assert not RETURNS.needs_approval("amount_reaches_threshold", lost, CASE)


def test_every_outcome_of_the_decision_table_is_an_event_of_the_table():
    events = {row.on for row in RETURNS.transitions}
    assert {"eligible", "ineligible", "undecidable", "out_of_scope"} <= events
    assert {row.outcome for row in DECISION_TABLE} == set(RulingOutcome)


def test_what_two_cases_must_not_work_on_at_once_is_each_line_of_the_order():
    case = {**CASE, "lines": [{"line_id": "1", "quantity": 1}, {"line_id": "#2", "quantity": 2}]}
    assert RETURNS.units(case) == ("A-1/1", "A-1/#2")
    assert (RETURNS.resource(case), RETURNS.customer(case)) == ("A-1", "C-1")
