"""One driver on one workflow, from the claim to a wait or an end.

    load → settle what is under way → [ propose → authorise → COMMIT → act → observe → verify → ]* → wait or end

Exactly one commit stands between two interactions with the outside world: it records what came back *and* what
is tried next. No transaction is open while the planner or a tool works. A SIGKILL anywhere leaves a row from which
the same step continues: a read is read again; a write is looked up by its key first. The row decides who drives:
the first commit takes a lease and a new fence, a commit of a stale driver finds no row and writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from host.domain.control import CUT_OFF as CUT_OFF_EDGE
from host.domain.control import STARTED, WAITED, Actor, Control, Execution
from host.domain.outcome import Outcome, Rejected, Success, Unknown
from host.domain.state import State, from_row
from host.domain.step import Step
from host.domain.wait import ENDED, UNITS_BUSY_SECONDS, Wait
from host.engine.compensate import compensate, end_overdue, halt
from host.engine.lease import Lease
from host.engine.parts import Kind, Parts, new_jti
from host.engine.propose import ask_planner, redispatch
from host.engine.reconcile import looked_up
from host.engine.send import send
from host.engine.settle import CUT_OFF, answered, approval_expired, expire, in_doubt, rejected
from host.engine.verify import read_arguments, verified
from host.store import ledger
from host.store.errors import (
    ApprovalOverError,
    OutOfTimeError,
    ReadsStoppedError,
    StaleWorkflowError,
    StoppedError,
    UnitsBusyError,
    UnsettledElsewhereError,
)
from shared_contracts.contract import Tool
from shared_contracts.errors import Category

QUEUE_MAX = 200  # above either, a retry would only make a bad hour worse
OLDEST_SECONDS_MAX = 15 * 60.0


class UnknownWorkflowError(Exception):
    """There is no workflow with this id."""


async def drive(parts: Parts, workflow_id: UUID) -> State:
    """Drive a workflow as far as it goes now; give where it stands. A lost race reloads, another's lease ends it.

    Raises OneAtATimeError, with nothing written, while another one has its turn after a stop.
    """
    held: int | None = None  # the fence under which this driver has the lease
    while True:
        state = await load(parts, workflow_id)
        ours = state.control.leased and state.trace.fence == held
        if (state.control.leased and not ours) or not _runnable(state):
            return state
        driver = _Driver(parts, state, claim=not ours)
        try:
            return await driver.run()
        except StaleWorkflowError:
            held = driver.held()


async def load(parts: Parts, workflow_id: UUID) -> State:
    """Read a workflow; raises UnknownWorkflowError."""
    async with parts.pool.connection() as connection:
        row = await ledger.load(connection, workflow_id)
    if row is None:
        raise UnknownWorkflowError(str(workflow_id))
    return from_row(row)


def _runnable(state: State) -> bool:
    """Tell whether there is work now; a wait for a person has a timer too, so that it ends by itself."""
    return not state.ended() and not state.control.asleep


class _Driver:
    def __init__(self, parts: Parts, state: State, *, claim: bool) -> None:
        self.parts = parts
        self.kind: Kind = parts.kinds[state.task.kind, state.task.release]
        self.state = state
        self.claim = claim  # until the first commit has taken the lease
        self.committed = time.monotonic()
        self.lease = Lease(parts)

    def held(self) -> int | None:
        """Give the fence that this driver works under, once it has one."""
        return None if self.claim else self.state.trace.fence

    async def run(self) -> State:
        wait = await self._resume(self._begin())
        while True:
            if wait is None and not self.step.state.ended():
                wait = await self._next_call()
            ended = self.step.state.ended()
            wait = await self._commit(ENDED if ended else wait)
            if wait is not None:
                return self.state
            wait = await self._perform()

    def _begin(self) -> Step:
        """Begin the step that the next commit writes."""
        kind, active_ms = self.kind, self._active_ms()
        self.step = Step(self.state, kind.workflow, kind.moves, claim=self.claim, active_ms=active_ms)
        return self.step

    async def _commit(self, wait: Wait | None) -> Wait | None:
        """Write the step; where a stop, the clock or another's doubt forbids its call, write what is true without."""
        try:
            await self._write(self.step, wait)
        except (StoppedError, OutOfTimeError, ApprovalOverError, UnitsBusyError, UnsettledElsewhereError) as error:
            instead = self.step.instead
            if instead is None:
                raise
            wait = ENDED
            match error:
                case StoppedError():
                    wait = halt(instead, reads=isinstance(error, ReadsStoppedError))
                case OutOfTimeError() if instead.state.evidence.undoing is not None:
                    end_overdue(instead)
                case OutOfTimeError():
                    instead.review("limit", "limit")
                case ApprovalOverError():
                    approval_expired(instead)
                case UnitsBusyError():
                    wait = Wait("units_busy", UNITS_BUSY_SECONDS)
                case UnsettledElsewhereError():
                    instead.review("unknown_effect", "unsettled_elsewhere")
            await self._write(instead, wait)
        return wait

    async def _write(self, step: Step, wait: Wait | None) -> None:
        before = time.monotonic()  # the lease begins in the database, which may be long before we hear of it
        rows = step.rows(self.parts.owner, self.parts.lease_seconds, wait)
        done = await self.parts.commits.commit(rows)
        self.committed, self.claim = before, False
        self.lease.taken(before)
        self.state = step.state.after(done.version, done.fence, done.active_ms, done.entered_active_ms, done.at)

    def _active_ms(self) -> float:
        """Time at work: as of the last commit, by the database's clock, and since then by ours."""
        return self.state.control.active_ms + (time.monotonic() - self.committed) * 1000

    async def _next_call(self) -> Wait | None:
        """Bring the workflow to a dispatched call, a wait or an end."""
        while (control := self.step.state.control.control) in {Control.PLANNING, Control.TOOL_PROPOSED}:
            undoing = self.step.state.evidence.undoing
            if undoing is not None:
                wait = compensate(self.parts, self.step, undoing)
                if wait is not None or self.step.state.ended():
                    return wait
                return redispatch(self.parts, self.step)
            if control is Control.PLANNING and not self.parts.planner.deterministic:
                await self._flush()
            self.step.active_ms = self._active_ms()
            if control is Control.TOOL_PROPOSED:
                return redispatch(self.parts, self.step)
            wait = await self.lease.holding(self.state, ask_planner(self.parts, self.step))
            if wait is not None:
                return wait
        return None

    async def _flush(self) -> None:
        """Leave nothing unwritten, and the lease taken, before anybody is waited for."""
        if self.step.dirty or self.step.claim:
            await self._commit(None)
            self._begin()

    async def _resume(self, step: Step) -> Wait | None:
        """Go on from wherever the last driver, a timer or a person left the row."""
        call, control, workflow = step.state.proposal, step.state.control, self.kind.workflow
        if control.abandoned or (call is not None and call.under_way() is not None):
            step.recovered()
        exhausted = step.state.control.recoveries > workflow.limits.recoveries
        match control.control:
            case Control.TOOL_RUNNING | Control.OBSERVING:
                return await self._recover(step, exhausted=exhausted)
            case _ if exhausted:
                step.review("attempts_exhausted", "recoveries_exhausted")
            case Control.CREATED:
                step.go(STARTED)
            case Control.TOOL_PROPOSED if step.state.task.state == workflow.retry_state:
                step.business("due", WAITED, "due", Actor.TIMER)
            case Control.TOOL_PROPOSED if step.state.task.state == workflow.approval_state:
                asked = step.state.evidence.asked
                if asked is not None and asked.read_at < asked.expires_at:
                    return Wait("approval", (asked.expires_at - asked.read_at).total_seconds())
                expire(step)
            case _:
                pass
        return None

    async def _recover(self, step: Step, *, exhausted: bool) -> Wait | None:
        """A request was under way, or is due again: read once more, look up, or verify."""
        call = step.state.in_hand()
        tool, lost = self.parts.registry[call.tool], call.under_way()
        step.close_attempt("cut_off", CUT_OFF)
        if step.state.control.control is Control.OBSERVING:  # the answer is recorded; it is left to read it back
            if exhausted or tool.read_back is None:
                return step.review("unknown_effect", "unverified_effect")
            step.open_attempt("verification", tool.read_back.tool, new_jti())
        elif tool.writes:
            if exhausted or (lost is not None and lost.purpose == "call"):
                step.mark_call(Execution.UNKNOWN, error=CUT_OFF)
            if exhausted or not tool.reconcile_with:
                return step.review("unknown_effect", "unknown_effect")
            step.open_attempt("reconciliation", tool.reconcile_with, new_jti())
        else:
            step.mark_call(Execution.FAILED, error=CUT_OFF)
            step.go(CUT_OFF_EDGE)
            return step.review("attempts_exhausted", "recoveries_exhausted") if exhausted else None
        return await self._commit_and_perform()

    async def _commit_and_perform(self) -> Wait | None:
        await self._commit(None)
        return await self._perform()

    async def _perform(self) -> Wait | None:
        """Make the request that the last commit recorded, and begin the step that records its answer."""
        call, request = self.state.in_hand(), self.state.request()
        tool, asked = self.parts.registry[call.tool], self.parts.registry[request.tool]
        if request.purpose == "call":
            return await self._call(tool, call.arguments)
        outcome = await self._send(asked, read_arguments(asked, call))
        step = self._begin()
        if request.purpose == "verification":
            return verified(self.parts, step, tool, asked, outcome)
        return looked_up(self.parts, step, tool, outcome, retry_allowed=await self._retry_allowed())

    async def _call(self, tool: Tool, arguments: Mapping[str, Any]) -> Wait | None:
        outcome = await self._send(tool, arguments)
        step = self._begin()
        match outcome:
            case Success(result):
                wait = answered(step, tool, result)
                asks = step.state.in_hand().under_way() is not None
                return await self._commit_and_perform() if asks else wait
            case Rejected(error):
                allowed = error.category is not Category.TRANSIENT or await self._retry_allowed()
                return rejected(self.parts, step, tool, error, retry_allowed=allowed)
            case Unknown(error):
                in_doubt(step, tool, error)
                return None if step.state.ended() else await self._commit_and_perform()

    async def _send(self, tool: Tool, arguments: Mapping[str, Any]) -> Outcome:
        limits = self.kind.workflow.limits
        timeout = min(float(tool.timeout_seconds), limits.call_ceiling_seconds)
        # what was done has to be found out also where the time for doing it is up
        if self.state.request().purpose == "call" and self.state.evidence.undoing is None:
            timeout = max(0.1, min(timeout, limits.active_seconds - self._active_ms() / 1000))
        await self.lease.holding(
            self.state, self.parts.tools.turn(self.state.task.tenant_id, self.state.task.principal)
        )
        if self.lease.over():
            raise StaleWorkflowError("the lease ran out before the request left")
        return await self.lease.holding(self.state, send(self.parts, self.state, tool, arguments, timeout))

    async def _retry_allowed(self) -> bool:
        """Automatic retry stops while the waiting queue is too long or too old."""
        async with self.parts.pool.connection() as connection:
            queue = await ledger.queue(connection)
        return queue.waiting <= QUEUE_MAX and queue.oldest_seconds <= OLDEST_SECONDS_MAX
