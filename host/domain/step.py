"""One durable step being put together: moves of the state in memory, and what they will write.

Pure. The step starts from a loaded state, every move is checked against the tables at once, and `rows` gives what
one statement commits: for each table the rows that it gains or changes. Nothing is written until then, and then all
of it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from host.domain.authorization import VERSION, Decision, Facts
from host.domain.control import (
    ANSWERED,
    DISPATCHED,
    ENDS,
    PLAIN,
    REFUSED,
    Actor,
    Control,
    Edge,
    Execution,
    IllegalTransitionError,
)
from host.domain.kept import CODE_MAX, kept_json, kept_text
from host.domain.outcome import CallError
from host.domain.proposals import PlannerFault, ToolCall, Usage
from host.domain.reasons import review_end
from host.domain.rows import Gathered, Rows, error_record
from host.domain.severe import SCOPES, Severe
from host.domain.state import Attempt, CallRecord, Effect, State, Undoing
from host.domain.uttered import Offer
from host.domain.wait import Wait
from host.domain.workflow import RESUME, Finding, Move, Workflow
from shared_contracts.approval import LIFETIME, Action, ApprovalEvent, action_digest
from shared_contracts.base import dump
from shared_contracts.contract import Tool
from shared_contracts.digest import action_fingerprint, digest


class Step:
    """Moves and writes between two interactions with the outside world."""

    def __init__(
        self, state: State, workflow: Workflow, moves: Mapping[Move, int], *, claim: bool, active_ms: float
    ) -> None:
        """Begin at `state`, after `active_ms` at work; `claim` takes the lease and a new fence in the commit."""
        self.state = state
        self.workflow = workflow
        self.active_ms = active_ms
        self.claim = claim
        self._ids = moves
        self._rows = Gathered(str(state.task.workflow_id))
        self._active_limit_ms: int | None = None
        self._closes_review = False
        self.instead: Step | None = None  # what to write where a stop, the clock or another's doubt forbids this

    def fork(self) -> Step:
        """Copy the step as it is now, without what it contests; the copies write independently."""
        copied = Step(self.state, self.workflow, self._ids, claim=self.claim, active_ms=self.active_ms)
        copied._rows = self._rows.uncontested()
        return copied

    def go(self, edge: Edge, reason: str = "", evidence: Iterable[str] = ()) -> None:
        """Move the control machine; the business state stays."""
        event = PLAIN.get(edge)
        if event is None:
            raise IllegalTransitionError(edge.source, "a plain move", edge.target)
        self._move(edge, self.state.task.state, event, Actor.ENGINE, reason or event, evidence)

    def business(
        self, event: str, edge: Edge, reason: str, actor: Actor = Actor.ENGINE, evidence: Iterable[str] = ()
    ) -> None:
        """Make a business move that rides on `edge`."""
        row = self.workflow.transition(self.state.task.state, event, actor, ends=edge.target in ENDS)
        if row is None:
            raise IllegalTransitionError(self.state.task.state, event, "?")
        target = row.target if row.target != RESUME else str(self.state.task.resume_state)
        keeps = self.state.task.state if target == self.workflow.retry_state else None
        self._move(edge, target, event, actor, reason, evidence)
        self.state = replace(self.state, task=replace(self.state.task, resume_state=keeps, reason=reason))

    def end(
        self, event: str, reason: str, end: Control, evidence: Iterable[str] = (), actor: Actor = Actor.ENGINE
    ) -> None:
        """Make the business move into an end, with its audit row and its outbox row."""
        before = self.state.task.state
        self.business(event, Edge(self.state.control.control, end), reason, actor, evidence)
        task = self.state.task
        result = {"from": before, "state": task.state, "control": end.value, "reason": task.reason}
        self._audit("workflow_ended", task.state, result)
        told = {"workflow_id": str(task.workflow_id), **result, "effects": self.state.evidence.verified_ids()}
        self._rows.add("outbox", seq=self.state.trace.seq, topic=f"{task.kind}.{task.state.lower()}", payload=told)

    def review(self, event: str, reason: str, evidence: Iterable[str] = ()) -> None:
        """Hand the case to a person, or call it failed where the fault is ours; nothing goes on being undone."""
        if self.state.evidence.undoing is not None:
            event = event if self.state.task.state == self.workflow.retry_state else "not_compensable"
            self.close_compensation("impossible")
        self._hand_over(event, reason, evidence)

    def compensated(self) -> None:
        """All of it is undone; a person has the last look."""
        self.close_compensation("done")
        self._hand_over("compensated", "compensated", ())

    def overdue(self) -> None:
        """It was not undone in time."""
        self.close_compensation("overdue")
        self._hand_over("overdue", "overdue", (), Actor.TIMER)

    def begin_anew(self) -> None:
        """A person has the case go on: what workers died on before is nobody's any more."""
        self.state = replace(self.state, control=replace(self.state.control, recoveries=0))

    def _hand_over(self, event: str, reason: str, evidence: Iterable[str], actor: Actor = Actor.ENGINE) -> None:
        end = review_end(reason)
        if end is Control.FAILED and self.state.control.control is Control.TOOL_PROPOSED:
            self.go(REFUSED, reason)  # no edge leads from a call that waits to a failure
        self.end(event, reason, end, evidence, actor)

    def _move(self, edge: Edge, target: str, event: str, actor: Actor, reason: str, evidence: Iterable[str]) -> None:
        here = self.state
        move = Move(*edge, here.task.state, target, event, actor)
        if edge.source is not here.control.control or move not in self._ids:
            raise IllegalTransitionError(f"{here.control.control}/{here.task.state}", event, f"{edge.target}/{target}")
        seq = here.trace.seq + 1
        self._rows.move(seq=seq, move_id=self._ids[move], reason=reason, evidence=list(evidence))
        task, control = replace(here.task, state=target), replace(here.control, control=edge.target)
        self.state = replace(here, task=task, control=control, trace=replace(here.trace, seq=seq))

    def _audit(self, action: str, result: str, details: Mapping[str, Any], actor: str | None = None) -> None:
        task = self.state.task
        who = {"actor": task.principal if actor is None else actor, "resource": task.resource}
        self._rows.add("audit", **who, action=action, result=result, details=dict(details))

    def note(self, action: str, by: str, details: Mapping[str, Any] | None = None) -> None:
        """Record an act of a person beside the move that it makes."""
        self._audit(action, self.state.task.state, {} if details is None else details, by)

    def take_up(self, call: CallRecord) -> None:
        """Take a call of a case that was handed over in hand again, to look at what it has done."""
        self.state = self.state.with_call(call)

    def adopt(self) -> None:
        """Go on from what was found: to the successful end where all that is expected is verified."""
        verified = self.state.evidence.verified_ids()
        here = self.state.control.control
        if all(name in verified for name in self.workflow.effects):
            self._move(Edge(here, Control.PLANNING), self.state.task.state, "reopened", Actor.OPERATOR, "reopened", ())
            return self.end("effect_adopted", "effect_adopted", Control.COMPLETED, actor=Actor.OPERATOR)
        edge = Edge(here, Control.PLANNING)
        return self.business("effect_adopted", edge, "effect_adopted", Actor.OPERATOR)

    def close_review(self) -> None:
        """A person has said why the case stays as it is."""
        self._closes_review = True

    def alert(self, code: str, details: Mapping[str, Any]) -> None:
        """Record that somebody, or a planner, reached for what is not theirs."""
        self._audit("alert", code, details)

    def stop(self, finding: Severe, reason: str) -> None:
        """Let nothing new begin from this commit on; what is under way is finished and recorded."""
        scopes = SCOPES[finding]
        self._rows.add("stops", scopes=list(scopes), actor="engine", reason=reason, cause=finding.value)
        control = self.state.control
        reads = control.reads_stopped or "reads" in scopes
        self.state = replace(self.state, control=replace(control, updates_stopped=True, reads_stopped=reads))

    def open_compensation(self, step: int, hours: int, by: str, reason: str) -> None:
        """Have the effect of a step undone within its time."""
        first = len(self.state.evidence.calls) + 1
        opened = {"step": step, "first_step": first, "hours": hours, "ordered_by": by, "reason": reason}
        self._rows.add("compensations_opened", **opened)
        undoing = Undoing(step, first, hours * 3600.0, None)
        self.state = replace(self.state, evidence=replace(self.state.evidence, undoing=undoing))

    def close_compensation(self, outcome: str) -> None:
        """Say what came of it; one that is not done stops what might need another."""
        self._rows.add("compensations_closed", state=outcome)
        self.state = replace(self.state, evidence=replace(self.state.evidence, undoing=None))
        if outcome != "done":
            self.stop(Severe.NOT_COMPENSABLE, outcome)

    def open_call(self, proposal: ToolCall, tool: Tool, execution: Execution) -> None:
        """Make a step out of a proposal that was taken, or of a call that undoes; refusals in a row are over."""
        undoing = self.state.evidence.undoing
        call = CallRecord(
            step=len(self.state.evidence.calls) + 1,
            call_id=proposal.call_id,
            tool=tool.name,
            arguments=proposal.arguments,
            fingerprint=action_fingerprint(tool.name, proposal.arguments),
            execution=execution,
            result=None,
            error=None,
            attempts=(),
            contract_version=tool.version,
            undoes=None if undoing is None else undoing.step,
        )
        self._rows.open_call(call)
        taken = replace(self.state, control=replace(self.state.control, refusals_in_a_row=0))
        self.state = taken.with_call(call)

    def ask_approval(self, action: Action) -> None:
        """Ask a person; the request stands for as long as an approval may, from this commit on."""
        asked = {"action": dump(action), "action_digest": action_digest(action)}
        self._rows.add("approval_requests", **asked, lifetime_seconds=LIFETIME.total_seconds())

    def record_decision(self, event: ApprovalEvent, kid: str, text: str, seconds: float) -> None:
        """Keep what a person decided, as it was signed."""
        self._rows.add(
            "approvals",
            event_id=event.event_id,
            version=event.version,
            approver=event.approver,
            kid=kid,
            decision=event.decision,
            reason=event.reason,
            event=text,
            decided_at=event.decided_at.isoformat(),
            approval_seconds=seconds,
        )

    def dispatch(self, tool: Tool, jti: str, decision_n: int, approved_version: int | None) -> None:
        """Send the call in hand: running, an attempt, and for a write the intent under its key and its approval."""
        self.mark_call(Execution.RUNNING, stamps=("authorized", "started"))
        self.open_attempt("call", tool.name, jti)
        if self.state.evidence.undoing is None:
            self._active_limit_ms = int(self.workflow.limits.active_seconds * 1000)
        else:
            self._rows.add("deadlines")  # what is undone has a time of its own
        if tool.writes:
            self._open_effect(tool, decision_n, approved_version)
        self.go(DISPATCHED)

    def open_attempt(self, purpose: str, tool: str, jti: str) -> None:
        """Record a request before it leaves; at most one stands open."""
        call = self.state.in_hand()
        attempt = Attempt(len(call.attempts) + 1, purpose, tool, jti, None)
        self._rows.add("attempts_opened", step=call.step, n=attempt.n, purpose=purpose, tool=tool, jti=jti)
        self.state = self.state.with_call(replace(call, attempts=(*call.attempts, attempt)))

    def close_attempt(self, outcome: str, error: CallError | None = None) -> None:
        """Record what came of the request under way."""
        call = self.state.in_hand()
        under_way = call.under_way()
        if under_way is None:
            return
        closed = replace(under_way, outcome=outcome)
        self._rows.add("attempts_closed", step=call.step, n=closed.n, outcome=outcome, error=error_record(error))
        attempts = tuple(closed if a.n == closed.n else a for a in call.attempts)
        self.state = self.state.with_call(replace(call, attempts=attempts))

    def mark_call(
        self,
        execution: Execution,
        *,
        result: Mapping[str, Any] | None = None,
        error: CallError | None = None,
        stamps: tuple[str, ...] = (),
    ) -> None:
        """Record what is known of the call in hand."""
        call = self.state.in_hand()
        known = result if result is not None else call.result
        self.state = self.state.with_call(
            replace(call, execution=execution, result=known, error=None if error is None else error.code)
        )
        self._rows.mark_call(call.step, execution, result, error, stamps)

    def fail_call(self, error: CallError, stamps: tuple[str, ...] = ("returned", "delivered")) -> None:
        """Record that the call in hand came to nothing, and observe that."""
        self.mark_call(Execution.FAILED, error=error, stamps=stamps)
        self.go(ANSWERED, error.code)

    def contest(self, *, writes: bool = False) -> None:
        """Let the commit look whether another workflow is in doubt over this case's units."""
        task = self.state.task
        self._rows.add("contests", tenant_id=task.tenant_id, units=list(self.workflow.units(task.case)), writes=writes)

    def _open_effect(self, tool: Tool, decision_n: int, approved_version: int | None) -> None:
        task, call = self.state.task, self.state.in_hand()
        key = key_of(task.workflow_id, tool.name)
        earlier = [e.attempt for e in self.state.evidence.effects if e.idempotency_key == key]
        attempt = max(call.sends(), *(n + 1 for n in earlier)) if earlier else call.sends()
        effect = Effect(call.step, attempt, tool.name, key, None, None, False)
        first = tool.name == self.workflow.effects[0]  # what follows it rests on what is this case's own by then
        if first:
            self.contest(writes=True)
        self._rows.add(
            "effects_opened",
            step=effect.step,
            attempt=effect.attempt,
            name=effect.name,
            idempotency_key=effect.idempotency_key,
            arguments_sha256=digest(dict(call.arguments)),
            units=list(self.workflow.units(task.case)) if first else [],
            decision_n=decision_n,
            approved_version=approved_version,
        )
        self.state = self.state.with_effect(effect)

    def close_effect(
        self,
        outcome: str,
        *,
        external_id: str | None = None,
        verified: bool = False,
        mismatch: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the outcome of the effect in hand, once; verification may follow a commit later."""
        effect = self.state.effect_in_hand()
        if effect is None:
            return
        known = external_id if external_id is not None else effect.external_id
        self._rows.close_effect(
            step=effect.step,
            attempt=effect.attempt,
            outcome=outcome,
            external_id=known,
            verified=verified,
            mismatch=None if mismatch is None else dict(mismatch),
        )
        self.state = self.state.with_effect(replace(effect, outcome=outcome, external_id=known, verified=verified))

    def decided(self, facts: Facts, decision: Decision) -> int:
        """Store an authorization with its facts; gives its number."""
        return self._decide("authorization", VERSION, facts.as_record(), decision.verdict.value, decision.reason)

    def found(self, finding: Finding) -> None:
        """Store a business decision with the facts and the rule version that it was made from."""
        if finding.rule_version is not None and finding.facts is not None:
            self._decide("business", finding.rule_version, finding.facts, finding.event, finding.reason)

    def _decide(self, subject: str, version: str, facts: Mapping[str, Any], outcome: str, reason: str) -> int:
        number = self.state.trace.decisions + 1
        ruled = {"outcome": outcome, "reason": reason}
        self._rows.add("decisions", n=number, subject=subject, rule_version=version, facts=dict(facts), **ruled)
        self.state = replace(self.state, trace=replace(self.state.trace, decisions=number))
        return number

    def refuse(self, fault: PlannerFault, proposal: ToolCall | None = None) -> None:
        """Record output that came to nothing, and count it."""
        control = self.state.control
        code, message = kept_text(fault.code, CODE_MAX), kept_text(fault.message)
        refusals = (*control.refusals, (code, message))
        self._rows.add(
            "refusals",
            n=len(refusals),
            code=code,
            message=message,
            call_id=None if proposal is None else kept_text(proposal.call_id),
            tool=None if proposal is None else kept_text(proposal.name),
            arguments=None if proposal is None else kept_json(proposal.arguments),
        )
        counted = replace(control, refusals=refusals, refusals_in_a_row=control.refusals_in_a_row + 1)
        self.state = replace(self.state, control=counted)

    def turn(self, offer: Offer, said: Mapping[str, Any], *, kept: bool) -> None:
        """Have the next move tell what a planner was shown and gave."""
        self._rows.turn(offer, said, kept=kept)

    def spend(self, usage: Usage) -> None:
        """Count what a turn of the planner took."""
        control = self.state.control
        spent = replace(
            control,
            tokens=control.tokens + usage.tokens,
            cost_micros=control.cost_micros + usage.cost_micros,
            cost_today=control.cost_today + usage.cost_micros,
        )
        self.state = replace(self.state, control=spent)
        if usage.cost_micros > 0:
            self._rows.add("planner_costs", cost_micros=usage.cost_micros)

    def recovered(self) -> None:
        """Count one recovery."""
        control = self.state.control
        self.state = replace(self.state, control=replace(control, recoveries=control.recoveries + 1))

    @property
    def dirty(self) -> bool:
        """Tell whether anything happened that must not be forgotten."""
        return self._rows.dirty

    def rows(self, owner: str, lease_seconds: float, wait: Wait | None) -> Rows:
        """Give what the commit writes; a wait lets go of the workflow."""
        driven = {"claim": self.claim, "owner": owner, "lease_seconds": lease_seconds}
        if self._closes_review:
            driven["closes_review"] = True
        return self._rows.under(self.state, wait, active_limit_ms=self._active_limit_ms, **driven)


def key_of(workflow_id: object, step_name: str) -> str:
    """Name the business intention: stable across retries, new call ids and restarts; never a planner's."""
    return f"{workflow_id}:{step_name}"
