"""The record: all that can be read afterwards of one workflow, as one closed document.

Invariant: it holds what the database holds, never a planner's words and never the customer's own text. `null`
means that nobody knows yet, not that nothing happened.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AwareDatetime, ConfigDict, Field, model_validator

from shared_contracts.approval import Action, Digest
from shared_contracts.base import Contract


class Status(StrEnum):
    """Where the work as a whole stands; the last two come before an end."""

    COMPLETED = "completed"
    NEEDS_HUMAN = "needs_human"
    STOPPED = "stopped"
    FAILED = "failed"
    RUNNING = "running"
    WAITING = "waiting"


ControlState = Literal[
    "created", "planning", "tool_proposed", "tool_authorized", "tool_running", "observing",
    "completed", "needs_human", "stopped", "failed",
]  # fmt: skip
ExecutionState = Literal[
    "requested", "waiting_for_approval", "running", "succeeded", "verified", "failed", "unknown",
]  # fmt: skip
Actor = Literal["engine", "approver", "timer", "operator"]
HandoverReason = Literal[
    "specification_undecided", "data_missing", "permission", "rule_exception", "external_fault",
]  # fmt: skip
AttemptOutcome = Literal["success", "rejected", "unknown", "cut_off"]
HeldBy = Literal["new_work", "updates", "reads", "parallel"]
EffectOutcome = Literal["succeeded", "rejected", "absent"]


class CustomerMessage(Contract):
    """What the customer is told, per language; derived from the state and verified effects alone."""

    ja: str
    en: str


class Place(Contract):
    """Where both machines stand."""

    control_state: ControlState
    state: str


class SaidCall(Contract):
    """One call in a planner's turn. `tool` null: a name that is none of ours. Of each argument that the tool declares
    its kind and size, such as `text 12`; of others their number; a text in place of all that says how long it was.
    """

    tool: str | None
    arguments: dict[str, str] | str
    undeclared: Annotated[int, Field(ge=0)]


class Said(Contract):
    """What a planner's turn came to, and what was in it: its calls, its texts' lengths, and the digest of both.

    `form` is what was read out of it: `fault` and `nothing` were refused whatever else stood beside them.
    """

    form: Literal["call", "final", "hand_over", "fault", "nothing"]
    calls: tuple[SaidCall, ...]
    texts: tuple[Annotated[int, Field(ge=0)], ...]
    sha256: str | None  # null: it was no JSON


class Turn(Contract):
    """One turn of a planner: the tools that it was shown, the digest of their definitions, and what it gave, masked."""

    offered: tuple[str, ...]
    offered_sha256: str
    said: Said


class Checkpoint(Contract):
    """One move of the two machines; `turn` is the planner's that led to it, null where none did."""

    model_config = ConfigDict(serialize_by_alias=True)

    seq: Annotated[int, Field(ge=1)]
    at: AwareDatetime
    from_: Annotated[Place | None, Field(alias="from")]
    to: Place
    event: str
    actor: Actor
    reason: str
    evidence: tuple[str, ...]
    turn: Turn | None


class CallError(Contract):
    """Why a call or an attempt has no result; `code` and `category` are rows of the error table or the engine's own.

    `details` are the tool server's; a refusal by the rules names its `reason` there.
    """

    code: str
    category: str
    message: str
    details: dict[str, Any]


class Attempt(Contract):
    """One send of the call. `unknown` means that it may have happened; `outcome` is null while it is under way."""

    n: Annotated[int, Field(ge=1)]
    at: AwareDatetime
    outcome: AttemptOutcome | None
    error: CallError | None


class EngineRead(Contract):
    """A read that the engine made by itself for a call; no call of the planner's, and counted apart."""

    purpose: Literal["verification", "reconciliation"]
    tool: str
    at: AwareDatetime
    outcome: AttemptOutcome | None
    error: CallError | None


class CallTimes(Contract):
    """Six different things, none of which says that the call as a whole went well.

    The planner chose tool and arguments; the rules allowed them; the request left; an answer came; it was given
    to the planner; the requested state was seen to be reached.
    """

    proposed: AwareDatetime
    authorized: AwareDatetime | None
    started: AwareDatetime | None
    returned: AwareDatetime | None
    delivered: AwareDatetime | None
    verified: AwareDatetime | None


class Call(Contract):
    """One step: a proposal that became a call, or, with `undoes`, a call of code that undoes that step's effect."""

    step_id: str
    undoes: str | None
    call_id: str
    tool: str
    contract_version: str
    execution_state: ExecutionState
    error: CallError | None
    attempts: tuple[Attempt, ...]
    engine_reads: tuple[EngineRead, ...]
    times: CallTimes
    fingerprint: str


class Effect(Contract):
    """One intent to change something outside. `outcome` null: in flight, or in doubt."""

    name: str
    step_id: str
    attempt: Annotated[int, Field(ge=1)]
    idempotency_key: str
    outcome: EffectOutcome | None
    external_id: str | None
    verified_at: AwareDatetime | None


class Decision(Contract):
    """An authorization or a business decision, with the facts that it can be replayed from."""

    n: Annotated[int, Field(ge=1)]
    subject: Literal["authorization", "business"]
    rule_version: str
    facts: dict[str, Any]
    outcome: str
    reason: str
    at: AwareDatetime


class Approval(Contract):
    """What a person was asked and, once somebody decided, by whom and how; each request stands for itself.

    `version` is the workflow's while it waited, `approval_seconds` how long the person looked.
    """

    version: Annotated[int, Field(ge=1)]
    action: Action
    action_digest: Digest
    requested_at: AwareDatetime
    expires_at: AwareDatetime
    event_id: str | None
    approver: str | None
    decision: Literal["approve", "deny"] | None
    reason: str | None
    decided_at: AwareDatetime | None
    approval_seconds: Annotated[float, Field(ge=0)] | None

    @model_validator(mode="after")
    def _decided_whole_or_not(self) -> Self:
        decided = (self.event_id, self.approver, self.decision, self.reason, self.decided_at, self.approval_seconds)
        if len({value is None for value in decided}) != 1:
            raise ValueError("a decision is known whole or not at all")
        return self


class Compensation(Contract):
    """What was made and has to be undone: whose effect, by whose order, until when, and what came of it.

    `released_by` let it be undone although a stop was engaged.
    """

    n: Annotated[int, Field(ge=1)]
    step_id: str
    ordered_by: str
    reason: str
    ordered_at: AwareDatetime
    due_at: AwareDatetime
    state: Literal["required", "done", "impossible", "overdue"]
    ended_at: AwareDatetime | None
    released_by: str | None
    released_at: AwareDatetime | None


class Act(Contract):
    """What a person did to the case, under which name, and in their own words why.

    `os_user` ran the command, `authz` is the digest of the authorization set that knew the name; null where the name
    was not looked up in one.
    """

    at: AwareDatetime
    actor: str
    os_user: str | None
    authz: str | None
    act: str
    reason: str | None


class Alert(Contract):
    """Somebody, or a planner, reached for what is not theirs, or an effect is not the one that was asked for."""

    code: str
    at: AwareDatetime
    actor: str
    resource: str
    details: dict[str, Any]


class Versions(Contract):
    """The data versions that the workflow is pinned to; null where no move of its kind rests on such a one."""

    order_snapshot: str | None
    policy: str | None
    authz: str

    def told(self) -> dict[str, str]:
        """Name those that it is pinned to."""
        known = {"order snapshot": self.order_snapshot, "policy": self.policy, "authorization": self.authz}
        return {name: version for name, version in known.items() if version is not None}


class Result(Contract):
    """What the business got. What stands beside these two is the kind's own, as `result.<kind>.json` says."""

    model_config = ConfigDict(extra="allow")

    outcome: str
    evidence_refs: tuple[str, ...]


class DraftedCall(Contract):
    """One update that is left to a person, with the only values that its arguments may have in this case.

    `open_arguments` are told by the call before it, or a person's to choose; `needs_approval`: somebody has to agree.
    """

    tool: str
    arguments: dict[str, Any]
    open_arguments: tuple[str, ...]
    needs_approval: bool


class Draft(Contract):
    """What the rules allowed and nobody has done: the case's updates that are left, in their order."""

    calls: Annotated[tuple[DraftedCall, ...], Field(min_length=1)]


class Record(Contract):
    """One workflow. `run_id` is the same identifier under the name that other systems know it by.

    `supersedes` names the case that ended with nothing done and was asked for anew with this one, `superseded_by` the
    one with which this one was. `held_by` names the stop that holds an open case; `parallel`: all is lifted, and it
    waits to be released by parts. `step_count` leaves out what undoes. `review_closed_at`: a person has said why a
    case that was handed over stays as it is. `draft` is there where a person has the case and the rules had allowed
    what comes next.
    """

    workflow_id: UUID
    run_id: UUID
    supersedes: UUID | None
    superseded_by: UUID | None
    kind: str
    release: str
    state: str
    status: Status
    held_by: HeldBy | None
    control_state: ControlState
    version: Annotated[int, Field(ge=1)]
    reason: str
    handover_reason: HandoverReason | None
    review_closed_at: AwareDatetime | None
    customer_message: CustomerMessage
    step_count: Annotated[int, Field(ge=0)]
    checkpoints: tuple[Checkpoint, ...]
    calls: tuple[Call, ...]
    effects: tuple[Effect, ...]
    decisions: tuple[Decision, ...]
    approvals: tuple[Approval, ...]
    compensations: tuple[Compensation, ...]
    acts: tuple[Act, ...]
    alerts: tuple[Alert, ...]
    versions: Versions
    draft: Draft | None
    result: Result | None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if self.run_id != self.workflow_id:
            raise ValueError("run_id and workflow_id are one identifier")
        if self.step_count != sum(call.undoes is None for call in self.calls):
            raise ValueError("step_count is the number of calls, without those that undo")
        return self
