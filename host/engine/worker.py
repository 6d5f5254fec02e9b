"""The worker: takes wake-ups off the queue and drives; beside it the sweeper and the listing's refresh.

SIGTERM drains: no new wake-up is taken, the drives in hand go on to their next commit that waits or ends, within the
grace; whatever is cut off then is a crash like any other, which the next worker recovers from. A database that goes
away ends no worker: it is tried again until it is back. While the tool server offers this worker nothing at all (it
refuses its tokens, say, because a clock is wrong) the cases are left as they are, for later or for another worker; only
a move that needs no call is made: an approval's time is up whoever can be reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from uuid import UUID

import psycopg
import structlog
from procrastinate import App
from procrastinate.exceptions import ConnectorException
from procrastinate.worker import Worker
from psycopg_pool import PoolTimeout

from host.domain.state import State
from host.engine import sweep
from host.engine.drive import UnknownWorkflowError, drive
from host.engine.parts import Parts
from host.engine.wake import TASK, Wake
from host.store import ledger
from host.store.errors import OneAtATimeError

EXPIRED_ROUNDS = 3
SWEEP_SECONDS = 1.0
REFRESH_SECONDS = 5.0
GRACE_SECONDS = 25.0  # the slowest call and its commit
POLL_SECONDS = 2.0  # the fallback where a notification is lost
AGAIN_SECONDS = 1.0  # between two tries to work with a database that is away
DATABASE_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, ConnectorException)
log = structlog.get_logger()


async def run_once(parts: Parts, workflow_id: UUID, *, reached: bool = True) -> State | None:
    """Drive one workflow; races and passing faults of the database end here, and the sweeper brings it back.

    `reached`: the tool server offers something. One that refuses us, or is another's, says nothing about any case.
    """
    try:
        return await drive(parts, workflow_id) if reached else None
    except OneAtATimeError:  # after a stop another case is at work: this one's turn comes, and nothing is wrong with it
        log.debug("not_its_turn", workflow_id=str(workflow_id))
    except UnknownWorkflowError:
        log.warning("wake_up_without_workflow", workflow_id=str(workflow_id))
    except DATABASE_AWAY as error:
        log.warning("database_unavailable", workflow_id=str(workflow_id), error=type(error).__name__)
    except Exception as error:  # noqa: BLE001 - the outermost place: a bug stops this case, not the worker
        log.error("drive_broke", workflow_id=str(workflow_id), error=type(error).__name__)  # noqa: TRY400 - its text may quote data
        await _count_broken(parts, workflow_id)
    return None


async def _count_broken(parts: Parts, workflow_id: UUID) -> None:
    """Let the case wait longer each time, and go to a person in the end: it must not kill workers for ever."""
    most = max(kind.workflow.limits.recoveries for kind in parts.kinds.values())
    with contextlib.suppress(*DATABASE_AWAY):
        async with parts.pool.connection() as connection:
            await ledger.count_broken_drive(connection, workflow_id, most)


async def work(
    parts: Parts, queue: App, wake: Wake, refresh: Callable[[], Awaitable[object]], concurrency: int
) -> None:
    """Work until SIGTERM or SIGINT, then drain."""
    turns = Turns(parts, wake)

    @queue.task(name=TASK)
    async def drive_workflow(workflow_id: str) -> None:
        await run_once(parts, UUID(workflow_id), reached=bool(parts.tools.available()))
        await turns.next()

    with _asked_to_stop() as stop:
        async with asyncio.TaskGroup() as beside:
            loops = (
                beside.create_task(_each(SWEEP_SECONDS, lambda: _sweep(turns, queue), stop)),
                beside.create_task(_each(REFRESH_SECONDS, refresh, stop)),
            )
            while not stop.is_set():
                await _take_wake_ups(parts, queue, concurrency, stop)
            for loop in loops:
                loop.cancel()


async def _take_wake_ups(parts: Parts, queue: App, concurrency: int, stop: asyncio.Event) -> None:
    """Run the queue's worker until it is asked to stop, or until the queue's connection fails."""
    heartbeat = min(5.0, parts.lease_seconds / 3)
    worker = Worker(
        queue,
        concurrency=concurrency,
        delete_jobs="always",
        listen_notify=True,
        install_signal_handlers=False,
        fetch_job_polling_interval=POLL_SECONDS,
        update_heartbeat_interval=heartbeat,
        stalled_worker_timeout=max(parts.lease_seconds, 3 * heartbeat),
        shutdown_graceful_timeout=GRACE_SECONDS,
    )
    running = asyncio.create_task(worker.run())  # type: ignore[no-untyped-call]
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        # It drains, then ends; one that ended by itself has lost its database. No cancellation: Python 3.11's
        # wait_for, which waits for each answer of the database, loses one that meets the answer.
        worker.stop()  # type: ignore[no-untyped-call]
        await _ended(running)
    if not stop.is_set():
        await asyncio.sleep(AGAIN_SECONDS)


async def _ended(worker: asyncio.Task[None]) -> None:
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await worker
    except DATABASE_AWAY as error:
        log.warning("queue_unavailable", error=type(error).__name__)


@contextlib.contextmanager
def _asked_to_stop() -> Iterator[asyncio.Event]:
    """Give an event that a signal sets; only the main thread hears signals.

    It goes on hearing them afterwards, so that a second one does not cut short what the process still cleans up.
    """
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    heard = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()
    for number in heard:
        loop.add_signal_handler(number, stop.set)
    yield stop


class Turns:
    """Whose turn it is while one case is driven at a time: when a drive ends, the next one is woken at once."""

    def __init__(self, parts: Parts, wake: Wake) -> None:
        """Begin as if several were driven; the first sweep says."""
        self.parts, self.wake = parts, wake
        self.single = False

    async def sweep(self) -> None:
        """Wake what is due, and look whether it is one at a time."""
        await sweep.run_once(self.parts, self.wake)
        async with self.parts.pool.connection() as connection:
            self.single = await ledger.one_at_a_time(connection)

    async def next(self) -> None:
        """Wake the next one, without waiting for the next sweep."""
        if self.single:
            with contextlib.suppress(*DATABASE_AWAY):
                await sweep.run_once(self.parts, self.wake)


async def _sweep(turns: Turns, queue: App) -> None:
    parts = turns.parts
    await turns.sweep()
    for _ in range(EXPIRED_ROUNDS):  # bounded, so that a great many that end at once leave the work its share
        if await sweep.end_late(parts) == 0:
            break
    await sweep.requeue_stalled(queue, max(parts.lease_seconds, 3.0))


async def _each(seconds: float, action: Callable[[], Awaitable[object]], stop: asyncio.Event) -> None:
    """Repeat an action; a database that is away is tried again at the next turn.

    An action may swallow the one cancellation that we get, so the stop itself ends the loop too.
    """
    with contextlib.suppress(asyncio.CancelledError):
        while not stop.is_set():
            try:
                await action()
            except DATABASE_AWAY as error:
                log.warning("beside_work_failed", error=type(error).__name__)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await stop.wait()
