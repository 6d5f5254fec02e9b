"""The sweeper: turns due timers into wake-ups, and brings back what a dead worker left. One pass is `run_once`.

What needs no call it does itself: a case that nobody has approved, or that was not undone, in its time is ended by the
step that a driver would write, under the same version and fence, and shares its commit with others that end with it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog
from procrastinate import App
from procrastinate.exceptions import ConnectorException

from host.domain.rows import Rows
from host.domain.state import State, from_row
from host.domain.step import Step
from host.domain.wait import ENDED
from host.engine.compensate import compensate
from host.engine.parts import Parts
from host.engine.settle import expire
from host.engine.wake import Wake
from host.store import ledger
from host.store.errors import StaleWorkflowError, StoreError

log = structlog.get_logger()
BATCH = 100
EXPIRED_AT_ONCE = 100


async def run_once(parts: Parts, wake: Wake) -> int:
    """Wake what is due and has no wake-up; gives how many. One process at a time, in bounded batches."""
    async with parts.pool.connection() as connection, connection.transaction():
        if not await ledger.lock_sweep(connection):
            return 0
        workflow_ids = await ledger.due(connection, BATCH)
        for workflow_id in workflow_ids:
            await wake(connection, workflow_id)
        return len(workflow_ids)


async def end_late(parts: Parts) -> int:
    """End what nobody has approved, or what was not undone, in its time; gives how many. Bounded, oldest first."""
    async with parts.pool.connection() as connection, connection.transaction():
        if not await ledger.lock_sweep(connection):
            return 0
        late = await ledger.unapproved(connection, EXPIRED_AT_ONCE) + await ledger.overdue(connection, EXPIRED_AT_ONCE)
        rows = await ledger.load_all(connection, late)
    waiting = [state for state in map(from_row, rows) if _waits(parts, state)]  # others moved between the two reads
    await asyncio.gather(*(_end(parts, state) for state in waiting))
    return len(rows)


def _waits(parts: Parts, state: State) -> bool:
    workflow = parts.kinds[state.task.kind, state.task.release].workflow
    at_rest = not (state.ended() or state.control.leased or state.control.asleep)
    undoing = state.evidence.undoing
    return at_rest and (
        state.task.state == workflow.approval_state or (undoing is not None and undoing.seconds_left <= 0)
    )


async def _end(parts: Parts, state: State) -> None:
    """End one case; what is wrong with it stays its own, and it waits longer for the next try."""
    try:
        await parts.commits.commit(_ended(parts, state))
    except StaleWorkflowError:
        return
    except StoreError as error:
        log.error("expiry_broke", workflow_id=str(state.task.workflow_id), error=type(error).__name__)  # noqa: TRY400 - its text may quote data
        async with parts.pool.connection() as connection:
            most = parts.kinds[state.task.kind, state.task.release].workflow.limits.recoveries
            await ledger.count_broken_drive(connection, state.task.workflow_id, most)


def _ended(parts: Parts, state: State) -> Rows:
    kind = parts.kinds[state.task.kind, state.task.release]
    step = Step(state, kind.workflow, kind.moves, claim=True, active_ms=state.control.active_ms)
    undoing = state.evidence.undoing
    if undoing is None:
        expire(step)
    else:
        compensate(parts, step, undoing)
    return step.rows(parts.owner, parts.lease_seconds, ENDED)


async def requeue_stalled(app: App, stalled_seconds: float) -> int:
    """Give the jobs of workers that stopped their heartbeat back to the queue; gives how many."""
    stalled = list(await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=stalled_seconds))
    for job in stalled:
        with suppress(ConnectorException):  # another process was faster, or its worker came back and ended it
            await app.job_manager.retry_job(job)
    return len(stalled)
