"""A database that drops connections, and one that must not be held: nothing is lost, nothing waits in a transaction."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool

from host.database import NotReadyError, database
from host.domain.proposals import PlannerView
from host.engine.drive import UnknownWorkflowError, drive, load
from host.engine.worker import run_once
from host.workflows.returns import RETURNS
from tests.support.cluster import KEPT
from tests.support.engine import advance_clock, asynchronous, engine, owners, rows, take
from tests.support.engine import parts as parts_over
from tests.support.fake_tools import FakeTools
from tests.support.scripted_planner import ScriptedPlanner


@asynchronous
async def test_invariant_4_no_transaction_is_open_while_the_planner_or_a_tool_is_at_work():
    """Twenty slow workflows over two connections: nobody waits for a connection, no session idles in a transaction."""
    tools, idle = FakeTools(), []

    async def pause() -> None:
        await asyncio.sleep(0.02)  # the planner's own time

    async def slow(request: Any) -> Any:
        await asyncio.sleep(0.05)  # the tool's own time
        return tools.honest(request)

    tools.script = {tool: [slow] * 99 for tool in ("get_order", "create_return", "get_return", "send_return_notice")}
    planner = ScriptedPlanner(deterministic=False, thinking=pause)
    async with engine(tools, planner) as parts:
        ids = [await take(parts, request_id=f"w-{n}", order_id=f"A-{n}") for n in range(20)]
        options = {"min_size": 2, "max_size": 2, "open": False, "timeout": 5, "kwargs": {"autocommit": True}}
        async with AsyncConnectionPool(parts.pool.conninfo, **options) as narrow:
            few = await parts_over(narrow, tools, planner)
            driving = asyncio.gather(*(drive(few, one) for one in ids))
            while not driving.done():
                idle += await rows(
                    parts,
                    "SELECT state, now() - state_change FROM pg_stat_activity WHERE datname = current_database() "
                    "AND state LIKE 'idle in transaction%%'",
                )
                await asyncio.sleep(0.01)
            states = await driving
    assert {state.task.state for state in states} == {"COMPLETED"}
    assert idle == []
    assert len(tools.executed) == 40


@asynchronous
async def test_a_schema_that_somebody_holds_is_told_of_and_not_waited_for():
    async with engine(FakeTools()) as parts:
        with owners(parts) as holder, holder.transaction():
            holder.execute("LOCK TABLE schema_version")
            with pytest.raises(NotReadyError, match="held up, as by a migration"):
                async with asyncio.timeout(8), database(parts.pool.conninfo):
                    pass


def terminate(parts: Any) -> int:
    """Cut every session of the database but this one."""
    with owners(parts) as sql:
        cut = sql.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> %s",
            (KEPT,),
        ).fetchone()
    return 0 if cut is None else int(cut[0])


CALLED = ["get_order", "check_return_policy", "create_return", "get_return", "send_return_notice", "find_notice"]


@pytest.mark.parametrize("tool", CALLED)
def test_sessions_that_are_cut_during_a_call_cost_one_failed_step_and_lose_nothing(tool):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:

            def cut(request: Any) -> Any:
                answer = tools.honest(request)
                assert terminate(parts) > 0
                return answer

            tools.script[tool] = [cut]
            workflow_id = await take(parts)
            assert await run_once(parts, workflow_id) is None  # a fault of the database ends in a log line
            advance_clock(parts, 16)
            state = await healed(parts, workflow_id)
        assert state.task.state == "COMPLETED"
        assert [name for name, _ in tools.executed] == ["create_return", "send_return_notice"]
        assert state.control.recoveries == 1

    run()


class Cut:
    """A connection that is lost right after a commit was sent: whether it is there, the driver cannot know."""

    def __init__(self, parts: Any, at: int, *, committed: bool) -> None:
        self.parts, self.at, self.committed, self.seen = parts, at, committed, 0

    def cursor(self) -> type[psycopg.AsyncCursor[Any]]:
        cut = self

        class Losing(psycopg.AsyncCursor[Any]):
            async def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
                if "commit_steps(" in str(query):
                    cut.seen += 1
                    if cut.seen == cut.at:
                        if cut.committed:
                            await super().execute(query, *args, **kwargs)
                        terminate(cut.parts)
                        await super().execute("SELECT 1")
                return await super().execute(query, *args, **kwargs)

        return Losing


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "not committed"])
@pytest.mark.parametrize("at", range(1, 8))
def test_a_commit_of_which_nobody_knows_is_read_again_and_never_taken_for_granted(at, committed):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            cut = Cut(parts, at, committed=committed)
            kwargs = {"autocommit": True, "cursor_factory": cut.cursor()}
            async with AsyncConnectionPool(
                parts.pool.conninfo, min_size=1, max_size=2, open=False, kwargs=kwargs
            ) as pool:
                assert await run_once(replace(parts, pool=pool), workflow_id) is None
            advance_clock(parts, 16)
            state = await healed(parts, workflow_id)
            ((checkpoints, folded),) = await rows(parts, "SELECT (SELECT count(*) FROM checkpoint), seq FROM workflow")
        assert state.task.state == "COMPLETED"
        assert [name for name, _ in tools.executed] == ["create_return", "send_return_notice"]
        assert checkpoints == folded

    run()


async def healed(parts: Any, workflow_id: Any) -> Any:
    """Go on as a worker does: the pool's connections were cut too, each costs at most one try."""
    for _ in range(10):
        state = await run_once(parts, workflow_id)
        if state is not None:
            return state
    raise AssertionError("the pool does not heal")


@asynchronous
async def test_a_wake_up_for_a_workflow_that_is_not_there_is_a_log_line():
    async with engine(FakeTools()) as parts:
        missing = UUID(int=1)
        assert await run_once(parts, missing) is None
        with pytest.raises(UnknownWorkflowError):
            await drive(parts, missing)


@asynchronous
async def test_a_lease_is_renewed_again_after_the_database_was_away_for_a_moment():
    tools = FakeTools()
    async with engine(tools, lease_seconds=0.9) as parts:
        workflow_id = await take(parts)
        held: list[bool] = []

        async def slow(request: Any) -> Any:
            await asyncio.sleep(0.5)  # the call's own time: the first renewal has been made
            terminate(parts)
            for _ in range(8):
                await asyncio.sleep(0.2)  # further renewals, the first of them over a dead connection
                held.append(await leased(parts, workflow_id))
            return tools.honest(request)

        tools.script["get_order"] = [slow]
        await run_once(parts, workflow_id)
    assert held[-4:] == [True] * 4


async def leased(parts: Any, workflow_id: Any) -> bool:
    with owners(parts) as sql:
        row = sql.execute(
            "SELECT lease_until > clock_now() FROM workflow WHERE workflow_id = %s", (workflow_id,)
        ).fetchone()
    return row is not None and row[0] is True


@asynchronous
async def test_invariant_12_leases_and_due_times_follow_the_databases_clock_and_no_processes_own():
    """With the database's clock a day ahead of ours, what it calls due is due and what it calls leased is leased."""
    tools = FakeTools()
    async with engine(tools) as parts:
        advance_clock(parts, 86_400)
        workflow_id = await take(parts)
        seen: list[Any] = []

        async def looking(request: Any) -> Any:
            seen.append((await load(parts, workflow_id)).control.leased)
            seen.extend(await rows(parts, "SELECT lease_until - now() > interval '23 h' FROM workflow"))
            return tools.honest(request)

        tools.script["get_order"] = [looking]
        state = await drive(parts, workflow_id)
    assert seen == [True, (True,)]
    assert state.task.state == "COMPLETED"
    assert state.control.active_ms < 10_000


@asynchronous
async def test_invariant_8_a_case_with_words_that_hide_controls_and_quotes_is_stored_and_driven_as_it_is():
    """Customer text is data: quotes, percent signs, literal escapes and markup reach no statement."""
    words = "'; DROP TABLE workflow; -- %(version)s %s {} \\u0000 \u202e\u200b $$ </script> 返品"
    views: list[PlannerView] = []

    def keeping(view: PlannerView) -> Any:
        views.append(view)
        return RETURNS.propose(view)

    async with engine(FakeTools(), ScriptedPlanner(always=keeping)) as parts:
        state = await drive(parts, await take(parts, message=words))
        ((stored,),) = await rows(parts, "SELECT case_body ->> 'message' FROM workflow")
    assert state.task.state == "COMPLETED"
    assert stored == words
    assert views[0].case["message"] == words
