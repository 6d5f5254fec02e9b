from __future__ import annotations

import asyncio

from host.domain.proposals import PlannerDecision, PlannerFault, PlannerView, ToolDefinition
from host.engine.drive import drive
from tests.support.engine import engine, rows, take
from tests.support.fake_tools import FakeTools


class BreaksDown:
    deterministic = True

    async def decide(self, state: PlannerView, tools: tuple[ToolDefinition, ...]) -> PlannerDecision | PlannerFault:
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
