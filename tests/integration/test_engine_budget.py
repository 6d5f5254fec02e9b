"""What a planner may use on one case, in tokens and in money: checked where the other limits are, turn by turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from host.domain.proposals import PlannerFault, Usage
from host.engine.drive import drive
from tests.support.engine import advance_clock, asynchronous, engine, rows, take
from tests.support.fake_tools import FakeTools, rejected
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


@asynchronous
async def test_what_was_used_outlives_the_driver_that_used_it():
    planner = ScriptedPlanner(usage=Usage(20_000, 30))
    tools = FakeTools(script={"check_return_policy": [rejected("rate_limited")]})
    async with engine(tools, planner) as parts:
        affordable = replace(parts, daily_cost_micros=1_000)
        workflow_id = await take(parts)
        waiting = await drive(affordable, workflow_id)
        advance_clock(parts, 60)
        ended = await drive(affordable, workflow_id)
    assert (waiting.task.state, waiting.control.tokens, waiting.control.cost_micros) == ("RETRY_WAIT", 40_000, 60)
    assert (ended.control.tokens, ended.control.cost_today) == (20_000 * len(planner.views), 30 * len(planner.views))


@asynchronous
async def test_the_daily_limit_is_one_for_all_cases_and_begins_anew_the_next_day():
    planner = ScriptedPlanner(usage=Usage(1, 30), deterministic=False)
    async with engine(FakeTools(), planner) as parts:
        dear = replace(parts, daily_cost_micros=100)
        first = await drive(dear, await take(parts, request_id="first"))
        asked = len(planner.views)
        second = await drive(dear, await take(parts, request_id="second"))
        assert len(planner.views) == asked
        advance_clock(parts, 24 * 3600)
        await drive(dear, await take(parts, request_id="third"))
        assert len(planner.views) > asked
        days = await rows(parts, "SELECT cost_micros FROM planner_cost ORDER BY day")
    assert (first.task.reason, second.task.reason) == ("limit", "limit")
    assert days[0] == (asked * 30,)
