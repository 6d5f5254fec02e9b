"""What one normal return costs in commits, statements, checkpoints and log: exact, whatever the machine.

Transactions are counted by the server's own counter of them (`pg_snapshot_xmax`), since its statistics lag; the
least of several returns is taken, because maintenance of the server's own may fall into one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg

from host.wiring import Driver
from tests.bench.figures import Figure
from tests.bench.returns import CALLS, one_return, warm
from tests.bench.stand import Stand
from tests.support.fake_tools import FakeTools

RETURNS = 5
WAL_BATCHES, WAL_BATCH = 4, 25
SEALER = "tools_sealer"  # beside the calls, and none of theirs
_STATEMENT = re.compile(r"^@(\w+)@ LOG:  (?:statement|execute [^:]*): (.*?)(?=^@)", re.MULTILINE | re.DOTALL)


async def measure(made: Stand, driver: Driver) -> list[Figure]:
    """Count."""
    await warm(driver, made)
    own = Driver(replace(driver.parts, tools=FakeTools()), driver.listing, driver.pins)  # nobody else commits
    with psycopg.connect(made.admin("host"), autocommit=True) as admin:
        alone = min([await _transactions(admin, own, made) for _ in range(RETURNS)])
        both = min([await _transactions(admin, driver, made) for _ in range(RETURNS)])
        workflow_id = await one_return(driver, made)
        commits, checkpoints = _history(admin, workflow_id)
        wal = min([await _wal(admin, driver, made) for _ in range(WAL_BATCHES)])
        said = await _statements(admin, driver, made)
    host = said["host_rt"]
    steps = sum(count for text, count in host.items() if "FROM commit_steps(" in text)
    loads = sum(count for text, count in host.items() if "to_jsonb(w)" in text)
    accepting = 3  # BEGIN, accept_case, COMMIT: with a wake-up it would be one more
    tools = sum(sum(found.values()) for role, found in said.items() if role.startswith("tools_") and role != SEALER)
    return [
        Figure("engine commits of a normal return", alone - 1, "", "=", 7),
        Figure("  and the accepting one", commits - (alone - 1), "", "=", 1),
        Figure("checkpoints of a normal return", checkpoints, "", "=", 23),
        Figure("checkpoints per commit", checkpoints / commits),
        Figure("engine commits per governed call", (alone - 1) / CALLS),
        Figure("SQL statements per durable step", (sum(host.values()) - loads - accepting) / steps, "", "=", 1),
        Figure("  reads beside them in a whole return", loads),
        Figure("write transactions of the tool server per return", both - alone),
        Figure("SQL statements of the tool server per governed call", tools / CALLS),
        Figure("WAL per normal return, both databases", wal / 1024, "KiB"),
    ]


async def _transactions(admin: psycopg.Connection[Any], driver: Driver, made: Stand) -> int:
    before = _one(admin, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
    await one_return(driver, made)
    return int(_one(admin, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint") - before)


def _history(admin: psycopg.Connection[Any], workflow_id: UUID) -> tuple[int, int]:
    """Give how many transactions wrote a workflow's history, and how long it is."""
    query = "SELECT count(DISTINCT xmin::text), count(*) FROM checkpoint WHERE workflow_id = %s"
    row = admin.execute(query, (workflow_id,)).fetchone()
    if row is None:
        raise RuntimeError("a count gives one row")
    return int(row[0]), int(row[1])


async def _wal(admin: psycopg.Connection[Any], driver: Driver, made: Stand) -> float:
    """Give bytes per return. The least of several batches is free of the whole pages that follow a checkpoint."""
    before = _one(admin, "SELECT pg_current_wal_insert_lsn() - '0/0'")
    for _ in range(WAL_BATCH):
        await one_return(driver, made)
    return float(_one(admin, "SELECT pg_current_wal_insert_lsn() - '0/0'") - before) / WAL_BATCH


async def _statements(admin: psycopg.Connection[Any], driver: Driver, made: Stand) -> dict[str, Counter[str]]:
    """Have the server write every statement down while one return runs; gives them by role."""
    async with _logging(admin, driver, made):
        since = made.cluster.log.stat().st_size
        await one_return(driver, made)
        admin.execute("SELECT 'the last line ends here'")
        text = made.cluster.log.read_bytes()[since:].decode(errors="replace")
    found: dict[str, Counter[str]] = {}
    for role, statement in _STATEMENT.findall(text):
        found.setdefault(role, Counter())[statement] += 1
    return found


@asynccontextmanager
async def _logging(admin: psycopg.Connection[Any], driver: Driver, made: Stand) -> AsyncIterator[None]:
    names = {"log_statement": "all", "log_line_prefix": "@%u@ "}
    for name, value in names.items():
        admin.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
    admin.execute("SELECT pg_reload_conf()")
    try:
        await warm(driver, made, 3)  # a session takes a new setting over before its next statement
        yield
    finally:
        for name in names:
            admin.execute(f"ALTER SYSTEM RESET {name}".encode())
        admin.execute("SELECT pg_reload_conf()")


def _one(admin: psycopg.Connection[Any], query: str) -> Any:
    row = admin.execute(query.encode()).fetchone()
    return None if row is None else row[0]
