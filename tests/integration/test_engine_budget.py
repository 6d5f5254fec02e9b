"""What a planner may use on one case, in tokens and in money: checked where the other limits are, turn by turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from host.domain.proposals import PlannerFault, Usage
from host.engine.drive import drive
from tests.support.engine import asynchronous, engine, rows, take
from tests.support.fake_tools import FakeTools
from tests.support.scripted_planner import ScriptedPlanner


@asynchronous
async def test_a_planner_that_has_used_all_its_tokens_is_not_asked_again_and_its_last_proposal_does_not_run():
    for tokens, made in ((50_000, ["get_order"]), (49_999, ["get_order", "check_return_policy"])):
        tools, planner = FakeTools(), ScriptedPlanner(usage=Usage(tokens, 0))
        async with engine(tools, planner) as parts:
            state = await drive(parts, await take(parts))
            ((facts,),) = await rows(parts, "SELECT facts FROM decision ORDER BY n DESC LIMIT 1")
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "limit")
        assert [r.tool.name for r in tools.requests] == made
        assert len(planner.views) == len(made) + 1
        assert facts["budget_left"] is False


@asynchronous
async def test_refused_words_use_tokens_too():
    planner = ScriptedPlanner(always=lambda _view: PlannerFault("no_call", "…"), usage=Usage(60_000, 0))
    async with engine(FakeTools(), planner) as parts:
        state = await drive(parts, await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "limit")
    assert len(planner.views) == 2


@pytest.mark.parametrize(
    ("daily", "costs", "calls"), [(None, 0, 4), (None, 1, 0), (0, 1, 0), (100, 26, 3), (105, 26, 4)]
)
def test_what_a_planner_costs_ends_a_case_at_the_daily_limit_and_at_once_where_none_is_set(daily, costs, calls):
    @asynchronous
    async def run() -> None:
        tools, planner = FakeTools(), ScriptedPlanner(usage=Usage(1, costs))
        async with engine(tools, planner) as parts:
            state = await drive(replace(parts, daily_cost_micros=daily), await take(parts))
        called = [r for r in tools.requests if r.tool.name not in {"get_return", "find_notice"}]
        assert len(called) == calls
        assert state.task.reason == ("notice_verified" if calls == 4 else "limit")

    run()
