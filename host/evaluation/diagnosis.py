"""`kessai diagnose`: what deviated first in one workflow, and what followed; a closed document.

Invariant: everything in it was recorded by code. No word of a planner or of a customer is repeated, and a cause stands
only where the record bears it out, and does not where the turn that it is about says otherwise.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from shared_contracts.base import Contract
from shared_contracts.record import Said, Status

Count = Annotated[int, Field(ge=0)]
Seq = Annotated[int, Field(ge=1)]


class Label(StrEnum):
    """Which part a deviation belongs to: the one part that is looked at, and mended, first."""

    DECISION_BOUNDARY = "decision_boundary"  # something was reached for that is not permitted
    CANDIDATE_GENERATION = "candidate_generation"  # what the planner gave is no well-formed proposal
    CONNECTION = "connection"  # the call or its answer did not get through
    IDEMPOTENCY = "idempotency"  # one intention, more than one effect or use
    PERSISTENCE = "persistence"  # what was done and what is recorded are not the same
    EXTERNAL_NOTIFICATION = "external_notification"  # all but the notice is there


class Cause(StrEnum):
    """Why something may look done and is not."""

    TOOL_NOT_EXPOSED = "tool_not_exposed"
    VAGUE_DESCRIPTION = "vague_description"
    NOT_CHOSEN = "not_chosen"
    ENGINE_DROPPED_THE_CALL = "engine_dropped_the_call"
    FAILURE_DELIVERED_AS_SUCCESS = "failure_delivered_as_success"
    ACCEPTANCE_READ_AS_COMPLETION = "acceptance_read_as_completion"


class TurnSeen(Contract):
    """The turn of a planner that something came of: the definitions that it was sent, and what it gave, masked."""

    checkpoint: Seq
    definitions: tuple[dict[str, Any], ...]
    definitions_sha256: str
    said: Said


class Deviation(Contract):
    """Where it first went otherwise. `at` null: nobody knows when; `checkpoint`: the move that recorded it.

    `cause` is null where none of them applies, or where nothing that was kept can tell. `cause_known_by`: `turn` where
    what the planner was sent and what it gave show it, `record` where it is inferred from the codes. `evidence` are ids
    of calls, tokens, returns, messages or keys.
    """

    at: AwareDatetime | None
    checkpoint: Seq | None
    step_id: str | None
    code: str
    label: Label
    cause: Cause | None
    cause_known_by: Literal["turn", "record"] | None
    turn: TurnSeen | None
    said: str
    evidence: tuple[str, ...]


class Consequence(Contract):
    """What came after the first deviation; `label` is null for a move of the case, which is no failure of its own."""

    at: AwareDatetime | None
    checkpoint: Seq | None
    step_id: str | None
    code: str
    label: Label | None
    said: str
    evidence: tuple[str, ...]


class Reconciled(Contract):
    """What both sides say of this workflow. `compared` counts its rows, and those of whatever is like what it made."""

    compared: Count
    untracked: tuple[str, ...]
    missing: tuple[str, ...]
    duplicate: tuple[str, ...]


class Diagnosis(Contract):
    """`ended_well`: the business has its answer and nothing deviates; null while it goes on.

    `first_deviation` null: nothing deviates.

    `mended` is what the run itself went on from, as it is meant to: it is told, and is no first deviation.
    """

    workflow_id: UUID
    kind: str
    state: str
    status: Status
    reason: str
    ended_well: bool | None
    said: str
    reconciliation: Reconciled
    first_deviation: Deviation | None
    consequences: tuple[Consequence, ...]
    mended: tuple[Deviation, ...]
