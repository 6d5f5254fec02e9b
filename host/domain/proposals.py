"""What a planner may say: one proposal, in a closed union. Nothing else it utters is a control signal.

The engine accepts exactly one `PlannerDecision` per turn; whatever a vendor sent that is no decision
becomes a `PlannerFault`, which is recorded, told to the planner and counted, and never executed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A proposal to call one tool. `call_id` pairs it with its result and is unique per workflow."""

    call_id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Final:
    """The planner holds the task for done. A kind that ends by verified effects alone takes no word for it."""

    answer: dict[str, Any]
    evidence_refs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NeedsHuman:
    """The planner hands over; `reason` is a code, not prose."""

    reason: str


PlannerDecision = ToolCall | Final | NeedsHuman


@dataclass(frozen=True, slots=True)
class PlannerFault:
    """Output that is no decision: a stable `code` and a sentence that may be told to the planner."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What one turn took. `cost_micros` is in millionths of the currency that the daily limit is set in."""

    tokens: int
    cost_micros: int


NOTHING_USED = Usage(0, 0)


@dataclass(frozen=True, slots=True)
class Utterance:
    """A turn as it came, before anything was read out of it: its texts, and each call's name and arguments."""

    texts: tuple[str, ...]
    calls: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """One turn of a planner: what it says, and what saying it took. Without its usage nothing is a reply.

    `raw` is what it was read out of; None where nothing was read, because the planner is code and gives `said` itself.
    """

    said: PlannerDecision | PlannerFault
    usage: Usage
    raw: Utterance | None = None


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What a planner sees of a tool: the wire's own name, description and input schema."""

    name: str
    description: str
    input_schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Observation:
    """One answered call as the planner may see it: typed result fields, or an error code."""

    tool: str
    call_id: str
    arguments: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None


@dataclass(frozen=True, slots=True)
class PlannerView:
    """The filtered state: no credential, no key, no tenant, no approval, no budget.

    It is a copy: whatever a planner does to it changes nothing. `turn` counts a workflow's proposals and is never
    the same twice, so that an id made from it is unique.
    """

    kind: str
    release: str
    state: str
    turn: int
    case: dict[str, Any]
    observations: tuple[Observation, ...]
    refusals: tuple[PlannerFault, ...]


class Planner(Protocol):
    """`deterministic` planners may be asked inside a commit; others only between two commits."""

    deterministic: bool

    async def decide(self, state: PlannerView, tools: tuple[ToolDefinition, ...]) -> Reply:
        """Give one proposal for the state, or say what was wrong with the vendor's output."""
