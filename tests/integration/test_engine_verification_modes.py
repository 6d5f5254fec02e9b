"""A contract says how its completion is verified: by nothing, by the answer, or by reads at its own pace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from host.domain.control import Control
from host.engine.drive import drive
from host.engine.parts import Parts
from shared_contracts.contract import Equals, ReadBack, Tool, Verification
from shared_contracts.tools import TOOLS
from tests.support.engine import advance_clock, asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected

READ = ReadBack("get_return", matches=("order_id", "lines", "refund"))


def under(parts: Parts, name: str, **changes: Any) -> Parts:
    """The same engine with one contract changed."""
    changed: Tool = replace(TOOLS[name], **changes)
    return replace(parts, registry={**TOOLS, name: changed})


async def waits(parts: Parts) -> tuple[str | None, float]:
    ((reason, seconds),) = await rows(
        parts, "SELECT wake_reason, coalesce(extract(epoch FROM wake_at - clock_now()), 0)::float8 FROM workflow"
    )
    return reason, seconds


@asynchronous
async def test_an_answer_of_which_nothing_is_asked_completes_its_call_whatever_it_says():
    tools, shipped = FakeTools(), Equals("status", "shipped")
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        state = await settle(
            under(parts, "get_order", success_when=shipped, verification=Verification.NONE), workflow_id
        )
    assert state.task.state == "COMPLETED"


@asynchronous
async def test_an_answer_that_has_to_say_so_completes_nothing_where_it_says_something_else():
    tools, shipped = FakeTools(), Equals("status", "shipped")
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        state = await settle(
            under(parts, "get_order", success_when=shipped, verification=Verification.RESPONSE), workflow_id
        )
    assert state.task.state == "NEEDS_REVIEW"
    assert tools.executed == []


@asynchronous
async def test_a_write_that_its_answer_verifies_is_not_read_back_and_counts_as_verified_at_once():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        state = await settle(under(parts, "create_return", verification=Verification.RESPONSE), workflow_id)
        verified = await rows(parts, "SELECT name, verified_at IS NOT NULL FROM effect ORDER BY step")
    assert state.task.state == "COMPLETED"
    assert (tools.sent("create_return"), tools.sent("get_return")) == (1, 0)
    assert verified == [("create_return", True), ("send_return_notice", True)]


@asynchronous
async def test_an_effect_that_is_seen_late_gets_its_first_look_after_the_delay_of_its_contract():
    tools = FakeTools()
    async with engine(tools) as plain:
        parts = under(plain, "create_return", verify=replace(READ, delay_seconds=20))
        workflow_id = await take(parts)
        waiting = await drive(parts, workflow_id)
        reason, seconds = await waits(parts)
        early = tools.sent("get_return")
        advance_clock(parts, 15)
        still = await drive(parts, workflow_id)
        before = tools.sent("get_return")
        advance_clock(parts, 6)
        done = await settle(parts, workflow_id)
    assert (waiting.control.control, still.control.control) == (Control.OBSERVING, Control.OBSERVING)
    assert reason == "verification"
    assert 15 < seconds <= 20
    assert (early, before) == (0, 0)
    assert done.task.state == "COMPLETED"
    assert (tools.sent("create_return"), tools.sent("get_return")) == (1, 1)
    assert done.control.recoveries == 0, "a wait that its contract asks for is no recovery"


@asynchronous
async def test_an_effect_that_is_still_not_visible_is_looked_for_again_at_the_pace_of_its_contract():
    tools = FakeTools(script={"get_return": [rejected("not_found"), rejected("not_found")]})
    spans = []
    async with engine(tools) as plain:
        parts = under(plain, "create_return", verify=replace(READ, poll_seconds=7))
        workflow_id = await take(parts)
        for _ in range(2):
            await drive(parts, workflow_id)
            spans.append((await waits(parts))[1])
            advance_clock(parts, 31)
        state = await settle(parts, workflow_id)
    assert state.task.state == "COMPLETED"
    assert tools.sent("get_return") == 3
    assert 6 < spans[0] <= 7.5
    assert 13 < spans[1] <= 14.5


@pytest.mark.parametrize(("looks", "made"), [(1, 1), (2, 2), (9, 3)])
def test_a_contract_bounds_its_looks_and_the_workflow_kind_bounds_the_contract(looks, made):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={"get_return": [rejected("not_found")] * 9})
        async with engine(tools) as plain:
            parts = under(plain, "create_return", verify=replace(READ, looks=looks))
            state = await settle(parts, await take(parts))
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unverified_effect")
        assert tools.sent("get_return") == made

    run()


@asynchronous
async def test_an_answered_write_whose_contract_asks_for_no_read_back_any_more_is_a_persons():
    tools = FakeTools()
    async with engine(tools) as plain:
        workflow_id = await take(plain)
        await drive(under(plain, "create_return", verify=replace(READ, delay_seconds=20)), workflow_id)
        advance_clock(plain, 21)
        state = await drive(under(plain, "create_return", verification=Verification.RESPONSE), workflow_id)
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unverified_effect")
