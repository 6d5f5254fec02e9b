"""Durable steps against what the same PostgreSQL can do if the program costs nothing, in one run.

The seven steps of a normal return are recorded once from the real engine, then replayed for fresh workflows by 16
connections at once: what is measured is `commit_step` itself, with its checkpoints, ledger, decision and audit
rows. `pgbench` commits one-row updates with as many clients before and after; the ratio uses their geometric mean.
"""

from __future__ import annotations

import asyncio
import math
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg import AsyncConnection

from host.engine.drive import drive
from host.engine.wake import Wake, queue_app, waker
from host.store import ledger
from tests.support.engine import engine, rows, take
from tests.support.fake_tools import FakeTools

IN_FLIGHT = 16
SECONDS = 5.0


@dataclass(frozen=True)
class Recorded:
    """One normal return: what accepted it, and the payload of each of its steps."""

    case: dict[str, Any]
    steps: list[dict[str, Any]]


async def record() -> tuple[Recorded, dict[str, float]]:
    """Drive one return with the real engine and keep what it committed."""
    steps: list[dict[str, Any]] = []
    original = ledger.commit_step

    async def keeping(connection: Any, workflow_id: UUID, version: int, fence: int, step: dict[str, Any]) -> Any:
        steps.append(step)
        return await original(connection, workflow_id, version, fence, step)

    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        ledger.commit_step = keeping
        try:
            await drive(parts, workflow_id)
        finally:
            ledger.commit_step = original
        row = (await rows(parts, "SELECT to_jsonb(w) FROM workflow w"))[0][0]
        checkpoints = (await rows(parts, "SELECT count(*) FROM checkpoint"))[0][0]
    return Recorded(row, steps), {"commits": len(steps) + 1, "checkpoints": checkpoints}


async def replay(dsn: str, recorded: Recorded, seconds: float, wake: Wake | None) -> float:
    """Commit recorded steps for fresh workflows with 16 in flight; gives steps a second."""
    until = time.monotonic() + seconds
    done = 0

    async def one() -> None:
        nonlocal done
        async with await AsyncConnection.connect(dsn, autocommit=True, prepare_threshold=1) as connection:
            while time.monotonic() < until:
                steps = await _workflow(connection, recorded, wake)  # first: `+=` would read before it waits
                done += steps

    started = time.monotonic()
    await asyncio.gather(*(one() for _ in range(IN_FLIGHT)))
    return done / (time.monotonic() - started)


async def _workflow(connection: AsyncConnection[Any], recorded: Recorded, wake: Wake | None) -> int:
    fresh = str(uuid4())
    case = {**recorded.case, "workflow_id": fresh, "request_id": fresh, "body_sha256": "0" * 64}
    if wake is None:
        await ledger.accept_case(connection, case)
    else:
        async with connection.transaction():
            await ledger.accept_case(connection, case)
            await wake(connection, UUID(fresh))
    version, fence = 1, 0
    for step in recorded.steps:
        committed = await ledger.commit_step(connection, UUID(fresh), version, fence, _own(step, fresh))
        version, fence = committed.version, committed.fence
    return len(recorded.steps) + 1


def _own(step: dict[str, Any], fresh: str) -> dict[str, Any]:
    """Give a step identities of its own: the token's id and the key are unique."""
    own = dict(step)
    if "attempt_opened" in own:
        own["attempt_opened"] = {**own["attempt_opened"], "jti": uuid4().hex}
    if "effect_opened" in own:
        name = own["effect_opened"]["name"]
        units = [f"{fresh}/1"]
        own["effect_opened"] = {**own["effect_opened"], "idempotency_key": f"{fresh}:{name}", "units": units}
    return own


def one_row_rate(programs: Path, dsn: str, seconds: float) -> float:
    """Commit one-row updates with pgbench at the same number of clients; gives commits a second."""
    script = "\\set id random(1, 10000)\nUPDATE bench_row SET n = n + 1 WHERE id = :id;\n"
    command = [
        programs / "pgbench", "-n", "-M", "prepared", "-c", str(IN_FLIGHT), "-j", "2", "-T", str(int(seconds)),
        "-f", "/dev/stdin", dsn,
    ]  # fmt: skip
    found = subprocess.run(command, input=script, capture_output=True, text=True, check=True)
    match = re.search(r"tps = ([0-9.]+)", found.stdout)
    if match is None:
        raise RuntimeError(f"pgbench said nothing: {found.stderr}")
    return float(match.group(1))


async def measure(programs: Path, admin_dsn: str, host_dsn: str) -> dict[str, float]:
    """Give the ratios and the counts; refuses where a commit is not durable."""
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            row = admin.execute("SELECT current_setting(%s)", (name,)).fetchone()
            if row is None or row[0] != "on":
                raise RuntimeError(f"{name} is off: nothing would be durable, so nothing is reported")
        admin.execute("CREATE TABLE IF NOT EXISTS bench_row (id int PRIMARY KEY, n int NOT NULL)")
        admin.execute("TRUNCATE bench_row")
        admin.execute("INSERT INTO bench_row SELECT g, 0 FROM generate_series(1, 10000) g")
    recorded, counts = await record()
    queue = queue_app(host_dsn)
    async with queue.open_async():
        before = one_row_rate(programs, admin_dsn, SECONDS)
        steps = await replay(host_dsn, recorded, SECONDS, None)
        queued = await replay(host_dsn, recorded, SECONDS, waker(queue))
        after = one_row_rate(programs, admin_dsn, SECONDS)
    limit = math.sqrt(before * after)
    return {
        "one_row_commits_per_second": limit,
        "durable_steps_per_second": steps,
        "durable_steps_ratio": steps / limit,
        "with_accept_and_wake_ratio": queued / limit,
        "commits_of_a_normal_return": counts["commits"],
        "checkpoints_per_commit": counts["checkpoints"] / counts["commits"],
    }
