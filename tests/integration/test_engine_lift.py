"""What a lift holds: everything that has not ended, in a driver's hands or not, so that it goes on by parts alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from host.domain.acting import By
from host.domain.control import STARTED
from host.domain.step import Step
from host.engine.drive import drive, load
from host.engine.stops import find_out
from host.engine.worker import run_once as driven
from host.planner.conformance import ConformancePlanner
from host.store.errors import NotLiftedError, StaleWorkflowError
from tests.support.engine import KINDS, advance_clock, asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected
from tests.support.stops import held, lift, owner, reconciled, release, stop


class SlowPlanner(ConformancePlanner):
    """Thinks about what comes before the return until it is told to go on, or dies of it."""

    deterministic = False

    def __init__(self, *, dies: bool = False) -> None:
        super().__init__(KINDS.values())
        self.dies, self.go_on = dies, asyncio.Event()
        self.thinking: asyncio.Queue[Any] = asyncio.Queue()

    async def decide(self, view: Any, tools: Any) -> Any:
        if view.state == "ELIGIBLE":
            self.thinking.put_nowait(view)
            if self.dies:
                raise asyncio.CancelledError
            await self.go_on.wait()
        return await super().decide(view, tools)


@asynchronous
async def test_what_drivers_have_in_hand_at_the_lift_is_held_too_and_they_write_nothing_more():
    tools, planner = FakeTools(), SlowPlanner()
    async with engine(tools, planner) as parts:
        cases = [await take(parts, order_id=f"A-{n}") for n in range(3)]
        driving = [asyncio.create_task(driven(parts, one)) for one in cases]
        async with asyncio.timeout(20):
            for _ in cases:
                await planner.thinking.get()
        await stop(parts)
        assert await lift(parts) == len(cases)
        planner.go_on.set()
        await asyncio.gather(*driving)
        assert tools.executed == []
        assert await held(parts) == {"ELIGIBLE": 3}
        assert await rows(parts, "SELECT count(lease_owner), count(active_since) FROM workflow") == [(0, 0)]
        await release(parts, "ELIGIBLE", 1)
        assert (await settle(parts, cases[0])).task.state == "COMPLETED"
        assert [(await load(parts, one)).task.state for one in cases[1:]] == ["ELIGIBLE", "ELIGIBLE"]


@asynchronous
async def test_what_a_driver_that_died_had_in_hand_is_held_by_the_lift():
    tools, planner = FakeTools(), SlowPlanner(dies=True)
    async with engine(tools, planner) as parts:
        workflow_id = await take(parts)
        with pytest.raises(asyncio.CancelledError):
            await drive(parts, workflow_id)
        await stop(parts)
        await lift(parts)
        advance_clock(parts, 60)
        await driven(parts, workflow_id)
        assert tools.executed == []
        assert await held(parts) == {"ELIGIBLE": 1}
        planner.dies = False
        planner.go_on.set()
        await release(parts, "ELIGIBLE", 1)
        assert (await settle(parts, workflow_id)).task.state == "COMPLETED"


@asynchronous
async def test_a_case_that_a_driver_read_before_the_lift_is_not_claimed_after_it():
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        before = await load(parts, workflow_id)
        await stop(parts)
        await lift(parts)
        kind = parts.kinds[before.task.kind, before.task.release]
        step = Step(before, kind.workflow, kind.moves, claim=True, active_ms=0)
        step.go(STARTED)
        with pytest.raises(StaleWorkflowError):
            await parts.commits.commit(step.rows(parts.owner, parts.lease_seconds, None))
        assert await held(parts) == {"RECEIVED": 1}


@asynchronous
async def test_a_retry_that_waits_is_held_with_where_it_goes_back_to():
    tools = FakeTools()
    async with engine(tools) as parts:
        tools.script["get_order"] = [rejected("unavailable")]
        workflow_id = await take(parts)
        assert (await drive(parts, workflow_id)).task.state == "RETRY_WAIT"
        await stop(parts)
        await lift(parts)
        advance_clock(parts, 60)
        await driven(parts, workflow_id)
        assert await held(parts) == {"RETRY_WAIT": 1}
        await release(parts, "RETRY_WAIT", 1)
        assert (await settle(parts, workflow_id)).task.state == "COMPLETED"


@asynchronous
async def test_while_a_call_is_under_way_the_stop_stays():
    tools = FakeTools()
    async with engine(tools) as parts:

        async def meanwhile(request: Any) -> Any:
            await stop(parts)
            with pytest.raises(NotLiftedError, match="under way"):
                await lift(parts)
            return tools.honest(request)

        tools.script["get_order"] = [meanwhile]
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        await lift(parts)
        assert await held(parts) == {"ELIGIBLE": 1}


@asynchronous
async def test_a_case_at_work_of_a_release_that_is_not_carried_stays_unknown_and_is_not_counted_as_broken():
    tools = FakeTools()
    async with engine(tools, lease_seconds=1) as parts:

        def died(request: Any) -> Any:
            tools.honest(request)
            raise asyncio.CancelledError

        tools.script["create_return"] = [died]
        workflow_id = await take(parts)
        with pytest.raises(asyncio.CancelledError):
            await drive(parts, workflow_id)
        await stop(parts)
        advance_clock(parts, 60)
        others = {("others", release): kind for (_, release), kind in parts.kinds.items()}
        assert await find_out(replace(parts, kinds=others), By("sato", "tester", "sha256:of-a-test"), 0) == 1
        assert [one["workflow_id"] for one in (await reconciled(parts)).unsettled] == [str(workflow_id)]
        assert await rows(parts, "SELECT recoveries FROM workflow") == [(0,)]


@asynchronous
async def test_a_broken_drive_of_what_is_undone_waits_for_a_stop_without_holding_its_row():
    """Whoever holds the stop's lock and goes on to the row meets no deadlock."""
    tools = FakeTools()
    async with engine(tools) as parts:
        tools.script["get_return"] = [tools.but(lines=[{"line_id": "1", "quantity": 2}])]
        workflow_id = await take(parts)
        assert (await drive(parts, workflow_id)).task.state == "COMPENSATION_REQUIRED"
        advance_clock(parts, 25 * 3600)  # beyond its time
        async with await owner(parts) as step, await owner(parts) as broken:
            async with step.transaction():
                await step.execute("SELECT pg_advisory_xact_lock_shared(stop_lock_key())")
                pid = broken.info.backend_pid
                counted = asyncio.create_task(broken.execute("SELECT count_broken_drive(%s, 0)", (workflow_id,)))
                waits = "SELECT FROM pg_locks WHERE pid = %s AND NOT granted"
                async with asyncio.timeout(20):
                    while not (await (await step.execute(waits, (pid,))).fetchall()):
                        assert not counted.done()
                await step.execute("SET LOCAL lock_timeout = '5s'")
                await step.execute("SELECT FROM workflow WHERE workflow_id = %s FOR UPDATE", (workflow_id,))
            await counted
        assert await rows(parts, "SELECT state FROM workflow") == [("NEEDS_REVIEW",)]
