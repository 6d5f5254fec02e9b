"""A workflow as it stands, in five layers. Who may see what: a function takes the layers that it needs.

Task      what it is about          state machine, product
Proposal  the call in hand          authorization, executor
Evidence  what was observed         planner, verification
Control   budgets and stops         engine, authorization
Trace     versions and sequence     audit, recovery

Invariant: what `owners.OWNERS` names for a field is the only module that gives it another value after the row was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from host.domain.control import ENDS, Control, Execution, IllegalTransitionError
from host.domain.limits import Limits
from host.domain.workflow import Seen
from shared_contracts.approval import Action
from shared_contracts.base import parse

# Sends that were cut off by our own crash, or never left, are no calls: they have a bound of their own.
NOT_COUNTED = frozenset({"cut_off", "unreachable"})


@dataclass(frozen=True, slots=True)
class Task:
    """What the workflow is about, and its business state."""

    workflow_id: UUID
    kind: str
    release: str
    tenant_id: str
    principal: str
    request_id: str
    customer: str
    resource: str
    case: Mapping[str, Any]
    requested_at: datetime
    state: str
    resume_state: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that leaves the host; `outcome` is None while it is under way."""

    n: int
    purpose: str
    tool: str
    jti: str
    outcome: str | None


@dataclass(frozen=True, slots=True)
class Effect:
    """One intent in the ledger."""

    step: int
    attempt: int
    name: str
    idempotency_key: str
    outcome: str | None
    external_id: str | None
    verified: bool
    opened_at: datetime | None = None  # as it was stored; None for one that this process has just opened


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One proposal that became a step, and what is known of it."""

    step: int
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    fingerprint: str
    execution: Execution
    result: Mapping[str, Any] | None
    error: str | None
    attempts: tuple[Attempt, ...]
    contract_version: str  # as it was opened under
    undoes: int | None = None  # the step whose effect it undoes: code's call, which no planner proposed

    def sends(self) -> int:
        """Count every send of the call itself; the token's attempt number."""
        return sum(attempt.purpose == "call" for attempt in self.attempts)

    def counted(self) -> int:
        """Count the sends that are calls in the sense of the limits."""
        return sum(a.purpose == "call" and a.outcome not in NOT_COUNTED for a in self.attempts)

    def engine_reads(self, purpose: str) -> int:
        """Count the engine's own reads, since the last send, that really left: each send has its bound anew."""
        sent = max((a.n for a in self.attempts if a.purpose == "call"), default=0)
        return sum(a.purpose == purpose and a.n > sent and a.outcome not in NOT_COUNTED for a in self.attempts)

    def under_way(self) -> Attempt | None:
        """Give the request whose answer was not recorded."""
        return next((attempt for attempt in self.attempts if attempt.outcome is None), None)


@dataclass(frozen=True, slots=True)
class Asked:
    """The newest request for an approval and, where a person has answered, the event as it was signed."""

    version: int
    action: Action
    action_digest: str
    expires_at: datetime
    event: str | None
    decided: tuple[str, str] | None  # by whom, and what
    key: tuple[str, str, str] | None  # the event's key while it counts: kid, approver, public half
    read_at: datetime  # by the database's clock


@dataclass(frozen=True, slots=True)
class Undoing:
    """A compensation that is not over: whose effect, from which step on its calls are, and how long it may take yet.

    `as_of` is the database's time for that; None until the commit that opens it.
    """

    step: int
    first_step: int
    seconds_left: float
    as_of: datetime | None

    def at(self, now: datetime) -> Undoing:
        """Let the time go on to a commit's."""
        spent = 0.0 if self.as_of is None else (now - self.as_of).total_seconds()
        return replace(self, seconds_left=self.seconds_left - spent, as_of=now)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was observed, and the versions that the workflow is pinned to."""

    calls: tuple[CallRecord, ...]
    effects: tuple[Effect, ...]
    versions: Mapping[str, str]
    asked: Asked | None
    undoing: Undoing | None

    def seen(self) -> tuple[Seen, ...]:
        """Give the settled calls: results of successes (a write's only once verified), codes of refusals."""
        return tuple(_seen(call) for call in self.calls if call.undoes is None and _settled(call))

    def seen_undoing(self) -> tuple[Seen, ...]:
        """Give what undid something. To a compensation that is not over only what was made counts from before.

        What an earlier one looked at may have changed since, and what it was refused may be granted by now.
        """
        own = [call for call in self.calls if call.undoes is not None and _settled(call)]
        went_well = (call for call in own if call.execution is Execution.VERIFIED)
        if self.undoing is None:
            return tuple(_seen(call) for call in went_well)
        since, made = self.undoing.first_step, {effect.step for effect in self.effects if effect.verified}
        return tuple(_seen(call) for call in own if call.step >= since or call.step in made)

    def made_ids(self) -> dict[str, str]:
        """Give the external ids of all that was made, verified or not, by tool."""
        return {e.name: e.external_id for e in self.effects if e.external_id is not None and e.outcome == "succeeded"}

    def undone(self) -> set[int]:
        """Give the steps whose effect something that is verified has undone."""
        undoing = {call.step: call.undoes for call in self.calls if call.undoes is not None}
        return {undoing[e.step] for e in self.effects if e.verified and e.step in undoing}

    def verified_ids(self) -> dict[str, str]:
        """Give the external ids of verified effects that stand, by tool."""
        undone = self.undone()
        return {
            e.name: e.external_id
            for e in self.effects
            if e.verified and e.external_id is not None and e.step not in undone
        }


@dataclass(frozen=True, slots=True)
class ControlLayer:
    """Budgets, counters and stops; `active_ms` as of the last commit. `abandoned`: its driver died with it.

    `tokens` and `cost_micros` are what planners have used on the workflow, `cost_today` what they cost in all today.
    """

    control: Control
    active_ms: int
    entered_active_ms: int
    tokens: int
    cost_micros: int
    cost_today: int
    refusals_in_a_row: int
    refusals: tuple[tuple[str, str], ...]
    recoveries: int
    updates_stopped: bool
    reads_stopped: bool
    leased: bool
    abandoned: bool
    asleep: bool
    closed: bool  # a person has said why a case that was handed over stays as it is


@dataclass(frozen=True, slots=True)
class Trace:
    """The row's version and fence, how many decisions stand in its record, and when this driver last committed."""

    version: int
    fence: int
    seq: int
    decisions: int
    committed_at: datetime | None = field(default=None, compare=False)  # the driver's, not the row's


@dataclass(frozen=True, slots=True)
class State:
    """The five layers together."""

    task: Task
    proposal: CallRecord | None
    evidence: Evidence
    control: ControlLayer
    trace: Trace

    def in_hand(self) -> CallRecord:
        """Give the call in hand, where the control state promises one."""
        if self.proposal is None:
            raise IllegalTransitionError(self.control.control, "no call in hand", "?")
        return self.proposal

    def request(self) -> Attempt:
        """Give the request under way, where a commit has promised one."""
        under_way = self.in_hand().under_way()
        if under_way is None:
            raise IllegalTransitionError(self.control.control, "no request under way", "?")
        return under_way

    def ended(self) -> bool:
        """Tell whether the engine's part is over."""
        return self.control.control in ENDS

    def call_of(self, step: int) -> CallRecord:
        """Give the call of a step."""
        return next(call for call in self.evidence.calls if call.step == step)

    def calls_made(self) -> int:
        """Count tool calls against the workflow's limit: every attempt is one; what undoes has a limit of its own."""
        return sum(call.counted() for call in self.evidence.calls if call.undoes is None)

    def calls_made_of(self, tool: str) -> int:
        """Count tool calls of one tool."""
        return sum(call.counted() for call in self.evidence.calls if call.undoes is None and call.tool == tool)

    def calls_left(self, tool: str, limits: Limits) -> bool:
        """Tell whether one more call of the tool is within the limits."""
        if self.evidence.undoing is not None:
            undone = (call for call in self.evidence.calls if call.step >= self.evidence.undoing.first_step)
            return sum(call.counted() for call in undone) < limits.compensation_calls
        return self.calls_made() < limits.calls and self.calls_made_of(tool) < limits.calls_per_tool

    def with_call(self, call: CallRecord) -> State:
        """Put the call in its place, and in hand."""
        others = tuple(one for one in self.evidence.calls if one.step != call.step)
        return replace(self, proposal=call, evidence=replace(self.evidence, calls=(*others, call)))

    def after(self, version: int, fence: int, active_ms: int, entered_active_ms: int, at: datetime) -> State:
        """Take over what a commit made of the row; `at` is the database's time."""
        control = replace(self.control, active_ms=active_ms, entered_active_ms=entered_active_ms)
        undoing = None if self.evidence.undoing is None else self.evidence.undoing.at(at)
        evidence = replace(self.evidence, undoing=undoing)
        trace = replace(self.trace, version=version, fence=fence, committed_at=at)
        return replace(self, evidence=evidence, control=control, trace=trace)

    def with_effect(self, effect: Effect) -> State:
        """Put the effect in its place."""
        others = tuple(e for e in self.evidence.effects if (e.step, e.attempt) != (effect.step, effect.attempt))
        return replace(self, evidence=replace(self.evidence, effects=(*others, effect)))

    def effect_of(self, tool: str) -> Effect | None:
        """Find what an earlier step already did under the same intention."""
        done = (effect for effect in self.evidence.effects if effect.name == tool and effect.outcome == "succeeded")
        return next(done, None)

    def key_age(self, idempotency_key: str) -> timedelta:
        """Tell how old a key is: from the first send under it to this driver's last commit."""
        sent = [e.opened_at for e in self.evidence.effects if e.idempotency_key == idempotency_key]
        known = [at for at in sent if at is not None]
        committed_at = self.trace.committed_at
        return committed_at - min(known) if known and committed_at is not None else timedelta()

    def effect_in_hand(self) -> Effect | None:
        """Give the newest effect of the call in hand."""
        if self.proposal is None:
            return None
        own = [effect for effect in self.evidence.effects if effect.step == self.proposal.step]
        return max(own, key=lambda effect: effect.attempt) if own else None


def from_row(row: Mapping[str, Any]) -> State:
    """Read the five layers out of what `ledger.load` gives."""
    w = row["workflow"]
    calls = tuple(_call(call, row["attempts"]) for call in row["calls"])
    control = Control(w["control_state"])
    in_hand = control in {Control.TOOL_PROPOSED, Control.TOOL_AUTHORIZED, Control.TOOL_RUNNING, Control.OBSERVING}
    return State(
        task=Task(
            workflow_id=UUID(w["workflow_id"]),
            case=w["case_body"],
            requested_at=datetime.fromisoformat(w["requested_at"]),
            **{name: w[name] for name in _TASK_NAMES},
        ),
        proposal=calls[-1] if in_hand and calls else None,
        evidence=Evidence(
            calls=calls,
            effects=tuple(_effect(effect) for effect in row["effects"]),
            versions={name: w[name] for name in ("order_snapshot", "policy", "authz")},
            asked=None if row["approval"] is None else _asked(row["approval"]),
            undoing=None if row["compensation"] is None else _undoing(row["compensation"]),
        ),
        control=ControlLayer(
            control=control,
            refusals=tuple((refusal["code"], refusal["message"]) for refusal in row["refusals"]),
            leased=row["leased"] is True,
            abandoned=w["lease_owner"] is not None and row["leased"] is not True,
            asleep=row["asleep"] is True,
            closed=w["review_closed_at"] is not None,
            **{name: w[name] for name in _COUNTED},
            **{name: row[name] for name in ("cost_today", "updates_stopped", "reads_stopped")},
        ),
        trace=Trace(w["version"], w["fence"], w["seq"], row["decisions"]),
    )


def _undoing(row: Mapping[str, Any]) -> Undoing:
    read_at = datetime.fromisoformat(row["read_at"])
    left = datetime.fromisoformat(row["due_at"]) - read_at
    return Undoing(row["step"], row["first_step"], left.total_seconds(), read_at)


def _asked(row: Mapping[str, Any]) -> Asked:
    key = None if row["x"] is None else (row["kid"], row["approver"], row["x"])
    return Asked(
        version=row["version"],
        action=parse(Action, row["action"]),
        action_digest=row["action_digest"],
        expires_at=datetime.fromisoformat(row["expires_at"]),
        event=row["event"],
        decided=None if row["event"] is None else (row["approver"], row["decision"]),
        key=key,
        read_at=datetime.fromisoformat(row["read_at"]),
    )


def _settled(call: CallRecord) -> bool:
    return call.execution in {Execution.VERIFIED, Execution.FAILED} and call.error not in NOT_COUNTED


def _seen(call: CallRecord) -> Seen:
    return Seen(call.tool, call.result if call.execution is Execution.VERIFIED else None, call.error)


_TASK_NAMES = (
    "kind", "release", "tenant_id", "principal", "request_id", "customer", "resource", "state", "resume_state",
    "reason",
)  # fmt: skip
_COUNTED = ("active_ms", "entered_active_ms", "tokens", "cost_micros", "refusals_in_a_row", "recoveries")
_CALL_NAMES = ("step", "undoes", "call_id", "tool", "arguments", "fingerprint", "result", "contract_version")
_EFFECT_NAMES = ("step", "attempt", "name", "idempotency_key", "outcome", "external_id")


def _call(call: Mapping[str, Any], attempts: list[Mapping[str, Any]]) -> CallRecord:
    own = tuple(
        Attempt(a["n"], a["purpose"], a["tool"], a["jti"], a["outcome"]) for a in attempts if a["step"] == call["step"]
    )
    return CallRecord(
        execution=Execution(call["execution_state"]),
        error=None if call["error"] is None else call["error"]["code"],
        attempts=own,
        **{name: call[name] for name in _CALL_NAMES},
    )


def _effect(effect: Mapping[str, Any]) -> Effect:
    return Effect(
        verified=effect["verified_at"] is not None,
        opened_at=datetime.fromisoformat(effect["opened_at"]),
        **{name: effect[name] for name in _EFFECT_NAMES},
    )
