"""Two drivers at once, and a driver and somebody else: one of them writes, and nothing is lost between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool

from host.domain.step import Step
from host.domain.wait import UNITS_BUSY_SECONDS
from host.engine.drive import drive, load
from host.engine.parts import Parts
from host.store import ledger
from host.store.errors import StaleWorkflowError
from tests.support.approvals import APPROVERS, decide, trust
from tests.support.engine import (
    advance_clock,
    asynchronous,
    engage,
    engine,
    owners,
    rows,
    take,
)
from tests.support.fake_tools import FakeTools, rejected
from tests.support.scripted_planner import ScriptedPlanner

ROUNDS = 100


@dataclass
class Meeting:
    """Lets each driver read the workflow, and lets none of them write before all have read."""

    barrier: asyncio.Barrier
    versions: list[int] = field(default_factory=list)
    waited: set[str] = field(default_factory=set)

    def cursor(self, name: str) -> type[psycopg.AsyncCursor[Any]]:
        meeting = self

        class Meets(psycopg.AsyncCursor[Any]):
            async def fetchall(self) -> Any:
                found = await super().fetchall()
                for row in found:
                    if isinstance(row, dict) and "workflow" in row and name not in meeting.waited:
                        meeting.waited.add(name)
                        meeting.versions.append(row["workflow"]["version"])
                        await meeting.barrier.wait()
                return found

        return Meets


@asynccontextmanager
async def racing(parts: Parts, meeting: Meeting, name: str) -> AsyncIterator[Parts]:
    """A driver of its own, over a connection of its own, that takes part in the meeting."""
    kwargs = {"autocommit": True, "cursor_factory": meeting.cursor(name)}
    async with AsyncConnectionPool(parts.pool.conninfo, min_size=1, max_size=2, open=False, kwargs=kwargs) as pool:
        yield replace(parts, pool=pool, owner=name)


@asynchronous
async def test_of_two_drivers_that_read_the_same_version_one_commits_a_hundred_times():
    tools = FakeTools()
    meeting = Meeting(asyncio.Barrier(2))
    async with engine(tools) as parts, racing(parts, meeting, "a") as a, racing(parts, meeting, "b") as b:
        for n in range(ROUNDS):
            tools.script["get_order"] = [rejected("not_found")] * 2
            workflow_id = await take(parts, request_id=f"race-{n}")
            meeting.versions.clear()
            meeting.waited.clear()
            before = len(tools.requests)
            await asyncio.gather(drive(a, workflow_id), drive(b, workflow_id))
            assert meeting.versions == [1, 1]
            ((version, fence, state),) = await rows(
                parts, "SELECT version, fence, state FROM workflow WHERE workflow_id = %(id)s", id=workflow_id
            )
            assert (version, fence, state) == (3, 1, "REJECTED")
            assert len(tools.requests) == before + 1


@pytest.mark.parametrize("state", ["RECEIVED", "RETRY_WAIT", "dead driver"])
def test_two_drivers_on_a_whole_return_make_one_effect_each_whatever_they_start_from(state):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            for n in range(10):
                tools.executed.clear()
                meeting = Meeting(asyncio.Barrier(2))
                workflow_id = await take(parts, request_id=f"race-{n}")
                if state == "RETRY_WAIT":
                    tools.script["create_return"] = [rejected("rate_limited")]
                    await drive(parts, workflow_id)
                    advance_clock(parts, 2)
                if state == "dead driver":
                    tools.script["create_return"] = [_die(tools)]
                    with pytest.raises(ZeroDivisionError):
                        await drive(parts, workflow_id)
                    advance_clock(parts, 16)
                async with racing(parts, meeting, "a") as a, racing(parts, meeting, "b") as b:
                    await asyncio.gather(drive(a, workflow_id), drive(b, workflow_id))
                assert len(set(meeting.versions)) == 1
                assert (await load(parts, workflow_id)).task.state == "COMPLETED"
                assert sorted(name for name, _ in tools.executed) == ["create_return", "send_return_notice"]

    run()


def _die(tools: FakeTools) -> Any:
    def answer(request: Any) -> Any:
        tools.honest(request)
        raise ZeroDivisionError

    return answer


@asynchronous
async def test_a_decision_that_took_long_does_not_overwrite_what_was_decided_meanwhile():
    """A move by somebody else while the planner thinks: the stale proposal is discarded, the move stays."""
    tools, thinking, thought = FakeTools(refund=80_000), asyncio.Event(), asyncio.Event()

    async def think() -> None:
        thinking.set()
        await thought.wait()

    async with engine(tools) as parts:
        workflow_id = await take(parts)
        slow = ScriptedPlanner(deterministic=False, thinking=think)
        driving = asyncio.create_task(drive(replace(parts, planner=slow), workflow_id))
        await thinking.wait()
        with owners(parts) as connection:
            connection.execute("UPDATE workflow SET version = version + 1")
        version = (await load(parts, workflow_id)).trace.version
        slow.thinking = None
        thought.set()
        state = await driving
        calls = await rows(parts, "SELECT tool, count(*) FROM call GROUP BY tool ORDER BY tool")
    assert state.task.state == "WAITING_APPROVAL"
    assert state.trace.version > version
    assert calls == [("check_return_policy", 1), ("create_return", 1), ("get_order", 1)]
    assert [view.state for view in slow.views] == ["RECEIVED", "RECEIVED", "ORDER_VERIFIED", "ELIGIBLE"]


@asynchronous
async def test_a_row_that_is_moved_while_its_driver_is_about_to_release_it_is_driven_on():
    """The driver has found that there is nothing to do but to wait; before it lets go, the row is moved."""
    tools = FakeTools(script={"get_order": [rejected("rate_limited")]})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        moved: list[int] = []

        class Late(psycopg.AsyncCursor[Any]):
            async def execute(self, query: Any, params: Any = None, **kwargs: Any) -> Any:
                releasing = "commit_steps(" in str(query) and params["rows"].obj["workflows"][0]["release"]
                if releasing and not moved:
                    with owners(parts) as connection:
                        connection.execute("UPDATE workflow SET version = version + 1")
                    moved.append(1)
                return await super().execute(query, params, **kwargs)

        kwargs = {"autocommit": True, "cursor_factory": Late}
        async with AsyncConnectionPool(parts.pool.conninfo, min_size=1, max_size=2, open=False, kwargs=kwargs) as pool:
            state = await drive(replace(parts, pool=pool), workflow_id)
        ((lease,),) = await rows(parts, "SELECT lease_owner FROM workflow")
    assert moved == [1]
    assert lease is None
    assert state.task.state == "COMPLETED"
    assert tools.sent("get_order") == 2


@asynchronous
async def test_a_row_that_was_moved_and_released_before_its_driver_let_go_is_claimed_again_and_driven_on():
    tools = FakeTools(refund=80_000)
    async with engine(tools, approvers=APPROVERS) as parts:
        trust(parts, "tanaka")
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        advance_clock(parts, 24 * 3600 + 1)

        class Late(psycopg.AsyncCursor[Any]):
            done = False

            async def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
                if "commit_steps(" in str(query) and not Late.done:
                    Late.done = True
                    advance_clock(parts, -12 * 3600)  # the clock was wrong, and is right again
                    await decide(parts, workflow_id)
                return await super().execute(query, *args, **kwargs)

        kwargs = {"autocommit": True, "cursor_factory": Late}
        async with AsyncConnectionPool(parts.pool.conninfo, min_size=1, max_size=2, open=False, kwargs=kwargs) as pool:
            state = await drive(replace(parts, pool=pool), workflow_id)
        events = [
            e
            for (e,) in await rows(
                parts, "SELECT m.event FROM checkpoint JOIN legal_transition m USING (move_id) ORDER BY seq"
            )
        ]
    assert "expired" not in events
    assert "approved" in events
    assert state.task.state == "COMPLETED"


@asynchronous
async def test_a_driver_that_lost_the_race_for_a_claim_does_not_take_the_winners_lease_for_its_own():
    tools = FakeTools()
    meeting = Meeting(asyncio.Barrier(2))
    async with engine(tools) as parts, racing(parts, meeting, "a") as a, racing(parts, meeting, "b") as b:
        workflow_id = await take(parts)
        held, resume = asyncio.Event(), asyncio.Event()

        async def slow(request: Any) -> Any:
            held.set()
            await resume.wait()
            return tools.honest(request)

        tools.script["get_order"] = [slow]
        both = [asyncio.create_task(drive(one, workflow_id)) for one in (a, b)]
        await held.wait()
        done, pending = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        (loser,) = done
        assert loser.result().control.leased
        resume.set()
        (winner,) = pending
        assert (await winner).task.state == "COMPLETED"
    assert tools.sent("get_order") == 1


@asynchronous
async def test_a_driver_that_is_found_alive_after_all_keeps_its_workflow():
    """A seems dead, B is about to take over; right then A commits. B must not go on under A's lease."""
    tools_of_a, tools_of_b = FakeTools(), FakeTools()
    paused, resume, on_wire, go_on = (asyncio.Event() for _ in range(4))

    async def slow(request: Any) -> Any:
        paused.set()
        await resume.wait()
        return tools_of_a.honest(request)

    async def held(request: Any) -> Any:
        on_wire.set()
        await go_on.wait()
        return tools_of_a.honest(request)

    tools_of_a.script = {"get_order": [slow], "check_return_policy": [held]}
    async with engine(tools_of_a, lease_seconds=20) as parts:
        workflow_id = await take(parts)
        a = asyncio.create_task(drive(parts, workflow_id))
        await paused.wait()
        advance_clock(parts, 21)

        class Late(psycopg.AsyncCursor[Any]):
            async def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
                if "commit_steps(" in str(query) and not resume.is_set():
                    resume.set()
                    await on_wire.wait()
                return await super().execute(query, *args, **kwargs)

        kwargs = {"autocommit": True, "cursor_factory": Late}
        async with AsyncConnectionPool(parts.pool.conninfo, min_size=1, max_size=2, open=False, kwargs=kwargs) as pool:
            b = await drive(replace(parts, pool=pool, tools=tools_of_b, owner="b"), workflow_id)
        assert b.control.leased
        go_on.set()
        assert (await a).task.state == "COMPLETED"
    assert tools_of_b.requests == []
    assert a.result().trace.fence == 1


@asynchronous
async def test_a_claim_meets_no_lease_that_was_renewed_since_it_looked():
    """Renewing changes no version, so the claim itself has to look at the lease."""
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        with owners(parts) as connection:
            connection.execute("UPDATE workflow SET lease_owner = 'a', lease_until = clock_now() - interval '1 s'")
        state = await load(parts, workflow_id)
        kind = next(iter(parts.kinds.values()))
        claim = Step(state, kind.workflow, kind.moves, claim=True, active_ms=0).rows("b", 15.0, None)
        async with parts.pool.connection() as connection:
            assert await ledger.renew_lease(connection, workflow_id, state.trace.fence, "a", 15.0)
            with pytest.raises(StaleWorkflowError):
                await ledger.commit_steps(connection, claim)


@asynchronous
async def test_two_drivers_of_a_case_that_waited_do_not_both_ask_a_planner_that_costs():
    async with engine(FakeTools(refund=80_000)) as parts:
        engage(parts, "updates")
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        engage(parts, "updates", engaged=False)
        advance_clock(parts, 5.1)
        planner, meeting = ScriptedPlanner(deterministic=False), Meeting(asyncio.Barrier(2))
        async with racing(parts, meeting, "a") as a, racing(parts, meeting, "b") as b:
            drivers = (drive(replace(one, planner=planner), workflow_id) for one in (a, b))
            await asyncio.gather(*drivers)
        assert meeting.versions[0] == meeting.versions[1]
    assert [view.state for view in planner.views] == ["ELIGIBLE"]


@asynchronous
async def test_a_wake_up_that_meets_a_live_lease_ends_at_once_and_costs_a_read():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        held, resume = asyncio.Event(), asyncio.Event()

        async def slow(request: Any) -> Any:
            held.set()
            await resume.wait()
            return tools.honest(request)

        tools.script["get_order"] = [slow]
        driving = asyncio.create_task(drive(parts, workflow_id))
        await held.wait()
        version = (await load(parts, workflow_id)).trace.version
        doubled = await drive(replace(parts, owner="second"), workflow_id)
        assert doubled.trace.version == version
        resume.set()
        assert (await driving).task.state == "COMPLETED"


@asynchronous
async def test_a_stale_step_writes_nothing_at_all():
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        state = await load(parts, workflow_id)
        kind = next(iter(parts.kinds.values()))
        await drive(parts, workflow_id)
        before = await rows(parts, COUNTS)
        async with parts.pool.connection() as connection:
            for version, fence in ((1, 0), (8, 0), (1, 1), (9, 1)):
                stale = replace(state, trace=replace(state.trace, version=version, fence=fence))
                step = Step(stale, kind.workflow, kind.moves, claim=True, active_ms=0)
                step.alert("never", {})
                with pytest.raises(StaleWorkflowError):
                    await ledger.commit_steps(connection, step.rows("x", 1, None))
        assert await rows(parts, COUNTS) == before


COUNTS = """
SELECT (SELECT count(*) FROM checkpoint), (SELECT count(*) FROM audit), (SELECT count(*) FROM decision),
       (SELECT count(*) FROM call), (SELECT count(*) FROM attempt), (SELECT count(*) FROM effect),
       (SELECT count(*) FROM outbox), (SELECT version FROM workflow)
"""


@asynchronous
async def test_of_two_intents_over_one_line_that_begin_at_once_one_sees_the_other():
    """Whoever commits first is on the wire while the other commits: that one waits, and then has its turn."""
    for n in range(20):
        tools, arrived, over = FakeTools(), [], asyncio.Event()

        async def held(request: Any, tools: FakeTools = tools, arrived: Any = arrived, over: Any = over) -> Any:
            arrived.append(request.workflow_id)
            if len(arrived) == 2:
                over.set()
            await over.wait()
            return tools.honest(request)

        async def driven(one: UUID, parts: Parts, over: asyncio.Event = over) -> Any:
            state = await drive(parts, one)
            over.set()
            return state

        both = asyncio.Barrier(2)

        async def together(request: Any, both: asyncio.Barrier = both, tools: FakeTools = tools) -> Any:
            await both.wait()
            return tools.honest(request)

        tools.script = {"check_return_policy": [together, together], "create_return": [held, held]}
        async with engine(tools) as parts:
            ids = [await take(parts, request_id=f"{n}-{who}") for who in "ab"]
            states = await asyncio.gather(*(driven(one, parts) for one in ids))
            assert len(arrived) == 1
            assert sorted(state.task.state for state in states) == ["COMPLETED", "ELIGIBLE"]
            advance_clock(parts, UNITS_BUSY_SECONDS + 0.1)
            again = [await drive(parts, one) for one in ids]
        assert [state.task.state for state in again] == ["COMPLETED", "COMPLETED"]
        assert len(tools.returns) == len(tools.notices) == 2
