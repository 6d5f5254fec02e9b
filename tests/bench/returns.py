"""Normal returns on a running stack, each from its acceptance to COMPLETED: 4 calls and 2 read-backs over real MCP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from host.domain.principals import Principal
from host.engine import worker
from host.engine.accept import Origin, accept, read_case
from host.engine.drive import drive
from host.engine.wake import Wake
from host.wiring import Driver, Runtime, driver, runtime
from host.workflows.catalogue import CURRENT
from tests.bench import shop
from tests.bench.cpu import Meter, Spent, percentile
from tests.bench.figures import Figure, Sense
from tests.bench.stand import Stand, settings

CALLS = 6  # governed calls of a normal return: 4 of its own, 2 read-backs
WALL_MS, CPU_MS, RATE = 45.0, 32.0, 40.0
HOST_PER_CALL_MS, SERVER_PER_CALL_MS = 2.5, 2.2
ALONE, BATCH = 160, 10
AT_ONCE, IN_FLIGHT_BATCHES, IN_FLIGHT_BATCH = 8, 5, 64
QUEUED = 240
DONE_SECONDS_MAX = 60.0


async def no_wake(connection: AsyncConnection[Any], workflow_id: UUID) -> None:
    """Wake nobody: whoever accepts drives."""


@asynccontextmanager
async def opened(made: Stand, concurrency: int) -> AsyncIterator[Driver]:
    """Open the host in this process, as a worker would."""
    async with driver(settings(concurrency), made.links) as found:
        yield found


def principal(found: Driver) -> Principal:
    """Give the requester of all cases."""
    return found.parts.authorization.by_name()[shop.PRINCIPAL]


async def take(found: Driver, made: Stand, wake: Wake) -> UUID:
    """Accept the next case."""
    workflow, case = read_case(shop.case(next(made.numbers)), CURRENT)
    kind = found.parts.kinds[workflow.kind, workflow.release]
    return (await accept(found.parts.pool, kind, case, Origin(principal(found)), found.pins, wake)).workflow_id


async def one_return(found: Driver, made: Stand) -> UUID:
    """Take one case to COMPLETED."""
    workflow_id = await take(found, made, no_wake)
    state = await drive(found.parts, workflow_id)
    if state.task.state != "COMPLETED":
        raise RuntimeError(f"a normal return ended in {state.task.state}: {state.task.reason}")
    return workflow_id


async def timed_return(found: Driver, made: Stand) -> float:
    """Give the wall milliseconds of one return."""
    began = time.perf_counter()
    await one_return(found, made)
    return (time.perf_counter() - began) * 1000


async def warm(found: Driver, made: Stand, returns: int = 30) -> None:
    """Let connections be opened, statements be prepared and caches be filled."""
    for _ in range(returns):
        await one_return(found, made)


async def measure_alone(made: Stand) -> list[Figure]:
    """One return at a time."""
    used, walls = Spent(), []
    async with opened(made, 1) as found:
        await warm(found, made)
        for _ in range(ALONE // BATCH):
            with Meter(used, made.server_pid, made.server.process.pid):
                walls += [await timed_return(found, made) for _ in range(BATCH)]
    both = used.host + used.server
    return [
        Figure("normal return alone, median wall", median(walls), "ms", "≤", WALL_MS),
        Figure("  95th percentile", percentile(walls, 0.95), "ms"),
        _cpu("  CPU of host and server", used, both, ALONE, CPU_MS),
        *_per_call(used, ALONE, HOST_PER_CALL_MS, SERVER_PER_CALL_MS),
        _cpu("  CPU of PostgreSQL", used, used.postgres, ALONE),
        Figure("  yardstick meanwhile (14 is quiet)", median(used.yardsticks), "ms"),
    ]


async def measure_in_flight(made: Stand) -> list[Figure]:
    """Eight at a time."""
    used, rates = Spent(), []
    async with opened(made, AT_ONCE) as found:
        await warm(found, made)
        for _ in range(IN_FLIGHT_BATCHES):
            with Meter(used, made.server_pid, made.server.process.pid):
                rates.append(await _batch(found, made))
    done = IN_FLIGHT_BATCHES * IN_FLIGHT_BATCH
    return [
        Figure("returns/s, 8 in flight", median(rates), "/s", "≥", RATE),
        _cpu("  CPU of host and server", used, used.host + used.server, done),
        *_per_call(used, done, None, None),
        _cpu("  CPU of PostgreSQL", used, used.postgres, done),
        Figure("  yardstick meanwhile (14 is quiet)", median(used.yardsticks), "ms"),
    ]


async def _batch(found: Driver, made: Stand) -> float:
    """Give the returns a second of one batch, with never more than eight under way."""
    left = iter(range(IN_FLIGHT_BATCH))

    async def one() -> None:
        for _ in left:
            await one_return(found, made)

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(AT_ONCE)))
    return IN_FLIGHT_BATCH / (time.perf_counter() - began)


async def measure_queued(made: Stand) -> list[Figure]:
    """The same through the queue: cases wait there, and a worker of eight takes them."""
    used = Spent()
    async with runtime(settings(AT_ONCE), made.links) as found:
        await warm(found.driver, made)
        taken = [await take(found.driver, made, found.wake) for _ in range(QUEUED)]
        began = time.perf_counter()
        with Meter(used, made.server_pid, made.server.process.pid):
            async with _working(found):
                await _until_done(found.driver, taken)
            seconds = time.perf_counter() - began
    return [
        Figure("returns/s through the queue and a worker of 8", QUEUED / seconds, "/s"),
        _cpu("  CPU of host and server", used, used.host + used.server, QUEUED),
    ]


@asynccontextmanager
async def _working(found: Runtime) -> AsyncIterator[None]:
    """Work as `kessai worker` does, without its signals."""
    parts = found.driver.parts
    work = worker.work(parts, found.queue, found.wake, found.driver.listing.refresh, AT_ONCE)
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _until_done(found: Driver, taken: list[UUID]) -> None:
    query = "SELECT count(*) FROM workflow WHERE workflow_id = ANY (%s) AND control_state = 'completed'"
    async with asyncio.timeout(DONE_SECONDS_MAX):
        while True:
            async with found.parts.pool.connection() as connection:
                row = await (await connection.execute(query, (taken,))).fetchone()
            if row is not None and row[0] == len(taken):
                return
            await asyncio.sleep(0.05)


def _cpu(name: str, used: Spent, ms: float, times: int, most: float | None = None) -> Figure:
    sense: Sense | None = None if most is None else "≤"
    return Figure(name, used.quiet(ms) / times, "ms", sense, most, raw=ms / times)


def _per_call(used: Spent, returns: int, host: float | None, server: float | None) -> list[Figure]:
    return [
        _cpu("  CPU of the host per governed call", used, used.host, returns * CALLS, host),
        _cpu("  CPU of the tool server per governed call", used, used.server, returns * CALLS, server),
    ]
