"""Nobody keeps the record from being sealed by a lock, and what sealing costs does not grow with what is sealed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import AsyncConnection

from host.store import seals
from host.store.migrate import ROLES as HOST_ROLES
from shared_contracts.seal import SideName
from tests.integration.test_record_acts import acted, switched
from tests.support.engine import ROLE, asynchronous
from tests.support.sealing import Kept, record, role_dsn, worked_shop
from tests.support.tool_shop import Shop
from tool_server.store import seals as tool_seals
from tool_server.store.pool import Pool
from tool_server.store.roles import ROLES as TOOL_ROLES

# The strongest lock of each table and view that there is for this role, and every row of it that it may lock. To
# prepare a statement takes its lock before anybody asks for a right to it.
HOLD: LiteralString = """DO $$
DECLARE
    r text;
    m text;
BEGIN
    FOR r IN SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'v')
             AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) LOOP
        FOREACH m IN ARRAY ARRAY['LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', 'LOCK TABLE %s IN EXCLUSIVE MODE',
                                 'LOCK TABLE %s IN SHARE MODE', 'LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE',
                                 'PREPARE "%1$s" AS DELETE FROM %1$s', 'LOCK TABLE %s IN ROW EXCLUSIVE MODE',
                                 'LOCK TABLE %s IN ACCESS SHARE MODE', 'SELECT FROM %s FOR UPDATE'] LOOP
            BEGIN
                EXECUTE format(m, r);
            EXCEPTION WHEN insufficient_privilege OR lock_not_available OR feature_not_supported
                OR object_not_in_prerequisite_state THEN NULL;
            END;
        END LOOP;
    END LOOP;
END $$"""
HELD: LiteralString = (
    "SELECT relation::regclass::text, mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'"
)
NUMBERS: LiteralString = (  # that whoever runs this holds by a number, which every role may take
    "SELECT classid::bigint << 32 | objid::bigint FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"
)
WAITS: LiteralString = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'seal_chain'::regclass"
READ_WHOLE: LiteralString = "SELECT relname, seq_tup_read FROM pg_stat_xact_user_tables WHERE seq_tup_read > 10"
BATCH: dict[SideName, LiteralString] = {
    "host": "SELECT * FROM seal_batch(500)", "tools": "SELECT * FROM calls.seal_batch(500)",
}  # fmt: skip
MORE_CALLS = (
    "INSERT INTO calls.log (iss, sub, client_id, kid, jti, use, tenant_id, task_id, tool, outcome, duration_us)"
    " SELECT iss, sub, client_id, kid, 'more', use, tenant_id, task_id, tool, outcome, duration_us"
    " FROM (SELECT * FROM calls.log LIMIT 1) AS l, generate_series(1, 2000)"
)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return worked_shop(tmp_path)


def sealers(kept: Kept) -> dict[SideName, str]:
    return {"host": kept.sealer.dsn, "tools": kept.shop.database.dsn("tools_sealer")}


def others(kept: Kept) -> Iterator[tuple[SideName, str]]:
    """Every role of a program but the sealers', by its connection."""
    for role in HOST_ROLES:
        if role != "host_sealer":
            yield "host", kept.parts.pool.conninfo if role == ROLE else role_dsn(kept.admin, role)
    for role in TOOL_ROLES:
        if role != "tools_sealer":
            yield "tools", kept.shop.database.dsn(role)


def numbers(dsn: str, batch: LiteralString) -> list[int]:
    """The numbers that a sealer locks."""
    with psycopg.connect(dsn) as sealer:
        sealer.execute(batch)
        found = [number for (number,) in sealer.execute(NUMBERS).fetchall()]
        sealer.rollback()
    return found


@asynchronous
async def test_no_role_keeps_the_record_from_being_sealed_by_all_the_locks_that_it_may_take(shop: Shop):
    async with record(shop) as kept:
        await switched(shop.database.owner)
        acted(kept)
        by_number = {side: numbers(dsn, BATCH[side]) for side, dsn in sealers(kept).items()}
        held: set[tuple[Any, ...]] = set()
        with ExitStack() as holding:
            for side, dsn in others(kept):
                other = holding.enter_context(psycopg.connect(dsn))
                other.execute("SET lock_timeout = 5")  # one of them has it already
                other.execute(HOLD)
                for number in by_number[side]:
                    other.execute("SELECT pg_try_advisory_lock(%s)", (number,))
                held.update(other.execute(HELD).fetchall())
            await kept.seal()  # waits for nobody for longer than two seconds
            async with kept.parts.pool.connection() as connection:
                ours = await seals.lag(connection)
            async with Pool("sealer", sealers(kept)["tools"]) as pool:
                theirs = await tool_seals.lag(pool)
            holding.pop_all().close()
        assert (ours.waits, theirs.waits) == (None, None)
        assert held >= {
            ("audit", "RowExclusiveLock"), ("seal_chain", "RowExclusiveLock"), ("seal_link", "RowExclusiveLock"),
            ("calls.log", "RowExclusiveLock"), ("calls.seal_chain", "RowExclusiveLock"),
            ("procrastinate_jobs", "AccessExclusiveLock"),
        }  # fmt: skip
        assert all(verdict.findings == [] and verdict.heads == 1 for verdict in (await kept.verified()).values())


@asynchronous
async def test_a_cut_waits_for_the_sealer_that_is_at_work_and_a_sealer_waits_for_no_cut(shop: Shop):
    async with record(shop) as kept:
        await kept.seal()
        kept.note("N-4")
        later = datetime.now(UTC) + timedelta(hours=1)
        async with await AsyncConnection.connect(kept.admin, autocommit=True) as owner:
            with psycopg.connect(kept.sealer.dsn) as sealer:
                assert len(sealer.execute(BATCH["host"]).fetchall()) == 1
                cutting = asyncio.create_task(seals.cut(owner, later, "ito"))
                async with asyncio.timeout(20):
                    while kept.host(WAITS) != [(1,)]:  # noqa: ASYNC110 - only the database tells
                        await asyncio.sleep(0.02)
                await kept.seal_host_alone()  # finds it busy
            assert await cutting > 0
        await kept.seal()
        assert (await kept.found()) == []


@asynchronous
async def test_a_batch_reads_no_table_from_its_beginning_also_where_it_was_planned_when_there_was_little(shop: Shop):
    async with record(shop) as kept:
        wrong = {}
        for side, dsn in sealers(kept).items():
            with psycopg.connect(dsn, autocommit=True) as sealer:
                sealer.execute(BATCH[side])
                kept.note(*(f"M-{n}" for n in range(2000))) if side == "host" else kept.tools(MORE_CALLS)
                for _ in range(2):
                    with sealer.transaction():
                        assert len(sealer.execute(BATCH[side]).fetchall()) > 0
                        wrong[side] = sealer.execute(READ_WHOLE).fetchall()
    assert wrong == {"host": [], "tools": []}
