"""A claim's investigation on a running stack: four reads and 23 checkpoints over real MCP, and its repetition."""

from __future__ import annotations

import asyncio
import time
from statistics import median
from typing import Any
from uuid import UUID

from host.engine.accept import Origin, accept, read_case
from host.engine.drive import drive
from host.wiring import Driver
from host.workflows.catalogue import CURRENT
from tests.bench import returns
from tests.bench.cpu import Meter, Spent, percentile
from tests.bench.figures import Figure
from tests.bench.stand import Stand

PRINCIPAL = "claims-desk@anshin-jp"
WALL_MS, CPU_MS, RATE, REPLAY_MS = 30.0, 22.0, 60.0, 5.0
COMMITS, CHECKPOINTS = 5, 23
ALONE, BATCH, WARM, REPLAYS = 160, 10, 30, 100
AT_ONCE, BATCHES, IN_FLIGHT = 8, 5, 64


def case(number: int) -> dict[str, Any]:
    """Ask for the demo's claim once more, as another request."""
    return {
        "kind": "claims", "request_id": f"bench-{number}", "claimant_id": "P-3002", "case_id": "C-102",
        "requested_at": "2026-07-30T10:00:00+09:00",
    }  # fmt: skip


async def _take(found: Driver, document: dict[str, Any]) -> UUID:
    workflow, read = read_case(document, CURRENT)
    kind = found.parts.kinds[workflow.kind, workflow.release]
    principal = found.parts.authorization.by_name()[PRINCIPAL]
    return (await accept(found.parts.pool, kind, read, Origin(principal), found.pins, returns.no_wake)).workflow_id


async def _run(found: Driver, document: dict[str, Any]) -> UUID:
    """Take one case to its answer."""
    workflow_id = await _take(found, document)
    state = await drive(found.parts, workflow_id)
    if state.task.state != "COMPLETED":
        raise RuntimeError(f"an investigation ended in {state.task.state}: {state.task.reason}")
    return workflow_id


async def _timed(found: Driver, document: dict[str, Any]) -> float:
    began = time.perf_counter()
    await _run(found, document)
    return (time.perf_counter() - began) * 1000


async def measure(made: Stand) -> list[Figure]:
    """Alone, again, and eight at a time."""
    async with returns.opened(made, AT_ONCE) as found:
        for _ in range(WARM):
            await _run(found, case(next(made.numbers)))
        return [*await _alone(found, made), *await _counted(found, made), *await _in_flight(found, made)]


async def _alone(found: Driver, made: Stand) -> list[Figure]:
    used, walls = Spent(), []
    for _ in range(ALONE // BATCH):
        with Meter(used, made.server_pid, made.server.process.pid):
            walls += [await _timed(found, case(next(made.numbers))) for _ in range(BATCH)]
    both = used.host + used.server
    again = case(next(made.numbers))
    await _run(found, again)
    replays = [await _timed(found, again) for _ in range(REPLAYS)]
    return [
        Figure("investigation alone, median wall", median(walls), "ms", "≤", WALL_MS),
        Figure("  95th percentile", percentile(walls, 0.95), "ms"),
        Figure("  CPU of host and server", used.quiet(both) / ALONE, "ms", "≤", CPU_MS, raw=both / ALONE),
        Figure("  yardstick meanwhile (14 is quiet)", median(used.yardsticks), "ms"),
        Figure("the same request again, median wall", median(replays), "ms", "≤", REPLAY_MS),
    ]


async def _counted(found: Driver, made: Stand) -> list[Figure]:
    """Count the versions that the row went through: each is one engine commit, the first the accepting one."""
    async with found.parts.pool.connection() as connection:
        (before,) = await _one(connection, "SELECT pg_current_wal_insert_lsn()::text")
        workflow_id = await _run(found, case(next(made.numbers)))
        (wal,) = await _one(
            connection, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s::pg_lsn)::float8", before
        )
        version, checkpoints = await _one(
            connection,
            "SELECT w.version, (SELECT count(*) FROM checkpoint c WHERE c.workflow_id = w.workflow_id)"
            " FROM workflow w WHERE workflow_id = %s",
            workflow_id,
        )
    return [
        Figure("engine commits beside the accepting one", version - 1, "", "=", COMMITS),
        Figure("checkpoints", checkpoints, "", "=", CHECKPOINTS),
        Figure("WAL of one run, both databases", wal, "bytes"),
    ]


async def _one(connection: Any, query: str, *values: object) -> tuple[Any, ...]:
    ((*row,),) = await (await connection.execute(query, values)).fetchall()
    return tuple(row)


async def _in_flight(found: Driver, made: Stand) -> list[Figure]:
    used, rates = Spent(), []
    for _ in range(BATCHES):
        with Meter(used, made.server_pid, made.server.process.pid):
            rates.append(await _batch(found, made))
    return [
        Figure("investigations/s, 8 in flight", median(rates), "/s", "≥", RATE),
        Figure("  yardstick meanwhile (14 is quiet)", median(used.yardsticks), "ms"),
    ]


async def _batch(found: Driver, made: Stand) -> float:
    left = iter(range(IN_FLIGHT))

    async def one() -> None:
        for _ in left:
            await _run(found, case(next(made.numbers)))

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(AT_ONCE)))
    return IN_FLIGHT / (time.perf_counter() - began)
