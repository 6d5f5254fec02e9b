"""The worker: takes wake-ups off the queue and drives; beside it the sweeper and the listing's refresh.

SIGTERM drains: no new wake-up is taken, the drives in hand go on to their next commit that waits or ends, within the
grace; whatever is cut off then is a crash like any other, which the next worker recovers from.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from uuid import UUID

import psycopg
import structlog
from procrastinate import App
from psycopg_pool import PoolTimeout

from host.domain.state import State
from host.engine import sweep
from host.engine.drive import UnknownWorkflowError, drive
from host.engine.parts import Parts
from host.engine.wake import TASK, Wake

SWEEP_SECONDS = 1.0
REFRESH_SECONDS = 5.0
GRACE_SECONDS = 25.0  # the slowest call and its commit
POLL_SECONDS = 2.0  # the fallback where a notification is lost
log = structlog.get_logger()


async def run_once(parts: Parts, workflow_id: UUID) -> State | None:
    """Drive one workflow; races and passing faults of the database end here, and the sweeper brings it back."""
    try:
        return await drive(parts, workflow_id)
    except UnknownWorkflowError:
        log.warning("wake_up_without_workflow", workflow_id=str(workflow_id))
    except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
        log.warning("database_unavailable", workflow_id=str(workflow_id), error=type(error).__name__)
    return None


async def work(
    parts: Parts, queue: App, wake: Wake, refresh: Callable[[], Awaitable[object]], concurrency: int
) -> None:
    """Work until SIGTERM or SIGINT, then drain."""

    @queue.task(name=TASK)
    async def drive_workflow(workflow_id: str) -> None:
        await run_once(parts, UUID(workflow_id))

    heartbeat = min(5.0, parts.lease_seconds / 3)
    async with asyncio.TaskGroup() as beside:
        loops = (
            beside.create_task(_each(SWEEP_SECONDS, lambda: _sweep(parts, wake, queue))),
            beside.create_task(_each(REFRESH_SECONDS, refresh)),
        )
        await queue.run_worker_async(
            concurrency=concurrency,
            delete_jobs="always",
            listen_notify=True,
            fetch_job_polling_interval=POLL_SECONDS,
            update_heartbeat_interval=heartbeat,
            stalled_worker_timeout=max(parts.lease_seconds, 3 * heartbeat),
            shutdown_graceful_timeout=GRACE_SECONDS,
        )
        for loop in loops:
            loop.cancel()


async def _sweep(parts: Parts, wake: Wake, queue: App) -> None:
    await sweep.run_once(parts, wake)
    await sweep.requeue_stalled(queue, max(parts.lease_seconds, 3.0))


async def _each(seconds: float, action: Callable[[], Awaitable[object]]) -> None:
    """Repeat an action; a database that is away is tried again at the next turn."""
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            try:
                await action()
            except (psycopg.Error, PoolTimeout) as error:
                log.warning("beside_work_failed", error=type(error).__name__)
            await asyncio.sleep(seconds)
