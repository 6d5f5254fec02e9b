"""The control machine has the edges that were agreed on and no other; an illegal move writes nothing."""

from __future__ import annotations

from itertools import product

import pytest

from host.domain.control import ENDS, INTO_END, LEGAL, PLAIN, REOPENED, Control, Edge, Execution, IllegalTransitionError
from tests.unit.workflow_state import state, step

C = Control
# Written down a second time, by hand, from the description of the machine.
EDGES: dict[Control, set[Control]] = {
    C.CREATED: {C.PLANNING},
    C.PLANNING: {C.TOOL_PROPOSED, C.COMPLETED, C.NEEDS_HUMAN, C.STOPPED, C.FAILED, C.PLANNING},
    C.TOOL_PROPOSED: {C.TOOL_AUTHORIZED, C.PLANNING, C.NEEDS_HUMAN, C.STOPPED, C.TOOL_PROPOSED},
    C.TOOL_AUTHORIZED: {C.TOOL_RUNNING, C.TOOL_PROPOSED},
    C.TOOL_RUNNING: {C.OBSERVING, C.TOOL_PROPOSED, C.PLANNING, C.NEEDS_HUMAN},
    C.OBSERVING: {C.PLANNING, C.NEEDS_HUMAN, C.FAILED},
    C.NEEDS_HUMAN: {C.PLANNING},
    C.FAILED: {C.PLANNING},
    C.COMPLETED: set(),
    C.STOPPED: set(),
}
PAIRS = tuple(Edge(source, target) for source, target in product(Control, Control))
PLACE = {C.COMPLETED: "COMPLETED", C.NEEDS_HUMAN: "NEEDS_REVIEW", C.STOPPED: "EXPIRED", C.FAILED: "NEEDS_REVIEW"}


def agreed(edge: Edge) -> bool:
    return edge.target in EDGES[edge.source]


@pytest.mark.parametrize("edge", PAIRS, ids="-".join)
def test_a_pair_is_legal_exactly_where_the_description_says_so(edge):
    assert (edge in LEGAL) == agreed(edge)


@pytest.mark.parametrize("edge", [edge for edge in PAIRS if not agreed(edge)], ids="-".join)
def test_an_illegal_pair_is_refused_and_leaves_nothing_to_write(edge):
    at = step(state(PLACE.get(edge.source, "RECEIVED"), edge.source.value))

    with pytest.raises(IllegalTransitionError):
        at.go(edge)

    assert at.state.control.control is edge.source
    assert not at.dirty


@pytest.mark.parametrize(
    ("source", "target", "event"),
    [(C.CREATED, C.COMPLETED, "notice_verified"), (C.CREATED, C.NEEDS_HUMAN, "limit")],
)
def test_nothing_ends_before_it_was_planned(source, target, event):
    at = step(state("RETURN_CREATED" if target is C.COMPLETED else "RECEIVED", source.value))

    with pytest.raises(IllegalTransitionError):
        at.end(event, event, target)

    assert not at.dirty


def test_a_proposal_cannot_run_before_it_was_authorised():
    at = step(state(control="tool_proposed"))

    with pytest.raises(IllegalTransitionError):
        at.go(Edge(C.TOOL_PROPOSED, C.TOOL_RUNNING))

    assert not at.dirty


@pytest.mark.parametrize("edge", sorted(PLAIN), ids="-".join)
def test_a_plain_move_is_taken_only_from_where_it_starts(edge):
    other = next(source for source in Control if source is not edge.source and source not in ENDS)
    at = step(state(control=other.value))

    with pytest.raises(IllegalTransitionError):
        at.go(edge)


def test_the_ends_are_the_four_and_only_an_operator_leaves_two_of_them():
    assert set(ENDS) == {C.COMPLETED, C.NEEDS_HUMAN, C.STOPPED, C.FAILED}
    assert {edge for edge in LEGAL if edge.source in ENDS} == set(REOPENED)
    assert {target for target, edges in INTO_END.items() if edges} == set(ENDS)


def test_the_states_of_a_call_are_the_seven():
    assert {state.value for state in Execution} == {
        "requested", "waiting_for_approval", "running", "succeeded", "verified", "failed", "unknown",
    }  # fmt: skip
