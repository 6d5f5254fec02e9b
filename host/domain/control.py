"""The control machine and the execution states: the same for every workflow kind.

    created → planning → tool_proposed → tool_authorized → tool_running → observing → planning …
    and the ends completed · needs_human · stopped · failed

Waiting (for a person, a timer, the end of a stop) is `tool_proposed`: a wait of the workflow, no state that a
planner can leave. A business move rides on one of these edges; the database knows every legal pair.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Control(StrEnum):
    """How far the engine believes it got."""

    CREATED = "created"
    PLANNING = "planning"
    TOOL_PROPOSED = "tool_proposed"
    TOOL_AUTHORIZED = "tool_authorized"
    TOOL_RUNNING = "tool_running"
    OBSERVING = "observing"
    COMPLETED = "completed"
    NEEDS_HUMAN = "needs_human"
    STOPPED = "stopped"
    FAILED = "failed"


ENDS = frozenset({Control.COMPLETED, Control.NEEDS_HUMAN, Control.STOPPED, Control.FAILED})


class Execution(StrEnum):
    """What is known of one call; written by the engine alone, never from a planner's words."""

    REQUESTED = "requested"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    VERIFIED = "verified"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Actor(StrEnum):
    """Who moves a row."""

    ENGINE = "engine"
    APPROVER = "approver"
    TIMER = "timer"
    OPERATOR = "operator"


class Edge(NamedTuple):
    """One legal move of the control machine."""

    source: Control
    target: Control


_C = Control
STARTED = Edge(_C.CREATED, _C.PLANNING)
PROPOSED = Edge(_C.PLANNING, _C.TOOL_PROPOSED)
NO_PROPOSAL = Edge(_C.PLANNING, _C.PLANNING)
WAITED = Edge(_C.TOOL_PROPOSED, _C.TOOL_PROPOSED)
AUTHORIZED = Edge(_C.TOOL_PROPOSED, _C.TOOL_AUTHORIZED)
REFUSED = Edge(_C.TOOL_PROPOSED, _C.PLANNING)
DISPATCHED = Edge(_C.TOOL_AUTHORIZED, _C.TOOL_RUNNING)
AUTHORITY_LOST = Edge(_C.TOOL_AUTHORIZED, _C.TOOL_PROPOSED)
ANSWERED = Edge(_C.TOOL_RUNNING, _C.OBSERVING)
NEXT_ATTEMPT = Edge(_C.TOOL_RUNNING, _C.TOOL_PROPOSED)
CUT_OFF = Edge(_C.TOOL_RUNNING, _C.PLANNING)
OBSERVED = Edge(_C.OBSERVING, _C.PLANNING)
REOPENED = (Edge(_C.NEEDS_HUMAN, _C.PLANNING), Edge(_C.FAILED, _C.PLANNING))  # an operator's event only

# Edges that the control machine may take while the business state stays, with the event's name.
PLAIN: dict[Edge, str] = {
    STARTED: "started",
    PROPOSED: "proposed",
    NO_PROPOSAL: "no_proposal",
    AUTHORIZED: "authorized",
    REFUSED: "refused",
    DISPATCHED: "dispatched",
    AUTHORITY_LOST: "authority_lost",
    ANSWERED: "answered",
    NEXT_ATTEMPT: "next_attempt",
    CUT_OFF: "cut_off",
    OBSERVED: "observed",
}

# Edges into an end; only a business move into an end rides on them.
INTO_END: dict[Control, tuple[Edge, ...]] = {
    _C.COMPLETED: (Edge(_C.PLANNING, _C.COMPLETED),),
    _C.NEEDS_HUMAN: tuple(
        Edge(source, _C.NEEDS_HUMAN) for source in (_C.PLANNING, _C.TOOL_PROPOSED, _C.TOOL_RUNNING, _C.OBSERVING)
    ),
    _C.STOPPED: (Edge(_C.PLANNING, _C.STOPPED), Edge(_C.TOOL_PROPOSED, _C.STOPPED)),
    _C.FAILED: (Edge(_C.PLANNING, _C.FAILED), Edge(_C.OBSERVING, _C.FAILED)),
}

LEGAL: frozenset[Edge] = frozenset(
    {*PLAIN, WAITED, *REOPENED, *(edge for edges in INTO_END.values() for edge in edges)}
)


class IllegalTransitionError(Exception):
    """A move that the machine does not have: a bug of ours, and nothing was written."""

    def __init__(self, source: str, event: str, target: str) -> None:
        """Keep the move; the message is for a log."""
        super().__init__(f"{source} --{event}--> {target} is no legal move")
        self.source, self.event, self.target = source, event, target
