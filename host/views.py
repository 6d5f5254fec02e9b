"""What the reading commands write with `--json`, each a closed document with a committed schema."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from host.domain.suitability import Condition
from host.stop_views import HeldCases, StopScope
from shared_contracts.approval import Action
from shared_contracts.base import Contract, Money
from shared_contracts.contract import Risk, Scope
from shared_contracts.form import ToolForm
from shared_contracts.record import ControlState, EffectOutcome, ExecutionState, HandoverReason, HeldBy, Status

Share = Annotated[float, Field(ge=0)]


class ListedEffect(Contract):
    """What was done outside, as far as it is known."""

    name: str
    outcome: EffectOutcome | None
    external_id: str | None
    verified: bool


class ListedWorkflow(Contract):
    """One line of `kessai list`. `effects` and the codes of `alerts` stand in the exception queue alone.

    `held_by` names the stop that holds an open case; `parallel`: all is lifted, and it waits to be released by parts.
    `review_closed_at`: a person has closed its review, and it stays as it is.
    """

    workflow_id: UUID
    kind: str
    tenant_id: str
    resource: str
    state: str
    status: Status
    held_by: HeldBy | None
    control_state: ControlState
    reason: str
    handover_reason: HandoverReason | None
    review_closed_at: AwareDatetime | None
    created_at: AwareDatetime
    updated_at: AwareDatetime
    age_seconds: Share
    effects: tuple[ListedEffect, ...] | None
    alerts: tuple[str, ...] | None


class BaselineView(Contract):
    """`kessai baseline`: what the case comes to from structured fields alone, with a draft that nobody has sent."""

    kind: str
    resource: str
    decision: str
    missing: tuple[str, ...]
    rule_version: str | None
    notification: dict[str, str] | None
    evidence_refs: tuple[str, ...]


class ReasonCount(Contract):
    """How many cases of the exception queue have this reason."""

    reason: str
    cases: Annotated[int, Field(ge=1)]


class ClassCount(Contract):
    """How many cases of the exception queue are of this class; `reasons` are the most frequent first."""

    handover_reason: HandoverReason
    cases: Annotated[int, Field(ge=1)]
    reasons: tuple[ReasonCount, ...]


class WorkflowList(Contract):
    """`kessai list`. `next_before` continues it with --before; null is the end.

    `classes` count the whole exception queue, the most frequent first; null in any other list.
    """

    classes: tuple[ClassCount, ...] | None
    workflows: tuple[ListedWorkflow, ...]
    next_before: UUID | None


class ExternalTask(Contract):
    """What an outside host's token was issued for; the tool server's log has its calls under `jti`."""

    task_id: str
    jti: str
    tenant_id: str
    principal: str
    customer: str
    scopes: tuple[str, ...]
    tool: str | None
    resource: str | None
    idempotency_key: str | None
    issued_by: str
    issued_at: AwareDatetime
    expires_at: AwareDatetime
    expired: bool


class TokenList(Contract):
    """`kessai token list`, the newest first. The tokens themselves are kept nowhere."""

    tokens: tuple[ExternalTask, ...]


class ApproverView(Contract):
    """An approver of the authorization set, or a key that was trusted once; `limit` null: no right to decide."""

    name: str
    tenant_id: str | None
    limit: Money | None
    kid: str | None
    added_at: AwareDatetime | None
    added_by: str | None
    revoked_at: AwareDatetime | None
    revoked_by: str | None


class ApproverList(Contract):
    """`kessai approver list`: whose decisions the host takes. The tool server has a list of its own."""

    approvers: tuple[ApproverView, ...]


class PlannedEffect(Contract):
    """What a yes leads to; whether, with what, until how long after and under which conditions it can be undone."""

    tool: str
    summary: str
    risk: Risk
    undone_with: str | None
    undone_within_hours: int | None
    undone_if: tuple[str, ...]


class ApprovalView(Contract):
    """What an approver sees, read from the database: the order, the rules, the amount, the effects, the way back."""

    workflow_id: UUID
    version: Annotated[int, Field(ge=1)]
    requester: str
    request_id: str
    action: Action
    effects: tuple[PlannedEffect, ...]
    requested_at: AwareDatetime
    expires_at: AwareDatetime
    action_digest: str


class DecisionTaken(Contract):
    """`kessai approve` and `deny`: what was signed and recorded. The signature itself stays in the database."""

    workflow_id: UUID
    version: Annotated[int, Field(ge=1)]
    event_id: str
    approver: str
    decision: Literal["approve", "deny"]
    reason: str
    action_digest: str
    requested_at: AwareDatetime
    decided_at: AwareDatetime
    expires_at: AwareDatetime
    approval_seconds: Share


CompensationState = Literal["none", "required", "done", "impossible", "overdue"]


class LedgerEntry(Contract):
    """One call as the execution ledger exports it: who, what, under which version and key, with what effect."""

    workflow_id: UUID
    step_id: str
    call_id: str
    tenant_id: str
    subject: str
    tool: str
    contract_version: str
    arguments: tuple[str, ...]
    fingerprint: str
    execution_state: ExecutionState
    error: str | None
    evidence_ref: str | None
    latency_ms: Share | None
    attempts: Annotated[int, Field(ge=0)]
    retry_times: tuple[AwareDatetime, ...]
    jtis: tuple[str, ...]
    idempotency_key: str | None
    effect_outcome: EffectOutcome | None
    external_id: str | None
    compensation_state: CompensationState
    proposed_at: AwareDatetime
    started_at: AwareDatetime | None
    verified_at: AwareDatetime | None


class Ledger(Contract):
    """`kessai ledger`, newest workflow first."""

    calls: tuple[LedgerEntry, ...]


class Answer(Contract):
    """One question about a run; `details` are facts of its record, one per line."""

    question: str
    answer: str
    details: tuple[str, ...]


class Explanation(Contract):
    """`kessai explain`. The last two lists are filled with --all."""

    workflow_id: UUID
    closing: tuple[Answer, ...]
    incident: tuple[Answer, ...]
    trace: tuple[Answer, ...]


class StateRow(Contract):
    """One state of the sheet: how it is entered, what may be called in it, whether it ends, who answers for it."""

    state: str
    group: Literal["begin", "work", "wait", "end", "exception"]
    entry: tuple[str, ...]
    allowed_tools: tuple[str, ...]
    terminal: bool
    owner: str


class StateSheet(Contract):
    """The states of one workflow kind's release."""

    kind: str
    release: str
    states: tuple[StateRow, ...]


class StateSheets(Contract):
    """`kessai states`."""

    kinds: tuple[StateSheet, ...]


class ChecklistItem(Contract):
    """One item that a write has to meet before it is released."""

    item: str
    passed: bool


class ToolRow(Contract):
    """One tool: its form, what the form lacks, whether a planner may be shown it, and the write's checklist."""

    name: str
    scope: Scope
    risk: Risk
    offered: bool
    form: ToolForm
    missing: tuple[str, ...]
    checklist: tuple[ChecklistItem, ...]


class Catalogue(Contract):
    """`kessai tools`."""

    tools: tuple[ToolRow, ...]


class PartView(Contract):
    """One process of this machine's stack."""

    name: str
    state: Literal["running", "not_ready", "died", "stopped"]
    pid: int | None
    port: int | None
    log: str


class FailingCondition(Contract):
    """One of the conditions for acting that a kind fails: what it means, and a sentence for each thing missing."""

    condition: Condition
    meaning: str
    missing: tuple[str, ...]


class KindView(Contract):
    """How a kind is worked on: `full`, or only read and drafted, and then why."""

    kind: str
    release: str
    mode: Literal["full", "read_and_draft"]
    failing: tuple[FailingCondition, ...]


class StackView(Contract):
    """`kessai status`. `elsewhere` names the variables that send other commands to another place than this home.

    `kinds` are those of this program under the authorization set that is named now; where that set cannot be used
    there are none, and `kinds_unknown` says why. `stops` and `held` are read where the database runs; `stops_unknown`
    says why they could not be.
    """

    home: str
    mode: Literal["down", "temporary", "up"]
    why: str
    well: bool
    elsewhere: str | None
    parts: tuple[PartView, ...]
    kinds: tuple[KindView, ...]
    kinds_unknown: str | None
    stops: tuple[StopScope, ...]
    held: tuple[HeldCases, ...]
    stops_unknown: str | None


class DumpView(Contract):
    """One database of a backup."""

    file: str
    bytes: int
    sha256: str
    schema_versions: tuple[str, ...]


class BackupView(Contract):
    """`kessai backup`: what was written, and where."""

    directory: str
    made_at: AwareDatetime
    postgresql: str
    dumps: tuple[DumpView, ...]


class RestoreView(Contract):
    """`kessai restore`: the home that was made, of a backup of which moment, and what is stopped in it."""

    home: str
    directory: str
    made_at: AwareDatetime
    stopped: tuple[str, ...]


class Reviewed(Contract):
    """`kessai review` and `kessai compensate`: what was done by whom, and where the case stands now.

    `effect` and `known` are of a look: what was looked up, and what is known of it by now; null where none was made.
    """

    workflow_id: UUID
    act: Literal["adopt", "compensate", "close", "release"]
    by: str
    effect: str | None
    known: Literal["verified", "wrong", "rejected", "absent", "unknown"] | None
    state: str


class Withdrawn(Contract):
    """`kessai withdraw`: the case that was taken back, and by whom."""

    workflow_id: UUID
    withdrawn_by: str


class Reapplied(Contract):
    """`kessai reapply`: the case that was asked for anew, and the new one. `created` is false the second time.

    `requested_at` is when the new one counts as asked for, by which it is judged.
    """

    workflow_id: UUID
    supersedes: UUID
    created: bool
    requested_at: AwareDatetime
