"""A case that needs a seventh call stops the others too, in the transaction that finds it."""

from __future__ import annotations

from dataclasses import replace

from tests.integration.test_engine_limits import BUSY, STOPPED, limited, seven_needed
from tests.support.engine import asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools


@asynchronous
async def test_the_stop_at_the_seventh_call_commits_with_the_decision_that_found_it():
    async with engine(seven_needed()) as parts:
        await settle(parts, await take(parts))
        (together,) = await rows(
            parts, "SELECT count(DISTINCT xmin::text) FROM (SELECT xmin FROM stop_log UNION ALL SELECT xmin FROM audit "
            "WHERE action = 'workflow_ended') x"
        )  # fmt: skip
    assert together == (1,)


@asynchronous
async def test_a_call_that_is_sent_again_as_the_seventh_stops_the_others_too():
    """Two of each read and one return are five, and its retry would be one more than the limit."""
    tools = FakeTools(script={"get_order": BUSY[:], "check_return_policy": BUSY[:]})
    tools.script["create_return"] = BUSY * 2
    async with engine(tools) as parts:
        state = await settle(limited(parts, calls=5), await take(parts))
        stopped = await rows(parts, STOPPED)
    assert (state.task.state, state.task.reason, state.calls_made()) == ("NEEDS_REVIEW", "limit", 5)
    assert stopped == [("new_work",), ("parallel",), ("updates",)]


@asynchronous
async def test_an_operator_may_have_the_seventh_call_stop_its_own_case_alone():
    async with engine(seven_needed()) as parts:
        state = await settle(replace(parts, call_limit_stops="case"), await take(parts))
        stopped, logged = await rows(parts, STOPPED), await rows(parts, "SELECT * FROM stop_log")
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "limit")
    assert (stopped, logged) == ([], [])
