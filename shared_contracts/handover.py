"""The handover sheet: what the next person needs to know of one case, as one closed document.

Invariant: nothing here was written by a customer or a planner, and nothing names a customer otherwise than by the
shop's own identifiers. Free text stands only where one of the staff wrote it about a stop.
"""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from shared_contracts.approval import Digest
from shared_contracts.base import Contract, Money
from shared_contracts.record import (
    AttemptOutcome,
    CallTimes,
    ControlState,
    Draft,
    EffectOutcome,
    ExecutionState,
    HandoverReason,
    Versions,
)

Count = Annotated[int, Field(ge=0)]
Number = Annotated[int, Field(ge=1)]
StopScope = Literal["new_work", "updates", "reads", "parallel"]


class Why(Contract):
    """Why somebody has to look. `handover_reason` is null where the case did not end in a review."""

    code: str
    handover_reason: HandoverReason | None
    sentence: str
    advice: str


class Possible(Contract):
    """A command that this case can take as it stands, and what it does."""

    command: str
    does: str


class Spent(Contract):
    """How much of a limit the case has used; `limit` null: it has none of its own."""

    what: Literal["calls", "refused_proposals", "recoveries", "active_seconds", "tokens", "cost_micros"]
    used: Annotated[float, Field(ge=0)]
    limit: Annotated[float, Field(ge=0)] | None


class Fault(Contract):
    """What went wrong, by its code; `reason` is the rule that refused it. The words stay in the record."""

    code: str
    category: str
    reason: str | None


class HandedAttempt(Contract):
    """One send of a call. `outcome` null: under way, or cut off where nobody has looked yet."""

    n: Number
    at: AwareDatetime
    outcome: AttemptOutcome | None
    error: Fault | None


class HandedRead(Contract):
    """A read that the engine made by itself for a call."""

    purpose: Literal["verification", "reconciliation"]
    tool: str
    at: AwareDatetime
    outcome: AttemptOutcome | None
    error: Fault | None


class HandedCall(Contract):
    """One step. `call_id` is the planner's own, or its digest where it does not look like an identifier.

    `undoes` is the step whose effect the call undoes.
    """

    step_id: str
    call_id: str
    tool: str
    contract_version: str
    execution_state: ExecutionState
    undoes: str | None
    error: Fault | None
    attempts: tuple[HandedAttempt, ...]
    retry_times: tuple[AwareDatetime, ...]
    engine_reads: tuple[HandedRead, ...]
    times: CallTimes


class Refused(Contract):
    """A proposal that came to nothing; `tool` null: none, or one that does not exist."""

    n: Number
    code: str
    tool: str | None
    call_id: str | None
    at: AwareDatetime


class HandedApproval(Contract):
    """What a person was asked and, once somebody decided, by whom and how."""

    version: Number
    tool: str
    contract_version: str
    amount: Money
    order_version: Number
    policy_version: str
    action_digest: Digest
    requested_at: AwareDatetime
    expires_at: AwareDatetime
    event_id: str | None
    approver: str | None
    decision: Literal["approve", "deny"] | None
    decided_at: AwareDatetime | None
    approval_seconds: Annotated[float, Field(ge=0)] | None


class HandedEffect(Contract):
    """One intent to change something outside. `id_kind` says what `external_id` is, such as `return_id`.

    `mismatch` names the fields in which request, answer and read-back do not agree; `undone_by` is the step that did.
    """

    name: str
    step_id: str
    attempt: Number
    idempotency_key: str
    outcome: EffectOutcome | None
    id_kind: str
    external_id: str | None
    opened_at: AwareDatetime
    closed_at: AwareDatetime | None
    verified_at: AwareDatetime | None
    mismatch: tuple[str, ...]
    units: tuple[str, ...]
    undone_by: str | None


class CompensationOrder(Contract):
    """One order to undo something: whose, until when, who let it go on under a stop, and what came of it."""

    n: Number
    state: Literal["required", "done", "impossible", "overdue"]
    ordered_by: str
    ordered_at: AwareDatetime
    due_at: AwareDatetime
    ended_at: AwareDatetime | None
    released_by: str | None
    released_at: AwareDatetime | None
    steps: tuple[str, ...]


class Compensation(Contract):
    """How far what was done is undone."""

    state: Literal["none", "required", "done", "impossible", "overdue"]
    orders: tuple[CompensationOrder, ...]


class EngagedStop(Contract):
    """A stop that is engaged now; all but its scope null: its row is not there, which reads as stopped."""

    scope: StopScope
    actor: str | None
    reason: str | None
    at: AwareDatetime | None


class StopOperation(Contract):
    """Somebody, or a finding, stopped or released work while this case was open."""

    stop_id: Number
    act: Literal["stop", "resume", "release", "full"]
    scopes: tuple[str, ...]
    actor: str
    reason: str
    cause: str
    of_this_case: bool
    at: AwareDatetime


class Stops(Contract):
    """What is stopped, and what was."""

    engaged: tuple[EngagedStop, ...]
    operations: tuple[StopOperation, ...]


class Outside(Contract):
    """An effect that stands outside, or may, and was not undone."""

    name: str
    step_id: str
    id_kind: str
    external_id: str | None
    verification: Literal["verified", "unverified", "wrong", "in_doubt"]


class OtherCase(Contract):
    """Another open case of the same tenant about the same order. `units` are those that both work on."""

    workflow_id: UUID
    state: str
    reason: str
    units: tuple[str, ...]
    held_back_by_this: bool
    holds_this_back: bool


class Impact(Contract):
    """How far it reaches: what stands outside, on which units, and whom else it concerns."""

    outside: tuple[Outside, ...]
    units: tuple[str, ...]
    other_cases: tuple[OtherCase, ...]
    other_cases_in_all: Count


class Disagreement(Contract):
    """A step at which the history of calls and the ledger of effects part."""

    step_id: str
    what: Literal[
        "sent_without_intent",
        "intent_without_send",
        "verified_without_effect",
        "effect_without_verified_call",
        "failed_with_effect_in_doubt",
    ]


class Act(Contract):
    """What a person did with the case."""

    at: AwareDatetime
    actor: str
    action: str
    result: str


class HandedAlert(Contract):
    """Somebody, or a planner, reached for what is not theirs, or an effect is not the one that was asked for."""

    code: str
    at: AwareDatetime


class Handover(Contract):
    """One case, handed over. `customer` and `resource` are the shop's identifiers of the customer and of the order.

    `disagreements` is empty where every call and every effect tell the same story.
    """

    workflow_id: UUID
    tenant_id: str
    request_id: str
    supersedes: UUID | None
    superseded_by: UUID | None
    kind: str
    release: str
    customer: str
    resource: str
    state: str
    control_state: ControlState
    version: Number
    owner: str
    accepted_at: AwareDatetime
    since: AwareDatetime
    review_closed_at: AwareDatetime | None
    made_at: AwareDatetime
    versions: Versions
    why: Why
    possible: tuple[Possible, ...]
    draft: Draft | None
    spent: tuple[Spent, ...]
    calls: tuple[HandedCall, ...]
    refused: tuple[Refused, ...]
    approvals: tuple[HandedApproval, ...]
    effects: tuple[HandedEffect, ...]
    compensation: Compensation
    stops: Stops
    impact: Impact
    disagreements: tuple[Disagreement, ...]
    acts: tuple[Act, ...]
    alerts: tuple[HandedAlert, ...]
