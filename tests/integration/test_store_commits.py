"""Steps that travel together: one transaction for all, and nobody pays for whom a step travelled with."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from host.database import database
from host.domain.control import STARTED
from host.domain.rows import Rows
from host.domain.step import Step
from host.engine.drive import drive, load
from host.engine.parts import Parts
from host.store.commits import Commits
from host.store.errors import InvariantError, StaleWorkflowError
from host.store.ledger import commit_steps
from tests.support.engine import asynchronous, engine, owners, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected

TOGETHER = 6


async def started(parts: Parts, workflow_id: UUID) -> Rows:
    """The first step of a case: the claim, and the move out of `created`."""
    state = await load(parts, workflow_id)
    kind = next(iter(parts.kinds.values()))
    step = Step(state, kind.workflow, kind.moves, claim=True, active_ms=0)
    step.go(STARTED)
    return step.rows("driver", 15.0, None)


class Held(psycopg.AsyncCursor[Any]):
    """Statements that wait until they are let go, so that steps gather behind them."""

    go: asyncio.Event
    sent: list[int]

    async def execute(self, query: Any, params: Any = None, **kwargs: Any) -> Any:
        if "commit_steps(" in str(query):
            self.sent.append(len(params["rows"].obj["workflows"]))
            await self.go.wait()
        return await super().execute(query, params, **kwargs)


def held_pool(parts: Parts) -> AsyncConnectionPool[Any]:
    Held.go, Held.sent = asyncio.Event(), []
    kwargs = {"autocommit": True, "cursor_factory": Held}
    return AsyncConnectionPool(parts.pool.conninfo, min_size=1, max_size=3, open=False, kwargs=kwargs)


async def gathered(commits: Commits, steps: list[Rows]) -> list[asyncio.Task[Any]]:
    """Commit the first step alone, and hold it until all others have gathered."""
    tasks = [asyncio.create_task(commits.commit(steps[0]))]
    while not Held.sent:  # noqa: ASYNC110 - what is waited for is a statement on its way
        await asyncio.sleep(0)
    tasks += [asyncio.create_task(commits.commit(step)) for step in steps[1:]]
    await asyncio.sleep(0)
    Held.go.set()
    return tasks


@asynchronous
async def test_steps_that_come_while_others_are_written_share_one_statement_and_one_transaction():
    async with engine(FakeTools()) as parts, held_pool(parts) as pool:
        ids = [await take(parts, request_id=f"r-{n}") for n in range(1 + TOGETHER)]
        done = await asyncio.gather(*await gathered(Commits(pool), [await started(parts, one) for one in ids]))
        assert Held.sent == [1, TOGETHER]
        assert [one.workflow_id for one in done] == ids
        assert {(one.version, one.fence) for one in done} == {(2, 1)}
        transactions = await rows(parts, "SELECT xmin::text, count(*) FROM workflow GROUP BY 1 ORDER BY 2")
        assert [count for _, count in transactions] == [1, TOGETHER]


@asynchronous
async def test_a_step_that_is_refused_takes_nobody_with_it():
    async with engine(FakeTools()) as parts, held_pool(parts) as pool:
        ids = [await take(parts, request_id=f"r-{n}") for n in range(1 + TOGETHER)]
        steps = [await started(parts, one) for one in ids]
        with owners(parts) as sql:
            sql.execute("UPDATE workflow SET version = version + 1 WHERE workflow_id = %s", (ids[-1],))
        broken = steps[-2]["checkpoints"][0] | {"seq": 9}
        steps[-2] = {**steps[-2], "checkpoints": [broken]}
        done = await asyncio.gather(*await gathered(Commits(pool), steps), return_exceptions=True)
        assert isinstance(done[-1], StaleWorkflowError)
        assert isinstance(done[-2], InvariantError)
        assert {(one.version, one.fence) for one in done[:-2]} == {(2, 1)}
        assert await rows(parts, "SELECT count(*) FROM workflow WHERE control_state = 'planning'") == [(len(ids) - 2,)]


@asynchronous
async def test_no_row_is_written_of_a_workflow_whose_version_is_not_held_against_it():
    """The functions are the only way in for the worker's role, so each of their lists is one."""
    async with engine(FakeTools()) as parts:
        done, other = await take(parts, request_id="done"), await take(parts, request_id="other")
        await drive(parts, done)
        own = await started(parts, other)
        forged = {
            "workflow_id": str(done),
            "step": 3,
            "execution_state": "verified",
            "result": {"return_id": "R-0"},
            "error": None,
            "stamps": [],
        }
        nameless = {name: value for name, value in forged.items() if name != "workflow_id"}
        before = await rows(parts, "SELECT result FROM call ORDER BY step")
        for row in (forged, nameless):
            for workflows in (own["workflows"], []):
                async with parts.pool.connection() as connection:
                    with pytest.raises(InvariantError, match="none of the workflows"):
                        await commit_steps(connection, {**own, "workflows": workflows, "calls_updated": [row]})
        assert await rows(parts, "SELECT result FROM call ORDER BY step") == before


@asynchronous
async def test_a_group_that_found_no_connection_is_not_joined_by_those_who_come_after_it():
    async with engine(FakeTools()) as parts:
        ids = [await take(parts, request_id=f"r-{n}") for n in range(2)]
        kwargs = {"autocommit": True}
        async with AsyncConnectionPool(
            parts.pool.conninfo, min_size=1, max_size=1, open=False, timeout=0.3, kwargs=kwargs
        ) as narrow:
            commits = Commits(narrow)
            async with narrow.connection():
                with pytest.raises(PoolTimeout):
                    await commits.commit(await started(parts, ids[0]))
            assert (await commits.commit(await started(parts, ids[1]))).version == 2
            assert (await commits.commit(await started(parts, ids[0]))).version == 2


@asynchronous
async def test_a_step_that_no_json_can_say_harms_nobody_else():
    async with engine(FakeTools()) as parts, held_pool(parts) as pool:
        ids = [await take(parts, request_id=f"r-{n}") for n in range(1 + TOGETHER)]
        steps = [await started(parts, one) for one in ids]
        steps[-1] = {**steps[-1], "audit": [{"workflow_id": str(ids[-1]), "details": object()}]}
        done = await asyncio.gather(*await gathered(Commits(pool), steps), return_exceptions=True)
        assert isinstance(done[-1], TypeError)
        assert {one.version for one in done[:-1]} == {2}


@asynchronous
async def test_a_row_that_somebody_holds_delays_the_others_and_stops_only_its_own_workflow():
    async with engine(FakeTools()) as parts, database(parts.pool.conninfo) as pool:
        ids = [await take(parts, request_id=f"r-{n}") for n in range(TOGETHER)]
        commits, steps = Commits(pool), [await started(parts, one) for one in ids]
        with owners(parts) as sql, sql.transaction():
            sql.execute("SELECT FROM workflow WHERE workflow_id = %s FOR UPDATE", (ids[0],))
            together = (commits.commit(step) for step in steps)
            done = await asyncio.wait_for(asyncio.gather(*together, return_exceptions=True), 20)
        assert isinstance(done[0], psycopg.errors.LockNotAvailable)
        assert {one.version for one in done[1:]} == {2}


@asynchronous
async def test_two_steps_of_one_workflow_never_travel_together_and_the_second_is_stale():
    async with engine(FakeTools()) as parts, held_pool(parts) as pool:
        ids = [await take(parts, request_id=f"r-{n}") for n in range(2)]
        steps = [await started(parts, one) for one in ids]
        done = await asyncio.gather(*await gathered(Commits(pool), [*steps, steps[-1]]), return_exceptions=True)
        assert Held.sent == [1, 1, 1]
        assert sorted(type(one).__name__ for one in done[-2:]) == ["Committed", "StaleWorkflowError"]


@asynchronous
async def test_a_driver_that_stops_waiting_leaves_the_others_their_commit():
    async with engine(FakeTools()) as parts, held_pool(parts) as pool:
        ids = [await take(parts, request_id=f"r-{n}") for n in range(1 + TOGETHER)]
        tasks = await gathered(Commits(pool), [await started(parts, one) for one in ids])
        tasks[-1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert tasks[-1].cancelled()
        assert {task.result().version for task in tasks[:-1]} == {2}


GROWING = ("workflow", "checkpoint", "decision", "call", "attempt", "effect", "audit", "outbox")
READ = """
SELECT relname, seq_tup_read::int, coalesce(idx_tup_fetch, 0)::int FROM pg_stat_xact_user_tables
 WHERE relname = ANY(%s)
"""


class Counted(psycopg.AsyncCursor[Any]):
    """Adds up the rows that steps read, table by table: without an index, and with one."""

    whole: Counter[str]
    by_key: Counter[str]

    async def execute(self, query: Any, params: Any = None, **kwargs: Any) -> Any:
        if "commit_steps(" not in str(query):
            return await super().execute(query, params, **kwargs)
        async with self.connection.transaction():
            await self.add(-1)
            done = await super().execute(query, params, **kwargs)
            await psycopg.AsyncCursor(self.connection).execute("SET CONSTRAINTS ALL IMMEDIATE")
            await self.add(+1)
        return done

    async def add(self, sign: int) -> None:
        """Add what the session has read so far, or take it away."""
        cursor = await psycopg.AsyncCursor(self.connection).execute(READ, (list(GROWING),))
        for table, whole, by_key in await cursor.fetchall():
            self.whole[table] += sign * whole
            self.by_key[table] += sign * by_key


@asynchronous
async def test_what_a_step_reads_does_not_grow_with_what_is_there():
    """Planned while little was there, each statement goes by keys all the same once there is much."""
    tools = FakeTools()
    kwargs = {"autocommit": True, "cursor_factory": Counted}
    async with (
        engine(tools) as parts,
        AsyncConnectionPool(parts.pool.conninfo, min_size=1, max_size=1, open=False, kwargs=kwargs) as pool,
    ):
        read: list[Counter[str]] = []
        for n in range(40):
            if n in {2, 8}:
                with owners(parts) as sql:
                    sql.execute("ANALYZE")  # as the server does by itself, now and then: every plan is made anew
            Counted.whole, Counted.by_key = Counter(), Counter()
            tools.script["create_return"] = [rejected("rate_limited")]  # an effect that is closed and opened again
            ended = await settle(replace(parts, pool=pool), await take(parts, request_id=f"r-{n}"))
            assert ended.task.state == "COMPLETED"
            assert +Counted.whole == Counter()
            read.append(Counted.by_key)
    # the least of several, since a retry may take a commit more; a table read whole would add thirty rows to each
    assert all(0 < min(by_key[table] for by_key in read[30:]) < read[0][table] + 15 for table in GROWING[:6])
