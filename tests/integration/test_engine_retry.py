"""What may be tried again, how often and after how long; by class alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from host.domain.control import Control
from host.engine.drive import drive
from shared_contracts.contract import Ambiguous
from tests.support.engine import advance_clock, asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown

WRITES = {"create_return": "find_return", "send_return_notice": "find_notice"}


def effects_of(tools: FakeTools) -> list[str]:
    return [name for name, _ in tools.executed]


@pytest.mark.parametrize("code", ["rate_limited", "unavailable", "unreachable"])
@pytest.mark.parametrize("tool", WRITES)
def test_an_answer_that_proves_nothing_happened_waits_in_retry_and_is_sent_again(tool, code):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={tool: [rejected(code)]})
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            waiting = await drive(parts, workflow_id)
            ((resume, due),) = await rows(
                parts, "SELECT resume_state, extract(epoch FROM wake_at - updated_at)::float8 FROM workflow"
            )
            asked = len(tools.requests)
            advance_clock(parts, 0.5)
            early = await drive(parts, workflow_id)
            sent_early = len(tools.requests)
            advance_clock(parts, 1.1)
            state = await drive(parts, workflow_id)
        assert waiting.task.state == "RETRY_WAIT"
        assert waiting.control.control is Control.TOOL_PROPOSED
        assert resume == ("ELIGIBLE" if tool == "create_return" else "RETURN_CREATED")
        assert 1.0 <= due < 1.5
        assert early.trace == waiting.trace
        assert sent_early == asked
        assert state.task.state == "COMPLETED"
        assert [r.attempt for r in tools.requests if r.tool.name == tool] == [1, 2]
        assert effects_of(tools) == list(WRITES)

    run()


@pytest.mark.parametrize("tool", WRITES)
def test_a_second_busy_answer_is_the_end_of_sending(tool):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={tool: [rejected("rate_limited")] * 2})
        async with engine(tools) as parts:
            state = await settle(parts, await take(parts))
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "attempts_exhausted")
        assert tools.sent(tool) == 2

    run()


@pytest.mark.parametrize("tool", ["get_order", "check_return_policy"])
@pytest.mark.parametrize("code", ["no_answer", "rate_limited", "unavailable"])
def test_a_read_is_tried_twice_and_then_it_is_a_persons(tool, code):
    @asynchronous
    async def run() -> None:
        for times, expected in ((1, "COMPLETED"), (2, "NEEDS_REVIEW")):
            tools = FakeTools(script={tool: [rejected(code)] * times})
            async with engine(tools) as parts:
                state = await settle(parts, await take(parts))
            assert state.task.state == expected
            assert tools.sent(tool) == 2
            assert [c.tool for c in state.evidence.calls].count(tool) == 1
        assert state.task.reason == "attempts_exhausted"

    run()


@asynchronous
async def test_the_server_may_ask_for_a_longer_wait_than_ours_up_to_the_longest_that_the_table_allows():
    tools = FakeTools(script={"get_order": [rejected("rate_limited", retry_after=120.0)]})
    async with engine(tools) as parts:
        await drive(parts, await take(parts))
        ((due,),) = await rows(parts, "SELECT extract(epoch FROM wake_at - updated_at)::float8 FROM workflow")
    assert due == 30.5


@asynchronous
async def test_a_server_that_is_away_is_waited_for_with_a_growing_pause_and_no_call_is_counted():
    tools = FakeTools(script={"create_return": [rejected("unreachable")] * 6})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        pauses = []
        for _ in range(6):
            await drive(parts, workflow_id)
            ((due,),) = await rows(parts, "SELECT extract(epoch FROM wake_at - updated_at)::float8 FROM workflow")
            pauses.append(int(due))
            advance_clock(parts, due + 0.01)
        state = await drive(parts, workflow_id)
    assert pauses == [1, 2, 4, 8, 16, 30]
    assert state.task.state == "COMPLETED"
    assert (state.calls_made(), state.control.recoveries) == (4, 6)
    assert effects_of(tools) == list(WRITES)


@asynchronous
async def test_a_server_that_stays_away_is_a_persons_after_the_bound_of_recoveries():
    tools = FakeTools(script={"create_return": [rejected("unreachable")] * 99})
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "recoveries_exhausted")
    assert tools.sent("create_return") == 21
    assert tools.executed == []


@asynchronous
async def test_a_contract_that_says_stop_is_not_sent_again_after_a_lost_answer():
    tools = FakeTools(script={"create_return": [unknown()]})
    async with engine(tools) as parts:
        strict = replace(parts.registry["create_return"], ambiguous_failure=Ambiguous.RECONCILE_THEN_STOP)
        state = await settle(replace(parts, registry={**parts.registry, "create_return": strict}), await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "attempts_exhausted")
    assert tools.sent("create_return") == 1
