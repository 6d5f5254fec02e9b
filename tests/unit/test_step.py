"""A durable step: each move is checked at once, and one object tells all that one statement writes."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.domain.authorization import Decision, Facts, Verdict
from host.domain.control import (
    ANSWERED,
    AUTHORIZED,
    NEXT_ATTEMPT,
    OBSERVED,
    PROPOSED,
    STARTED,
    WAITED,
    Actor,
    Control,
    Execution,
    IllegalTransitionError,
)
from host.domain.kept import JSON_BYTES_MAX
from host.domain.proposals import PlannerFault, ToolCall
from host.domain.state import NOT_COUNTED
from host.domain.step import key_of
from host.domain.wait import Wait
from shared_contracts.tools import TOOLS
from tests.unit.workflow_state import MOVES, WORKFLOW_ID, attempt, call, effect, state, step

ORDER = ToolCall("c-1", "get_order", {"order_id": "A-1"})
CREATE = ToolCall("c-3", "create_return", {"order_id": "A-1", "lines": [], "reason": "other"})
ALLOWED = Decision(Verdict.ALLOW, "read_allowed")
FACTS = Facts("get_order", *([True] * (len(fields(Facts)) - 1)))


def written(at, table=None, wait=None):
    """What a commit would write, without the workflow that every row names; of one table, its only row."""
    tables = {
        name: [{key: value for key, value in row.items() if key != "workflow_id"} for row in rows]
        for name, rows in at.rows("me", 15.0, wait).items()
    }
    if table is None:
        return tables
    (row,) = tables[table]
    return row


def test_a_call_from_proposal_to_dispatch_is_five_checkpoints_and_one_object():
    at = step(state(control="created"))
    at.go(STARTED)
    number = at.decided(FACTS, ALLOWED)
    at.open_call(ORDER, TOOLS["get_order"], Execution.REQUESTED)
    at.go(PROPOSED)
    at.go(AUTHORIZED)
    at.dispatch(TOOLS["get_order"], "jti-1", number, None)

    names = {number: (move.control_to, move.event) for move, number in MOVES.items()}
    assert [(row["seq"], *names[row["move_id"]]) for row in written(at)["checkpoints"]] == [
        (2, "planning", "started"),
        (3, "tool_proposed", "proposed"),
        (4, "tool_authorized", "authorized"),
        (5, "tool_running", "dispatched"),
    ]
    assert written(at, "calls_opened")["execution_state"] == "running"
    assert written(at, "calls_opened")["stamps"] == ["authorized", "started"]
    assert written(at, "attempts_opened") == {
        "step": 1, "n": 1, "purpose": "call", "tool": "get_order", "jti": "jti-1",
    }  # fmt: skip
    assert "effects_opened" not in written(at)
    assert written(at, "workflows")["control_state"] == "tool_running"
    assert at.state.trace.seq == 5


def test_a_write_opens_its_intent_under_the_key_of_the_business_step_and_never_of_the_call():
    at = step(state("ELIGIBLE", "tool_proposed", calls=(call(1, "create_return", "requested"),)))
    at.go(AUTHORIZED)
    at.dispatch(TOOLS["create_return"], "jti", at.decided(FACTS, ALLOWED), None)

    intent = written(at, "effects_opened")
    assert intent["idempotency_key"] == key_of(WORKFLOW_ID, "create_return") == f"{WORKFLOW_ID}:create_return"
    assert (intent["attempt"], intent["decision_n"]) == (1, 1)
    assert intent["units"] == ["A-1/1"]
    assert written(at, "contests") == {"tenant_id": "acme-jp", "units": ["A-1/1"], "writes": True}


def test_a_resend_has_the_same_key_and_the_next_number():
    sent = attempt(1, 1, "call", "rate_limited")
    absent = effect(1, "create_return", "absent")
    held = state(
        "ELIGIBLE", "tool_proposed", calls=(call(1, "create_return", "requested"),), attempts=(sent,), effects=(absent,)
    )
    at = step(held)
    at.go(AUTHORIZED)
    at.dispatch(TOOLS["create_return"], "jti", at.decided(FACTS, ALLOWED), None)

    intent = written(at, "effects_opened")
    assert (intent["attempt"], intent["idempotency_key"]) == (2, f"{WORKFLOW_ID}:create_return")


@pytest.mark.parametrize(
    ("business", "event", "actor"),
    [
        ("RECEIVED", "eligible", Actor.ENGINE),
        ("WAITING_APPROVAL", "approved", Actor.ENGINE),
        ("WAITING_APPROVAL", "expired", Actor.ENGINE),
        ("ELIGIBLE", "approved", Actor.APPROVER),
        ("COMPLETED", "transient", Actor.ENGINE),
        ("NEEDS_REVIEW", "effect_adopted", Actor.ENGINE),
    ],
)
def test_a_business_move_that_the_table_does_not_have_is_refused_and_writes_nothing(business, event, actor):
    at = step(state(business, "observing"))
    with pytest.raises(IllegalTransitionError):
        at.business(event, OBSERVED, event, actor)
    assert not at.dirty
    assert at.state.task.state == business


def test_a_legal_move_on_a_control_edge_that_does_not_carry_it_is_refused():
    at = step(state("ELIGIBLE", "planning"))
    with pytest.raises(IllegalTransitionError):
        at.business("return_verified", PROPOSED, "return_verified")
    assert not at.dirty


def test_a_retry_keeps_the_state_that_it_left_and_gives_it_back():
    running = step(state("ELIGIBLE", "tool_running", calls=(call(1, "create_return", "running"),)))
    running.business("transient", NEXT_ATTEMPT, "rate_limited")
    assert written(running, "workflows")["resume_state"] == "ELIGIBLE"
    assert running.state.task.state == "RETRY_WAIT"

    running.business("due", WAITED, "due", Actor.TIMER)
    assert running.state.task.state == "ELIGIBLE"
    assert written(running, "workflows")["resume_state"] is None


def test_an_end_carries_its_audit_row_and_its_outbox_row_in_the_same_object():
    at = step(state("RETURN_CREATED", "planning", effects=(effect(3, "create_return", "succeeded", verified=True),)))
    at.end("notice_verified", "notice_verified", Control.COMPLETED)

    told = written(at, "outbox")
    assert (told["seq"], told["topic"]) == (at.state.trace.seq, "returns.completed")
    assert told["payload"]["effects"] == {"create_return": "id-create_return"}
    assert written(at, "audit")["action"] == "workflow_ended"
    workflow = written(at, "workflows", Wait("ended", None))
    assert workflow["release"] is True
    assert workflow["wake_after"] is None


def test_a_fork_is_written_without_what_came_after_it():
    at = step(state(control="planning"))
    at.open_call(ORDER, TOOLS["get_order"], Execution.REQUESTED)
    at.go(PROPOSED)
    before = at.fork()
    at.go(AUTHORIZED)
    at.dispatch(TOOLS["get_order"], "jti", at.decided(FACTS, ALLOWED), None)

    assert written(before, "calls_opened")["execution_state"] == "requested"
    assert written(before, "calls_opened")["stamps"] == []
    assert written(before, "checkpoints")["seq"] == 2
    assert "attempts_opened" not in written(before)


def test_only_one_request_of_a_call_stands_open_and_its_answer_closes_that_one():
    held = state(
        "RECEIVED", "tool_running", calls=(call(1, "get_order", "running"),), attempts=(attempt(1, 1, "call", None),)
    )
    at = step(held)
    at.close_attempt("success")
    at.close_attempt("success")
    assert written(at, "attempts_closed") == {"step": 1, "n": 1, "outcome": "success", "error": None}


@pytest.mark.parametrize("code", sorted(NOT_COUNTED))
def test_a_send_that_was_cut_off_or_never_left_is_no_call_against_the_limits(code):
    sent = (attempt(1, 1, "call", code), attempt(1, 2, "call", "success"), attempt(1, 3, "verification", code))
    at = state(calls=(call(1, "get_order"),), attempts=sent)
    assert (at.calls_made(), at.calls_made_of("get_order"), at.calls_made_of("create_return")) == (1, 1, 0)
    assert at.evidence.calls[0].engine_reads("verification") == 0
    assert at.evidence.calls[0].sends() == 2


def test_a_planner_sees_no_result_of_a_write_before_it_was_verified():
    calls = (
        call(1, "create_return", "succeeded", result={"return_id": "R-1"}),
        call(2, "get_order", "failed", error={"code": "not_found"}),
    )
    assert [(seen.tool, seen.result, seen.error) for seen in state(calls=calls).evidence.seen()] == [
        ("get_order", None, "not_found")
    ]


def test_an_effect_counts_as_verified_only_where_the_ledger_says_so():
    open_one = effect(3, "create_return", "succeeded")
    assert state(effects=(open_one,)).evidence.verified_ids() == {}
    assert state(effects=(open_one,)).effect_of("create_return") is not None
    assert state(effects=(effect(3, "create_return", "absent"),)).effect_of("create_return") is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=8,
)


@given(st.text(max_size=1200), st.text(max_size=1200), st.text(max_size=1200), ANYTHING)
def test_whatever_a_planner_says_can_be_written_down(code, message, name, arguments):
    at = step(state())
    at.refuse(PlannerFault(code, message), ToolCall(name, name, arguments))

    row = written(at, "refusals")
    text = json.dumps(row, allow_nan=False)
    assert "\\u0000" not in text
    for value in (row["code"], row["message"], row["call_id"], row["tool"]):
        assert value.encode("utf-8") if value else True
    assert at.state.control.refusals_in_a_row == 1


def test_what_is_out_of_proportion_is_left_out_whole():
    at = step(state())
    at.refuse(PlannerFault("arguments_invalid", "x" * 9999), ToolCall("c", "get_order", {"x": "y" * JSON_BYTES_MAX}))
    row = written(at, "refusals")
    assert row["arguments"] is None
    assert len(row["message"]) == 500


def test_refusals_are_numbered_on_and_a_taken_proposal_ends_only_the_row_of_them():
    at = step(state(refusals=({"code": "no_call", "message": "-"},), refusals_in_a_row=1))
    at.refuse(PlannerFault("no_call", "-"))
    assert written(at, "refusals")["n"] == 2
    at.open_call(ORDER, TOOLS["get_order"], Execution.REQUESTED)
    assert at.state.control.refusals_in_a_row == 0
    assert len(at.state.control.refusals) == 2


def test_an_answer_without_a_call_in_hand_is_a_bug_that_shows():
    at = step(state(control="planning"))
    for action in (lambda: at.open_attempt("call", "get_order", "j"), lambda: at.mark_call(Execution.FAILED)):
        with pytest.raises(IllegalTransitionError):
            action()
    with pytest.raises(IllegalTransitionError):
        at.go(ANSWERED)


def test_nobody_writes_a_layer_past_the_step():
    at = state()
    for layer, name in (
        (at.task, "state"),
        (at.control, "recoveries"),
        (at.trace, "version"),
        (at.evidence, "calls"),
        (at, "task"),
    ):
        with pytest.raises(FrozenInstanceError):
            setattr(layer, name, None)
