"""The table of returns, held against a transcription of its own: nothing missing, nothing that was not agreed on."""

from __future__ import annotations

import pytest

from host.domain.control import ENDS, LEGAL, Actor, Control, Edge
from host.domain.workflow import RESUME, Transition, legal_moves, states
from host.workflows.returns import RETURNS, S

STATES = [
    "RECEIVED",
    "ORDER_VERIFIED",
    "ELIGIBLE",
    "REJECTED",
    "WAITING_APPROVAL",
    "APPROVED",
    "EXPIRED",
    "RETURN_CREATED",
    "COMPLETED",
    "RETRY_WAIT",
    "NEEDS_REVIEW",
    "COMPENSATION_REQUIRED",
]
# from | on | to | by | input version | within
TABLE = """
RECEIVED | order_verified | ORDER_VERIFIED | engine | order_snapshot | 90
RECEIVED | order_not_found | REJECTED | engine | order_snapshot | 90
ORDER_VERIFIED | eligible | ELIGIBLE | engine | policy | 90
ORDER_VERIFIED | ineligible | REJECTED | engine | policy | 90
ELIGIBLE | approval_required | WAITING_APPROVAL | engine | policy, authz | 90
WAITING_APPROVAL | approved | APPROVED | approver | row | 86400
WAITING_APPROVAL | denied | REJECTED | approver | row | 86400
WAITING_APPROVAL | expired | EXPIRED | timer | row | 86400
WAITING_APPROVAL | withdrawn | REJECTED | operator | row | 86400
APPROVED | approval_void | WAITING_APPROVAL | engine | order_snapshot, policy, authz | -
APPROVED | approval_expired | EXPIRED | engine timer | row | 86400
RETRY_WAIT | approval_expired | EXPIRED | timer | row | -
ELIGIBLE APPROVED | return_verified | RETURN_CREATED | engine | contract | 90
RETURN_CREATED | notice_verified | COMPLETED | engine | contract | 90
RECEIVED ORDER_VERIFIED ELIGIBLE | transient | RETRY_WAIT | engine | row | 30.5
APPROVED RETURN_CREATED COMPENSATION_REQUIRED | transient | RETRY_WAIT | engine | row | 30.5
RETRY_WAIT | due | <resume_state> | timer | row | 30.5
ELIGIBLE APPROVED RETURN_CREATED | wrong_effect | COMPENSATION_REQUIRED | engine | contract | -
NEEDS_REVIEW | compensation_ordered | COMPENSATION_REQUIRED | operator | row | -
NEEDS_REVIEW | effect_adopted | RETURN_CREATED | operator | row | -
NEEDS_REVIEW | effect_adopted | COMPLETED | operator | row | -
"""
OPEN = [
    "RECEIVED",
    "ORDER_VERIFIED",
    "ELIGIBLE",
    "WAITING_APPROVAL",
    "APPROVED",
    "RETURN_CREATED",
    "RETRY_WAIT",
    "COMPENSATION_REQUIRED",
]
REVIEW = [
    "limit",
    "attempts_exhausted",
    "unknown_effect",
    "undecidable",
    "out_of_scope",
    "create_rejected",
    "denied",
    "planner_exhausted",
    "planner_needs_human",
]
UNDONE = ["compensated", "not_compensable", "overdue"]
Row = tuple[str, str, str, str, str, float | None]


def agreed() -> set[Row]:
    found: set[Row] = set()
    for line in TABLE.strip().splitlines():
        sources, event, target, actors, reads, within = (cell.strip() for cell in line.split("|"))
        seconds = None if within == "-" else float(within)
        found |= {(s, event, target, a, reads, seconds) for s in sources.split() for a in actors.split()}
    found |= {(source, event, "NEEDS_REVIEW", "engine", "row", 90.0) for source in OPEN for event in REVIEW}
    clocks = ("engine", "timer")
    found |= {("COMPENSATION_REQUIRED", e, "NEEDS_REVIEW", a, "contract", 86400.0) for e in UNDONE for a in clocks}
    return found


def written() -> set[Row]:
    return {
        (str(source), row.on, str(row.target), actor.value, ", ".join(row.reads), row.within_seconds)
        for row in RETURNS.transitions
        for source in row.source
        for actor in row.by
    }


def test_the_table_is_the_agreed_one_to_the_last_row():
    assert written() - agreed() == set()
    assert agreed() - written() == set()


def test_there_are_twelve_states_and_the_table_reaches_each_of_them():
    assert [state.value for state in S] == STATES
    assert set(states(RETURNS)) == set(STATES)
    reached = {RETURNS.initial} | {row.target for row in RETURNS.transitions if row.target != RESUME}
    assert reached == set(STATES)


def test_no_event_means_two_things_to_one_actor_in_one_state_but_the_adoption_of_an_effect():
    meanings: dict[tuple[str, str, Actor], set[str]] = {}
    for row in RETURNS.transitions:
        for source in row.source:
            for actor in row.by:
                meanings.setdefault((source, row.on, actor), set()).add(row.target)
    assert {key[1] for key, targets in meanings.items() if len(targets) > 1} == {"effect_adopted"}


def test_denied_is_the_approvers_no_and_the_engines_hand_over():
    row = RETURNS.transition("WAITING_APPROVAL", "denied", Actor.APPROVER)
    other = RETURNS.transition("WAITING_APPROVAL", "denied", Actor.ENGINE)
    assert isinstance(row, Transition)
    assert isinstance(other, Transition)
    assert (row.target, other.target) == ("REJECTED", "NEEDS_REVIEW")


ENDING = {
    "COMPLETED": {"completed"},
    "REJECTED": {"completed"},
    "EXPIRED": {"stopped"},
    "NEEDS_REVIEW": {"needs_human", "failed"},
}
RIDES = {
    "approval_required": {("planning", "tool_proposed")},
    "approved": {("tool_proposed", "tool_proposed")},
    "approval_void": {("tool_proposed", "tool_proposed")},
    "due": {("tool_proposed", "tool_proposed")},
    "transient": {("tool_running", "tool_proposed")},
    "compensation_ordered": {("needs_human", "planning"), ("failed", "planning")},
}  # fmt: skip


def test_every_legal_checkpoint_is_a_pair_of_the_two_agreed_machines():
    business = {(source, event, target, actor) for source, event, target, actor, *_ in agreed()}
    for move in legal_moves(RETURNS):
        if move.control_from == "":
            assert move == ("", "created", "", "RECEIVED", "received", "engine")
            continue
        assert Edge(Control(move.control_from), Control(move.control_to)) in LEGAL
        if move.business_from == move.business_to:
            assert Control(move.control_to) not in ENDS, move
            continue
        event = (move.business_from, move.event)
        assert (*event, move.business_to, move.actor) in business or (*event, RESUME, move.actor) in business, move


def test_a_business_move_rides_only_on_the_edges_that_were_agreed_for_it():
    for move in legal_moves(RETURNS):
        if move.business_from == move.business_to or move.control_from == "":
            continue
        edge = (move.control_from, move.control_to)
        if move.business_to in ENDING:
            assert move.control_to in ENDING[move.business_to], move
        elif move.event == "effect_adopted":
            assert edge in {("needs_human", "planning"), ("failed", "planning")}, move
        else:
            assert edge in RIDES.get(move.event, {("observing", "planning")}), move


def test_whoever_is_no_engine_leaves_the_business_state_alone_only_to_take_an_ended_case_up_again():
    own = [m for m in legal_moves(RETURNS) if m.actor != "engine" and m.business_from == m.business_to]
    assert {(m.event, m.business_from, m.control_from, m.actor) for m in own} == {
        ("reopened", "NEEDS_REVIEW", "needs_human", "operator"),
        ("reopened", "NEEDS_REVIEW", "failed", "operator"),
    }


def test_a_denial_and_a_withdrawal_can_end_a_case_that_waits_for_approval():
    moves = legal_moves(RETURNS)
    given_back = ("tool_proposed", "planning", "WAITING_APPROVAL", "WAITING_APPROVAL", "refused", "engine")
    assert given_back in moves
    for event, actor in (("denied", "approver"), ("withdrawn", "operator")):
        assert ("planning", "completed", "WAITING_APPROVAL", "REJECTED", event, actor) in moves


def test_a_retry_returns_to_each_state_that_can_be_left_by_one_and_to_no_other():
    back = {m.business_to for m in legal_moves(RETURNS) if m.event == "due"}
    left = {m.business_from for m in legal_moves(RETURNS) if m.event == "transient"}
    assert back == left


@pytest.mark.parametrize(
    ("state", "tools"),
    [
        ("RECEIVED", {"get_order"}),
        ("ORDER_VERIFIED", {"check_return_policy"}),
        ("ELIGIBLE", {"create_return"}),
        ("APPROVED", {"create_return"}),
        ("RETURN_CREATED", {"send_return_notice"}),
        *((state, set()) for state in STATES if state in {"WAITING_APPROVAL", "RETRY_WAIT", "COMPENSATION_REQUIRED"}),
        *((state, set()) for state in ENDING),
    ],
)
def test_each_state_has_exactly_its_own_tools(state, tools):
    assert set(RETURNS.tools.get(state, ())) == tools


def test_every_state_has_somebody_who_answers_for_it():
    assert set(RETURNS.owners) == set(STATES)
    assert {state: {end.value for end in ends} for state, ends in RETURNS.ends.items()} == ENDING


def test_the_hard_limits_are_the_agreed_numbers():
    limits = RETURNS.limits
    assert (limits.calls, limits.calls_per_tool, limits.active_seconds) == (6, 2, 90.0)
    assert limits.tokens == 100_000
    assert (limits.refusals_in_a_row, limits.refusals, limits.recoveries) == (3, 6, 20)
    assert (limits.engine_reads_per_send, limits.repeats) == (3, 1)
