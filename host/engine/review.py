"""What a named person does with a case that was handed over: look again, adopt, have it undone, or close it.

An act on the case is one commit, guarded by the row's version; the look that adopting needs is recorded before it
leaves, like every request. Nothing is sent again here: what a person adopts is what was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from host.domain.acting import By
from host.domain.control import Actor, Control, Edge
from host.domain.state import CallRecord, Effect, State, from_row
from host.domain.step import Step
from host.domain.undo import Undone
from host.domain.wait import ENDED, Wait
from host.engine.approve import Desk, load_case
from host.engine.look import Known, looked
from host.engine.parts import Kind, Parts, new_jti
from host.engine.reapply import NotPossibleError
from host.engine.send import send
from host.engine.settle import CUT_OFF
from host.engine.verify import read_arguments
from host.engine.wake import Wake
from host.store import compensations, ledger, stops
from host.store.errors import InvariantError, StaleWorkflowError
from shared_contracts.contract import Tool

HANDED_OVER = frozenset({Control.NEEDS_HUMAN, Control.FAILED})


@dataclass(frozen=True, slots=True)
class Looked:
    """One effect, and what is known of it by now; `adopted` is the state that the case went on to."""

    effect: Effect
    known: Known
    adopted: str | None = None


def doubtful(state: State) -> Effect | None:
    """Give the effect that nobody knows the outcome of, or else the newest that was made and never read back."""
    open_ones = [e for e in state.evidence.effects if e.outcome is None]
    return next(iter([*open_ones, *_unread(state)]), None)


def _wrong(state: State) -> set[int]:
    return {call.step for call in state.evidence.calls if call.error == "wrong_effect"}


def _unread(state: State) -> list[Effect]:
    """Give what was made and never read back, the newest first: what was undone since reads as it is no more."""
    done = _wrong(state) | state.evidence.undone()
    effects = reversed(state.evidence.effects)
    return [e for e in effects if e.outcome == "succeeded" and not e.verified and e.step not in done]


async def look_up(parts: Parts, workflow_id: UUID, by: By) -> Looked | None:
    """Look up what nobody knows of a case that was handed over, and record what was found; None: all is known.

    Raises NotPossibleError, UnknownWorkflowError.
    """
    state = await _handed_over(parts, workflow_id)
    effect = doubtful(state)
    return None if effect is None else await _looked(parts, state, effect, by, None)


async def adopt(parts: Parts, workflow_id: UUID, by: By, wake: Wake) -> Looked:
    """Look up what the case has made and, where it is as it was asked for, let the case go on from there."""
    state = await _handed_over(parts, workflow_id)
    effect = doubtful(state)
    if effect is None:
        own = _workflow(parts, state).workflow.effects
        made = [e for e in state.evidence.effects if e.verified and e.name in own]
        wrong = _wrong(state)
        if any(e.step in wrong and e.name in own for e in state.evidence.effects):
            raise NotPossibleError("what the case has made is not what was asked for; no case goes on from that")
        if not made:
            raise NotPossibleError("the case has made nothing that could be adopted; see `kessai handover`")
        effect = made[-1]
    lacking = _lacking(parts, state, effect)
    if lacking is not None:
        raise NotPossibleError(f"{effect.name} is looked up with {lacking}, which this program has no working form of")
    return await _looked(parts, state, effect, by, wake)


def _lacking(parts: Parts, state: State, effect: Effect) -> str | None:
    """Name the tool without which nobody can look the effect up; None where it is there."""
    name = next(one.tool for one in state.evidence.calls if one.step == effect.step)
    tool = parts.registry.get(name)
    if tool is None:
        return name
    return None if tool.reconcile_with in parts.registry else tool.reconcile_with


async def _handed_over(parts: Parts, workflow_id: UUID) -> State:
    async with parts.pool.connection() as connection:
        row = await ledger.load(connection, workflow_id)
    if row is None:
        raise NotPossibleError("there is no such case")
    state = from_row(row)
    if state.control.control not in HANDED_OVER:
        raise NotPossibleError(not_handed_over(state))
    if (state.task.kind, state.task.release) not in parts.kinds:
        raise NotPossibleError(f"the case is of release {state.task.release}, which this program does not carry")
    return state


async def _looked(parts: Parts, state: State, effect: Effect, by: By, wake: Wake | None) -> Looked:
    """Record the request, make it, record what came of it; with `wake` go on from what was found."""
    call = next(one for one in state.evidence.calls if one.step == effect.step)
    tool = parts.registry.get(call.tool)
    read = None if tool is None else parts.registry.get(tool.reconcile_with)
    if tool is None or read is None:
        return Looked(effect, Known.UNKNOWN)
    step = _begin(parts, state, call)
    _end_looks(step)
    step.take_up(step.state.call_of(effect.step))
    step.open_attempt("reconciliation", read.name, new_jti())
    step.note("looked_up", by.name, by.details())
    async with parts.pool.connection() as connection:
        state = await _commit(connection, step, ENDED)
    await parts.tools.turn(state.task.tenant_id, state.task.principal)
    outcome = await send(parts, state, read, read_arguments(read, call), float(read.timeout_seconds))
    step = _begin(parts, state, state.in_hand())
    known = looked(step, tool, outcome)
    goes_on = known is Known.VERIFIED and wake is not None and _stands(step, effect)
    if goes_on:
        step.note("effect_adopted", by.name, by.details())
        step.begin_anew()
        step.adopt()
    wait = ENDED if step.state.ended() else Wait("adopted", 0.0)
    async with parts.pool.connection() as connection, connection.transaction():
        after = await _commit(connection, step, wait)
        if wake is not None and not after.ended():
            await wake(connection, after.task.workflow_id)
    return Looked(effect, known, after.task.state if goes_on else None)


def _begin(parts: Parts, state: State, call: CallRecord) -> Step:
    kind = _workflow(parts, state)
    step = Step(state, kind.workflow, kind.moves, claim=False, active_ms=state.control.active_ms)
    step.take_up(call)
    return step


def _end_looks(step: Step) -> None:
    """Of a look that died no answer comes any more."""
    for call in step.state.evidence.calls:
        if call.under_way() is not None:
            step.take_up(call)
            step.close_attempt("cut_off", CUT_OFF)


def _workflow(parts: Parts, state: State) -> Kind:
    return parts.kinds[state.task.kind, state.task.release]


async def _commit(connection: Any, step: Step, wait: Wait) -> State:
    """Write the step without a lease: whoever else acts on the case meanwhile makes ours stale, and is told."""
    try:
        done = (await ledger.commit_steps(connection, step.rows("operator", 1.0, wait)))[
            str(step.state.task.workflow_id)
        ]
    except StaleWorkflowError as error:
        raise NotPossibleError("somebody else acted on the case meanwhile; look at it again") from error
    except InvariantError as error:
        if "effect_external" not in str(error):
            raise
        raise NotPossibleError(
            "what the tool server says was made is another case's; look at both, and at the tool server, by hand"
        ) from error
    return step.state.after(done.version, done.fence, done.active_ms, done.entered_active_ms, done.at)


def _stands(step: Step, effect: Effect) -> bool:
    """Tell whether the case may go on from an effect: it and all that comes before it is verified, and not undone."""
    own, verified = step.workflow.effects, step.state.evidence.verified_ids()
    return effect.name in own and all(name in verified for name in own[: own.index(effect.name) + 1])


async def order_compensation(desk: Desk, workflow_id: UUID, by: By, reason: str, registry: Mapping[str, Tool]) -> None:
    """Have what a case has made undone; raises NotPossibleError."""
    state = await _reviewed(desk, workflow_id)
    step = _step(desk, state)
    wrong = _to_undo(step)
    made, done = state.evidence.made_ids(), state.evidence.seen_undoing()
    if isinstance(step.workflow.undo(state.task.case, wrong.tool, made, done), Undone):
        raise NotPossibleError(
            "code has undone what it can; what still stands is a person's to undo, and kessai review ID close ends it"
        )
    edge = Edge(state.control.control, Control.PLANNING)
    step.business("compensation_ordered", edge, "compensation_ordered", Actor.OPERATOR)
    step.open_compensation(wrong.step, registry[wrong.tool].compensate_within_hours, by.name, reason)
    step.begin_anew()
    step.note("compensation_ordered", by.name, {**by.details(), "reason": reason})
    async with desk.pool.connection() as connection, connection.transaction():
        await _commit(connection, step, Wait("compensation", 0.0))
        await desk.wake(connection, workflow_id)


def _to_undo(step: Step) -> CallRecord:
    """Find whose effect is to be undone: what was begun before, what is wrong, or the first that was made."""
    state, calls = step.state, step.state.evidence.calls
    own = step.workflow.effects
    if any(e.outcome is None for e in state.evidence.effects) or any(e.name not in own for e in _unread(state)):
        raise NotPossibleError("nobody knows yet what the case has made; look first: kessai review ID adopt --as NAME")
    made = [e for e in state.evidence.effects if e.outcome == "succeeded" and e.name in own]
    left = {e.step for e in made if e.name in state.evidence.verified_ids() or not e.verified}
    begun = [call.undoes for call in reversed(calls) if call.undoes is not None]
    wrong = [call.step for call in calls if call.error == "wrong_effect"]
    chosen = next((n for n in [*begun, *wrong, *sorted(left)] if n in left), None)
    if chosen is None:
        raise NotPossibleError("nothing that the case has made is left to be undone; kessai review ID close ends it")
    return next(call for call in calls if call.step == chosen)


async def release(desk: Desk, workflow_id: UUID, by: By) -> None:
    """Let one case be undone although everything else is stopped; raises NotPossibleError."""
    state = await load_case(desk, workflow_id)
    async with desk.pool.connection() as connection, connection.transaction():
        stopped = {one.scope for one in await stops.scopes(connection) if one.engaged}
        if state.evidence.undoing is not None and not stopped & {stops.UPDATES, stops.READS}:
            raise NotPossibleError("nothing holds it: no stop is engaged, and it is being undone")
        released = await compensations.release(connection, workflow_id, by)
        if released:
            await desk.wake(connection, workflow_id)
    if not released:
        raise NotPossibleError(f"nothing of the case is being undone, it is in {state.task.state}")


async def close(desk: Desk, workflow_id: UUID, by: By, reason: str, *, accept_unknown: bool) -> None:
    """Say why a case stays as it is, and take it out of the exception queue; raises NotPossibleError."""
    state = await _reviewed(desk, workflow_id)
    if state.control.closed:
        raise NotPossibleError("the case is closed already; see `kessai show`")
    unknown = [effect.name for effect in state.evidence.effects if effect.outcome is None]
    if unknown and not accept_unknown:
        raise NotPossibleError(
            f"nobody knows what became of {', '.join(unknown)}: look first (kessai review ID adopt --as NAME), or say "
            "with --accept-unknown that it stays so"
        )
    step = _step(desk, state)
    step.close_review()
    step.note("review_closed", by.name, {**by.details(), "reason": reason, "unknown": unknown})
    async with desk.pool.connection() as connection:
        await _commit(connection, step, ENDED)


async def _reviewed(desk: Desk, workflow_id: UUID) -> State:
    state = await load_case(desk, workflow_id)
    if state.control.control not in HANDED_OVER:
        raise NotPossibleError(not_handed_over(state))
    return state


def _step(desk: Desk, state: State) -> Step:
    kind = desk.kinds[state.task.kind, state.task.release]
    step = Step(state, kind.workflow, kind.moves, claim=False, active_ms=state.control.active_ms)
    _end_looks(step)
    return step


def not_handed_over(state: State) -> str:
    """Say what the case is doing instead."""
    return f"the case was handed over to nobody, it is in {state.task.state}; see `kessai show`"
