"""The sweeper: turns due timers into wake-ups, and brings back what a dead worker left. One pass is `run_once`."""

from __future__ import annotations

from contextlib import suppress

from procrastinate import App
from procrastinate.exceptions import ConnectorException

from host.engine.parts import Parts
from host.engine.wake import Wake
from host.store import ledger

BATCH = 100


async def run_once(parts: Parts, wake: Wake) -> int:
    """Wake what is due and has no wake-up; gives how many. One process at a time, in bounded batches."""
    async with parts.pool.connection() as connection, connection.transaction():
        if not await ledger.lock_sweep(connection):
            return 0
        workflow_ids = await ledger.due(connection, BATCH)
        for workflow_id in workflow_ids:
            await wake(connection, workflow_id)
        return len(workflow_ids)


async def requeue_stalled(app: App, stalled_seconds: float) -> int:
    """Give the jobs of workers that stopped their heartbeat back to the queue; gives how many."""
    stalled = list(await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=stalled_seconds))
    for job in stalled:
        with suppress(ConnectorException):  # another process was faster, or its worker came back and ended it
            await app.job_manager.retry_job(job)
    return len(stalled)
