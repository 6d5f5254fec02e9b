"""A driver that dies at any commit: another goes on from the row, and every effect is there once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from host.domain.control import Control, Execution
from host.engine.drive import drive, load
from host.engine.parts import Parts
from host.engine.sweep import run_once
from tests.support.crash import DiedError, Fate, doomed
from tests.support.engine import advance_clock, asynchronous, engine, owners, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown
from tests.support.scripted_planner import ScriptedPlanner

COMMITS = 7
LEASE = 15.0
# What of the whole run is still to be asked by the next driver, if the first dies right after commit k.
NEXT_READS = {1: ["get_order"], 2: ["check_return_policy"]}


async def die_and_recover(parts: Parts, fate: Fate) -> Any:
    workflow_id = await take(parts)
    async with doomed(parts, fate) as mortal:
        with pytest.raises(DiedError):
            await drive(mortal, workflow_id)
    advance_clock(parts, LEASE + 0.1)
    return await settle(parts, workflow_id)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, COMMITS + 1))
def test_a_driver_dead_at_any_commit_leaves_a_row_from_which_another_completes_with_one_effect_each(at, before):
    @asynchronous
    async def run() -> None:
        tools, fate = FakeTools(), Fate(at, before)
        async with engine(tools) as parts:
            state = await die_and_recover(parts, fate)
            effects = await rows(parts, "SELECT name, outcome FROM effect WHERE outcome = 'succeeded' ORDER BY step")
        assert fate.seen == at
        assert state.task.state == "COMPLETED"
        assert effects == [("create_return", "succeeded"), ("send_return_notice", "succeeded")]
        assert [name for name, _ in tools.executed] == ["create_return", "send_return_notice"]
        nothing_was_claimed = at == 1 and before
        over_already = at == COMMITS and not before
        assert state.control.recoveries == (0 if nothing_was_claimed or over_already else 1)
        assert len(state.control.refusals) == 0

    run()


def test_the_number_of_commits_that_are_tried_is_the_number_that_there_are():
    @asynchronous
    async def run() -> None:
        fate = Fate(0, before=False)
        async with engine(FakeTools()) as parts:
            workflow_id = await take(parts)
            async with doomed(parts, fate) as mortal:
                await drive(mortal, workflow_id)
        assert fate.seen == COMMITS

    run()


@pytest.mark.parametrize("at", NEXT_READS)
def test_a_read_that_was_cut_off_is_planned_again_and_counts_neither_as_a_call_nor_as_a_repeat(at):
    @asynchronous
    async def run() -> None:
        tools, planner = FakeTools(), ScriptedPlanner()
        async with engine(tools, planner) as parts:
            state = await die_and_recover(parts, Fate(at, before=False))
            cut_off = await rows(
                parts, "SELECT tool, execution_state, error ->> 'code' FROM call WHERE error IS NOT NULL"
            )
        assert cut_off == [(NEXT_READS[at][0], "failed", "cut_off")]
        assert state.task.state == "COMPLETED"
        assert state.calls_made() == 4
        assert len({call.call_id for call in state.evidence.calls}) == 5
        assert [view.turn for view in planner.views] == [1, 2, 3, 4, 5]

    run()


@pytest.mark.parametrize(("at", "done"), [(3, False), (3, True), (5, False), (5, True)])
def test_invariant_3_a_write_that_was_cut_off_is_never_planned_again_but_looked_up_by_its_key_first(at, done):
    """The dangerous window: the intent is committed, the request may have left, and nobody knows."""

    @asynchronous
    async def run() -> None:
        tools, planner = FakeTools(), ScriptedPlanner()
        tool = "create_return" if at == 3 else "send_return_notice"
        async with engine(tools, planner) as parts:
            workflow_id = await take(parts)
            if done:
                tools.script[tool] = [dying_after(tools)]
                with pytest.raises(DiedError):
                    await drive(parts, workflow_id)
            else:
                async with doomed(parts, Fate(at, before=False)) as mortal:
                    with pytest.raises(DiedError):
                        await drive(mortal, workflow_id)
            asked, sent = len(planner.views), len(tools.requests)
            advance_clock(parts, LEASE + 0.1)
            state = await settle(parts, workflow_id)
        assert tools.requests[sent].tool.name == ("find_return" if at == 3 else "find_notice")
        assert [view.state for view in planner.views[asked:]] == (["RETURN_CREATED"] if at == 3 else [])
        assert state.task.state == "COMPLETED"
        assert [name for name, _ in tools.executed] == ["create_return", "send_return_notice"]
        assert state.calls_made() == (3 if done else 4)  # what our own crash cut off is no call

    run()


def dying_after(tools: FakeTools) -> Any:
    def answer(request: Any) -> Any:
        tools.honest(request)
        raise DiedError

    return answer


@pytest.mark.parametrize("tool", ["create_return", "send_return_notice"])
def test_death_between_the_look_up_and_its_commit_looks_up_again_and_sends_once(tool):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        read = "find_return" if tool == "create_return" else "find_notice"
        tools.script = {tool: [unknown()], read: [dying_after(tools), dying_after(tools)]}
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            for _ in range(2):
                with pytest.raises(DiedError):
                    await drive(parts, workflow_id)
                advance_clock(parts, LEASE + 0.1)
            state = await settle(parts, workflow_id)
        assert state.task.state == "COMPLETED"
        assert [name for name, _ in tools.executed] == ["create_return", "send_return_notice"]
        assert tools.sent(tool) == 2
        assert state.control.recoveries == 2

    run()


@pytest.mark.parametrize("read", ["get_return", "find_notice"])
def test_death_while_an_effect_is_read_back_reads_it_back_again_and_sends_nothing(read):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        tools.script = {read: [dying_after(tools)]}
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            with pytest.raises(DiedError):
                await drive(parts, workflow_id)
            observing = await load(parts, workflow_id)
            advance_clock(parts, LEASE + 0.1)
            state = await settle(parts, workflow_id)
        assert observing.control.control is Control.OBSERVING
        assert state.task.state == "COMPLETED"
        assert len(tools.executed) == 2
        assert tools.sent(read) == 2

    run()


@asynchronous
async def test_death_while_waiting_to_try_again_loses_neither_the_wait_nor_the_way_back():
    tools = FakeTools(script={"create_return": [rejected("rate_limited")]})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        async with doomed(parts, Fate(4, before=False)) as mortal:
            with pytest.raises(DiedError):
                await drive(mortal, workflow_id)
        waiting = await load(parts, workflow_id)
        state = await settle(parts, workflow_id)
    assert waiting.task.state == "RETRY_WAIT"
    assert not waiting.control.leased
    assert state.task.state == "COMPLETED"
    assert state.control.recoveries == 0


@pytest.mark.parametrize(
    ("tool", "reason", "execution"),
    [
        ("get_order", "recoveries_exhausted", "failed"),
        ("create_return", "unknown_effect", "unknown"),
        ("get_return", "unverified_effect", "succeeded"),
    ],
)
def test_a_poison_case_kills_twenty_drivers_and_is_then_a_persons(tool, reason, execution):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        tools.script = {tool: [dying_after(tools)] * 99}
        if tool == "create_return":
            tools.script["find_return"] = [dying_after(tools)] * 99
        deaths = 0
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            for _ in range(40):
                try:
                    state = await drive(parts, workflow_id)
                except DiedError:
                    deaths += 1
                    advance_clock(parts, LEASE + 0.1)
                else:
                    break
            ((found,),) = await rows(parts, "SELECT execution_state FROM call ORDER BY step DESC LIMIT 1")
        assert deaths == 21
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", reason)
        assert (state.control.recoveries, found) == (21, execution)
        assert tools.notices == {}

    run()


@asynchronous
async def test_a_planner_that_kills_its_driver_is_bounded_as_well():
    async def die() -> None:
        raise DiedError

    deaths = 0
    async with engine(FakeTools(), ScriptedPlanner(deterministic=False, thinking=die)) as parts:
        workflow_id = await take(parts)
        for _ in range(40):
            try:
                state = await drive(parts, workflow_id)
            except DiedError:
                deaths += 1
                advance_clock(parts, LEASE + 0.1)
            else:
                break
    assert deaths == 21
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "recoveries_exhausted")


@asynchronous
async def test_a_live_drivers_workflow_is_left_alone_and_a_dead_ones_only_after_its_lease():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        async with doomed(parts, Fate(3, before=False)) as mortal:
            with pytest.raises(DiedError):
                await drive(mortal, workflow_id)
        sent = len(tools.requests)
        advance_clock(parts, LEASE - 2)
        early = await drive(parts, workflow_id)
        assert early.control.leased
        assert len(tools.requests) == sent
        advance_clock(parts, 2.1)
        state = await drive(parts, workflow_id)
    assert state.task.state == "COMPLETED"


@pytest.mark.parametrize("tool", ["get_order", "create_return", "get_return", "find_notice", "send_return_notice"])
def test_a_driver_that_is_paused_past_its_lease_writes_nothing_more_and_sends_nothing_more(tool):
    """A is stopped while its request is under way; B takes over and completes; A wakes up."""

    @asynchronous
    async def run() -> None:
        tools_of_a, tools_of_b = FakeTools(), FakeTools()
        reached, resume = asyncio.Event(), asyncio.Event()

        async def paused(request: Any) -> Any:
            answer = tools_of_a.honest(request)
            reached.set()
            await resume.wait()
            return answer

        tools_of_a.script[tool] = [paused]
        for shared in ("returns", "notices", "closed", "executed"):
            setattr(tools_of_b, shared, getattr(tools_of_a, shared))
        async with engine(tools_of_a, lease_seconds=300) as parts:
            workflow_id = await take(parts)
            a = asyncio.create_task(drive(parts, workflow_id))
            await reached.wait()
            sent_by_a = len(tools_of_a.requests)
            advance_clock(parts, 301)
            done = await drive(replace(parts, tools=tools_of_b, owner="b"), workflow_id)
            resume.set()
            after = await a
            ((fence, version),) = await rows(parts, "SELECT fence, version FROM workflow")
        assert done.task.state == after.task.state == "COMPLETED"
        assert (after.trace.version, fence) == (version, 2)
        assert len(tools_of_a.requests) == sent_by_a
        assert [name for name, _ in tools_of_a.executed] == ["create_return", "send_return_notice"]

    run()


@asynchronous
async def test_a_driver_that_is_paused_inside_its_commit_does_not_take_the_lease_for_fresh():
    """The commit reached the database long before its answer reached the driver; meanwhile another took over."""
    tools = FakeTools()
    async with engine(tools, lease_seconds=1) as parts:
        workflow_id = await take(parts)
        slow = Fate(0, before=False)

        class Paused(slow.cursor()):
            async def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
                done = await super().execute(query, *args, **kwargs)
                if "commit_steps(" in str(query) and slow.seen == 3:
                    slow.seen += 1
                    await asyncio.sleep(1.05)  # the pause itself, longer than the lease
                    await drive(replace(parts, owner="b"), workflow_id)
                return done

        slow.cursor = lambda: Paused
        async with doomed(parts, slow, owner="a") as a:
            state = await drive(a, workflow_id)
    assert state.task.state == "COMPLETED"
    assert tools.sent("create_return") == 1
    assert [r.tool.name for r in tools.requests].count("find_return") == 1
    assert len(tools.executed) == 2


@asynchronous
async def test_a_slow_call_keeps_its_lease_so_that_nobody_takes_over():
    tools = FakeTools()
    async with engine(tools, lease_seconds=0.3) as parts:
        workflow_id = await take(parts)
        other: list[bool] = []

        async def slow(request: Any) -> Any:
            for _ in range(8):
                await asyncio.sleep(0.1)  # the call's own duration: nearly three leases
                other.append((await load(parts, workflow_id)).control.leased)
            return tools.honest(request)

        tools.script["get_order"] = [slow]
        state = await drive(parts, workflow_id)
    assert all(other)
    assert state.task.state == "COMPLETED"
    assert state.control.recoveries == 0


@asynchronous
async def test_the_sweeper_brings_back_a_dead_drivers_workflow_and_no_ended_one():
    woken: list[Any] = []

    async def wake(connection: Any, workflow_id: Any) -> None:
        woken.append(workflow_id)

    async with engine(FakeTools()) as parts:
        dead, done = await take(parts, request_id="dead"), await take(parts, request_id="done", order_id="A-2")
        async with doomed(parts, Fate(3, before=False)) as mortal:
            with pytest.raises(DiedError):
                await drive(mortal, dead)
        await drive(parts, done)
        with owners(parts) as connection:  # a lease that somebody left on an ended workflow
            connection.execute(
                "UPDATE workflow SET lease_owner = 'x', lease_until = now() WHERE workflow_id = %s", (done,)
            )
        await run_once(parts, wake)
        assert woken == []
        advance_clock(parts, LEASE + 0.1)
        await run_once(parts, wake)
    assert woken == [dead]


@asynchronous
async def test_after_a_crash_the_call_that_was_in_doubt_shows_what_became_of_it():
    tools = FakeTools()
    tools.script["create_return"] = [dying_after(tools)]
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        with pytest.raises(DiedError):
            await drive(parts, workflow_id)
        running = await load(parts, workflow_id)
        advance_clock(parts, LEASE + 0.1)
        await drive(parts, workflow_id)
        attempts = await rows(parts, "SELECT purpose, tool, outcome FROM attempt WHERE step = 3 ORDER BY n")
    assert running.proposal is not None
    assert running.proposal.execution is Execution.RUNNING
    assert attempts == [("call", "create_return", "cut_off"), ("reconciliation", "find_return", "success")]
