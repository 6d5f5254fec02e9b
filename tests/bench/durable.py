"""Durable steps against what the same PostgreSQL can do where the program costs nothing, in one run.

The steps of a normal return are recorded once from the real engine, then replayed for fresh workflows with 16 in
flight, through the engine's own pool and statements: what is measured is the engine's own commit, with its checkpoints,
ledger, decision and audit rows. With the queue, each workflow is accepted together with its wake-up in one
transaction, and a worker of the queue fetches the wake-up and commits the steps. `pgbench` commits one-row updates
with as many clients before, between and after; a ratio uses the geometric mean of its two neighbours.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg

from host.database import Pool, database
from host.domain.rows import Rows
from host.engine.wake import TASK, Wake, queue_app, waker
from host.engine.worker import POLL_SECONDS
from host.stack.serving import ADMIN
from host.store import ledger
from host.store.commits import Commits
from host.wiring import Driver
from tests.bench.cpu import Meter, Spent
from tests.bench.figures import Figure
from tests.bench.returns import one_return
from tests.bench.stand import NotDurableError, Stand, wal_syncs

IN_FLIGHT = 16
SECONDS = 3.0
WARM_SECONDS = 1.5  # sixteen sessions read the catalogue and plan their statements
AHEAD = 64  # wake-ups that wait for the worker
STEPS_MIN, QUEUED_MIN = 0.18, 0.05


@dataclass(frozen=True)
class Recorded:
    """One normal return: what accepted it, and the payload of each of its steps."""

    case: dict[str, Any]
    steps: list[Rows]


async def record(made: Stand, driver: Driver) -> Recorded:
    """Drive one return with the real engine and keep what it committed."""
    steps: list[Rows] = []
    original = Commits.commit

    async def keeping(self: Commits, step: Rows) -> Any:
        steps.append(step)
        return await original(self, step)

    Commits.commit = keeping  # type: ignore[method-assign]  # a spy, for one return
    try:
        workflow_id = await one_return(driver, made)
    finally:
        Commits.commit = original  # type: ignore[method-assign]
    with psycopg.connect(made.admin("host")) as admin:
        row = admin.execute("SELECT to_jsonb(w) FROM workflow w WHERE workflow_id = %s", (workflow_id,)).fetchone()
    if row is None:
        raise RuntimeError("the recorded return is gone")
    return Recorded(row[0], steps)


async def measure(made: Stand, driver: Driver) -> list[Figure]:
    """Give the ratios, and what a step costs in CPU; refuses where nothing reached the disk."""
    recorded = await record(made, driver)
    syncs = wal_syncs(made)
    steps, queued = Spent(), Spent()
    _prepare_one_row(made)
    limits = [_one_row_rate(made)]
    async with database(made.links.dsn, IN_FLIGHT) as pool:
        await _alone(pool, recorded, WARM_SECONDS)
        with Meter(steps, made.server_pid, made.server.process.pid):
            rate = await _alone(pool, recorded, SECONDS)
        limits.append(_one_row_rate(made))
        with Meter(queued, made.server_pid, made.server.process.pid):
            rate_queued = await _queued(made, pool, recorded)
    limits.append(_one_row_rate(made))
    if wal_syncs(made) <= syncs:
        raise NotDurableError("the log was never brought to the disk while steps were committed")
    done = rate * SECONDS
    return [
        Figure("pgbench, one-row commits/s at 16 clients", math.prod(limits) ** (1 / len(limits)), "/s"),
        Figure("durable steps/s at 16 in flight", rate, "/s"),
        Figure("  of pgbench's one-row rate", rate / math.sqrt(limits[0] * limits[1]), "", "≥", STEPS_MIN),
        Figure("durable steps/s through the queue, 16 in flight", rate_queued, "/s"),
        Figure("  of pgbench's one-row rate", rate_queued / math.sqrt(limits[1] * limits[2]), "", "≥", QUEUED_MIN),
        Figure("host CPU per durable step, 16 in flight", steps.quiet(steps.host) / done, "ms", raw=steps.host / done),
        Figure("PostgreSQL CPU per durable step", steps.quiet(steps.postgres) / done, "ms", raw=steps.postgres / done),
        Figure("  both waiting for a processor, per step", steps.queued / done, "ms"),
    ]


async def _alone(pool: Pool, recorded: Recorded, seconds: float) -> float:
    """Commit recorded steps for fresh workflows with 16 in flight; gives steps a second."""
    until = time.monotonic() + seconds
    done = 0

    commits = Commits(pool)

    async def one() -> None:
        nonlocal done
        while time.monotonic() < until:
            fresh = uuid4()
            async with pool.connection() as connection:
                await ledger.accept_case(connection, _case(recorded, fresh))
            await _steps(commits, recorded, fresh)
            done += len(recorded.steps) + 1

    started = time.monotonic()
    await asyncio.gather(*(one() for _ in range(IN_FLIGHT)))
    return done / (time.monotonic() - started)


async def _queued(made: Stand, pool: Pool, recorded: Recorded) -> float:
    """The same, each workflow woken through the queue by the transaction that accepts it."""
    queue, commits = queue_app(made.links.dsn), Commits(pool)
    waiting = asyncio.Semaphore(AHEAD)
    done = 0

    @queue.task(name=TASK)
    async def replay(workflow_id: str) -> None:
        nonlocal done
        await _steps(commits, recorded, UUID(workflow_id))
        done += len(recorded.steps) + 1
        waiting.release()

    async with queue.open_async(), _beside(_accept(pool, recorded, waiting, waker(queue))):
        worker = queue.run_worker_async(
            concurrency=IN_FLIGHT, delete_jobs="always", fetch_job_polling_interval=POLL_SECONDS,
            install_signal_handlers=False,
        )  # fmt: skip
        async with _beside(worker):
            started = time.monotonic()
            await asyncio.sleep(SECONDS)
            return done / (time.monotonic() - started)


async def _accept(pool: Pool, recorded: Recorded, waiting: asyncio.Semaphore, wake: Wake) -> None:
    while True:
        await waiting.acquire()
        fresh = uuid4()
        async with pool.connection() as connection, connection.transaction():
            await ledger.accept_case(connection, _case(recorded, fresh))
            await wake(connection, fresh)


@asynccontextmanager
async def _beside(work: Any) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


def _case(recorded: Recorded, fresh: UUID) -> dict[str, Any]:
    return {**recorded.case, "workflow_id": str(fresh), "request_id": str(fresh), "body_sha256": "0" * 64}


async def _steps(commits: Commits, recorded: Recorded, fresh: UUID) -> None:
    version, fence = 1, 0
    for step in recorded.steps:
        committed = await commits.commit(_own(step, fresh, version, fence))
        version, fence = committed.version, committed.fence


def _own(step: Rows, fresh: UUID, version: int, fence: int) -> Rows:
    """Give a step identities of its own: the token's id and the key are unique."""
    names = {"workflow_id": str(fresh)}
    own = {table: [{**row, **names} for row in rows] for table, rows in step.items()}
    own["workflows"][0] |= {"version": version, "fence": fence}
    for row in own.get("attempts_opened", ()):
        row["jti"] = os.urandom(16).hex()
    for row in own.get("effects_opened", ()):
        row |= {"idempotency_key": f"{fresh}:{row['name']}", "units": [f"{fresh}/1"] if row["units"] else []}
    for row in own.get("contests", ()):
        row["units"] = [f"{fresh}/1"]
    for row in own.get("effects_closed", ()):
        row["external_id"] = None if row["external_id"] is None else f"R-{fresh}"
    return own


def _prepare_one_row(made: Stand) -> None:
    with psycopg.connect(made.admin(), autocommit=True) as admin:
        admin.execute("CREATE TABLE IF NOT EXISTS bench_row (id int PRIMARY KEY, n int NOT NULL)")
        admin.execute("TRUNCATE bench_row")
        admin.execute("INSERT INTO bench_row SELECT g, 0 FROM generate_series(1, 10000) g")


def _one_row_rate(made: Stand) -> float:
    """Commit one-row updates with pgbench at the same number of clients; gives commits a second."""
    script = "\\set id random(1, 10000)\nUPDATE bench_row SET n = n + 1 WHERE id = :id;\n"
    command = [
        str(made.pgbench), "-n", "-M", "prepared", "-c", str(IN_FLIGHT), "-j", "2", "-T", str(int(SECONDS)), "-f",
        "/dev/stdin", "-h", str(made.server.socket_directory), "-p", str(made.server.port), "-U", ADMIN, "postgres",
    ]  # fmt: skip
    password = {"PGPASSWORD": made.cluster.admin_password()}
    found = subprocess.run(command, input=script, capture_output=True, text=True, check=False, env=password, timeout=60)
    match = re.search(r"tps = ([0-9.]+)", found.stdout)
    if match is None:
        raise RuntimeError(f"pgbench said nothing: {found.stderr}")
    return float(match.group(1))
