from __future__ import annotations

import asyncio
from typing import Any

import pytest

from host.domain.proposals import PlannerView, Reply, ToolDefinition, Usage
from host.engine.drive import drive
from host.workflows.returns import RETURNS
from tests.support.engine import engine, rows, take
from tests.support.fake_tools import FakeTools


class BreaksDown:
    deterministic = True

    async def decide(self, state: PlannerView, tools: tuple[ToolDefinition, ...]) -> Reply:
        raise ZeroDivisionError


def test_a_planner_that_raises_ends_the_case_and_is_not_asked_for_ever() -> None:
    async def run() -> None:
        async with engine(FakeTools(), BreaksDown()) as parts:
            state = await drive(parts, await take(parts))
            assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "planner_exhausted")
            assert state.control.control == "failed"
            codes = await rows(parts, "SELECT code FROM refusal ORDER BY n")
            assert codes == [("planner_failed",)] * 3

    asyncio.run(run())


class SaysNotWhatItUsed:
    deterministic = True

    def __init__(self, usage: Any) -> None:
        self.usage = usage

    async def decide(self, state: PlannerView, tools: tuple[ToolDefinition, ...]) -> Any:
        proposal = RETURNS.propose(state)
        return proposal if self.usage is None else Reply(proposal, self.usage)


@pytest.mark.parametrize("usage", [None, 5, Usage(-1, 0), Usage(0, -1), Usage(1.5, 0), Usage(True, 0)], ids=str)
def test_a_proposal_is_none_without_whole_numbers_of_what_it_used(usage: Any) -> None:
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools, SaysNotWhatItUsed(usage)) as parts:
            state = await drive(parts, await take(parts))
            codes = await rows(parts, "SELECT code FROM refusal ORDER BY n")
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "planner_exhausted")
        assert codes == [("not_a_decision",)] * 3
        assert tools.requests == []

    asyncio.run(run())
