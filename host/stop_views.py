"""What `stop` and `resume` write with `--json`, each a closed document with a committed schema."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from shared_contracts.base import Contract


class StopScope(Contract):
    """One of what a stop may reach; `at` null: its row is missing, which reads as stopped."""

    scope: Literal["new_work", "updates", "reads", "parallel"]
    engaged: bool
    actor: str
    reason: str
    at: AwareDatetime | None


class OpenCases(Contract):
    """What had not ended and stood in one state."""

    state: str
    cases: Annotated[int, Field(ge=1)]
    workflow_ids: tuple[UUID, ...]


class EffectUnderWay(Contract):
    """An effect whose intent was committed before: it is finished and recorded."""

    workflow_id: UUID
    state: str
    name: str
    idempotency_key: str


class OutsideToken(Contract):
    """A token of an outside host that was good still: what was issued before goes on until it expires."""

    jti: str
    principal: str
    customer: str
    tool: str | None
    resource: str | None
    issued_by: str
    expires_at: AwareDatetime


class StopView(Contract):
    """`kessai stop`: what is stopped, by whom, and what it met.

    `passed`: the database's processes that did not let go of the lock under which a case begins something. The stop did
    not wait for them; what they had begun before it, they may still commit.
    """

    actor: str
    reason: str
    passed: tuple[int, ...]
    newly: tuple[str, ...]
    scopes: tuple[StopScope, ...]
    open: tuple[OpenCases, ...]
    under_way: tuple[EffectUnderWay, ...]
    outside: tuple[OutsideToken, ...]


Count = Annotated[int, Field(ge=0)]


class EffectCounts(Contract):
    """What is known of effects. `accepted`: unknown, and a named person has closed the review of it."""

    verified: Count = 0
    made_unverified: Count = 0
    rejected: Count = 0
    absent: Count = 0
    unknown: Count = 0
    accepted: Count = 0


class ReconciledState(Contract):
    """How many cases stand in a state, and what is known of their effects."""

    state: str
    cases: Count
    effects: EffectCounts


class Unsettled(Contract):
    """An effect that nobody knows the outcome of."""

    workflow_id: UUID
    state: str
    effect: str
    idempotency_key: str


class Accepted(Contract):
    """An effect that nobody knows the outcome of, and who answers for that."""

    workflow_id: UUID
    effect: str
    by: str | None


class ToUndo(Contract):
    """A case of which something is still to be undone."""

    workflow_id: UUID
    due_at: AwareDatetime
    released_by: str | None


class OutsideWrite(Contract):
    """A write that an outside host's token allowed when everything was stopped: it cannot be looked up from here."""

    jti: str
    tool: str
    resource: str | None
    idempotency_key: str | None
    issued_by: str
    expires_at: AwareDatetime


class ReconciliationView(Contract):
    """What was counted before going on, as it was recorded."""

    reconciliation_id: int
    at: AwareDatetime
    states: tuple[ReconciledState, ...]
    unsettled: tuple[Unsettled, ...]
    accepted: tuple[Accepted, ...]
    to_undo: tuple[ToUndo, ...]
    outside: tuple[OutsideWrite, ...]


class StoppedAgain(Contract):
    """A stop since the look-up began: by somebody, or by what it found in a case."""

    actor: str
    reason: str
    cause: str
    workflow_id: UUID | None


class HeldCases(Contract):
    """How many cases of one state wait until an operator releases them."""

    state: str
    cases: Annotated[int, Field(ge=1)]


class ResumeView(Contract):
    """`kessai resume`. `refused` says why the stop stays; then nothing but the reconciliation was written.

    `next` is the command that comes next; null: work goes on as usual.
    """

    actor: str
    reason: str
    lifted: bool
    refused: tuple[str, ...]
    again: tuple[StoppedAgain, ...]
    reconciliation: ReconciliationView | None
    released: tuple[UUID, ...]
    held: tuple[HeldCases, ...]
    one_at_a_time: bool
    next: str | None
