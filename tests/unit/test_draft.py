"""The draft of a case that a person has: what is left, with bound values alone; and when there must be none."""

from __future__ import annotations

import pytest

from host.domain.draft import drafted, steps
from host.domain.reasons import HANDOVER, Handover
from host.workflows.returns import RETURNS
from shared_contracts.record import Draft, DraftedCall
from shared_contracts.tools import TOOLS
from tests.support.fake_tools import FakeTools
from tests.unit.workflow_state import CASE, call, effect, state

ASKED = {"order_id": "A-1", "lines": CASE["lines"], "reason": "changed_mind"}
READ = (
    call(1, "get_order", result=FakeTools().order("A-1")),
    call(2, "check_return_policy", result=FakeTools().policy(ASKED)),
)
MADE = call(3, "create_return", result={"return_id": "R-1"})
TO_ELIGIBLE = ("RECEIVED", "ORDER_VERIFIED", "ELIGIBLE", "NEEDS_REVIEW")
TO_CREATED = (*TO_ELIGIBLE[:3], "RETURN_CREATED", "NEEDS_REVIEW")
RETURN = DraftedCall(tool="create_return", arguments=ASKED, open_arguments=(), needs_approval=False)
NOTICE = DraftedCall(
    tool="send_return_notice", arguments={"order_id": "A-1"}, open_arguments=("return_id",), needs_approval=False
)
BOTH = Draft(calls=(RETURN, NOTICE))
NONE_THERE = {Handover.RULE_EXCEPTION, Handover.DATA_MISSING}
NOT_NOW = {"unknown_effect", "unsettled_elsewhere", "foreign_tenant", "foreign_resource", "foreign_arguments"}


def draft(
    passed=TO_ELIGIBLE,
    reason="draft_only",
    calls=READ,
    effects=(),
    control="needs_human",
    registry=TOOLS,
    business=None,
):
    at = state(business or passed[-1], control, calls=calls, effects=effects, reason=reason)
    return drafted(RETURNS, registry, at, passed)


def test_what_is_left_of_an_eligible_return_is_the_return_and_then_its_notice():
    assert draft() == BOTH


def test_once_the_return_is_there_its_notice_alone_is_left_under_its_number():
    made = (effect(3, "create_return", "succeeded", verified=True),)
    found = draft(TO_CREATED, calls=(*READ, MADE), effects=made)
    known = NOTICE.model_copy(update={"arguments": {"order_id": "A-1", "return_id": "R-1"}, "open_arguments": ()})
    assert found == Draft(calls=(known,))


@pytest.mark.parametrize("passed", [TO_ELIGIBLE[:1], TO_ELIGIBLE[:2], (*TO_ELIGIBLE[:3], "COMPENSATION_REQUIRED")])
def test_nothing_is_drafted_where_work_ended_before_the_rules_allowed_it_or_has_to_be_undone(passed):
    assert draft((*passed, "NEEDS_REVIEW")) is None


@pytest.mark.parametrize("passed", [("RETRY_WAIT",), ("WAITING_APPROVAL",), ("WAITING_APPROVAL", "APPROVED")])
def test_a_wait_on_the_way_does_not_change_whose_turn_it_was(passed):
    assert draft((*TO_ELIGIBLE[:3], *passed, "NEEDS_REVIEW")) == BOTH


@pytest.mark.parametrize("control", ["planning", "tool_proposed", "completed", "stopped"])
def test_only_a_case_that_a_person_has_has_a_draft(control):
    assert draft(control=control, business="ELIGIBLE") is None


def test_a_case_that_failed_has_one_too():
    assert draft(control="failed", reason="planner_exhausted") == BOTH


@pytest.mark.parametrize("reason", sorted(HANDOVER))
def test_a_reason_leaves_a_draft_unless_a_rule_spoke_against_it_or_somebody_may_have_done_it(reason):
    none = HANDOVER[reason] in NONE_THERE or reason in NOT_NOW
    assert (draft(reason=reason) is None) is none


@pytest.mark.parametrize(
    "reason", ["draft_only", "tool_disabled", "tool_unavailable", "not_in_catalogue", "unknown_tool"]
)
def test_however_an_update_was_taken_away_it_is_drafted(reason):
    assert draft(reason=reason) == BOTH


@pytest.mark.parametrize(
    "made",
    [effect(3, "create_return", None), effect(3, "create_return", "succeeded")],
    ids=["in doubt", "unconfirmed"],
)
@pytest.mark.parametrize("passed", [TO_ELIGIBLE, TO_CREATED])
def test_what_may_have_been_done_is_not_drafted_and_nothing_that_follows_it(made, passed):
    assert draft(passed, reason="attempts_exhausted", effects=(made,)) is None


def test_what_was_done_is_not_drafted_again():
    assert draft(effects=(effect(3, "create_return", "succeeded", verified=True),)) is None


@pytest.mark.parametrize("outcome", ["absent", "rejected"])
def test_what_is_proved_not_to_have_happened_is_drafted(outcome):
    assert draft(reason="tool_disabled", effects=(effect(3, "create_return", outcome),)) == BOTH


def test_a_draft_says_where_a_person_has_to_agree_by_the_rules_or_by_the_tool_server():
    high = (READ[0], call(2, "check_return_policy", result=FakeTools(refund=80_000).policy(ASKED)))
    for found in (draft(calls=high), draft(reason="approval_required")):
        assert [one.needs_approval for one in found.calls] == [True, False]


def test_a_tool_without_a_contract_is_drafted_with_all_that_the_run_is_bound_to():
    (made, _) = draft(registry={}).calls
    assert (made.tool, made.arguments, made.open_arguments) == ("create_return", ASKED, ())


def test_the_words_of_planner_and_customer_are_in_no_draft():
    loud = {**READ[1], "call_id": "PLANNER-SAYS", "arguments": {"reason": "PLANNER-SAYS"}}
    at = state("NEEDS_REVIEW", "needs_human", calls=(READ[0], loud), reason="draft_only",
               case_body={**CASE, "message": "CUSTOMER-SAYS"})  # fmt: skip
    assert drafted(RETURNS, TOOLS, at, TO_ELIGIBLE) == BOTH


def test_a_draft_reads_as_one_line_a_step():
    assert steps(None) == ()
    asked = BOTH.model_copy(update={"calls": (RETURN.model_copy(update={"needs_approval": True}), NOTICE)})
    made = 'create_return order_id=A-1 lines=[{"line_id":"1","quantity":1}] reason=changed_mind'
    assert steps(asked) == (
        f"{made}; it needs a person's approval",
        "send_return_notice order_id=A-1 return_id=(still open)",
    )
