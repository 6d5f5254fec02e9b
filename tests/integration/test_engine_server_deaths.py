"""A tool server that dies under a request costs a recovery and no attempt: attempts are for answers, good or bad."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from host.domain.outcome import Outcome, Rejected, Unknown
from host.engine.parts import Request
from host.workflows.returns import RETURNS
from tests.support.engine import asynchronous, engine, settle, take
from tests.support.fake_tools import Answer, FakeTools, failure, rejected

RECOVERIES = RETURNS.limits.recoveries
DIES: Answer = lambda _request: Rejected(replace(failure("no_answer"), cut_off=True))  # noqa: E731
NO_ANSWER = rejected("no_answer")


def dies_under_write(_request: Request) -> Outcome:
    return Unknown(replace(failure("connection_lost"), cut_off=True))


def died_after(tools: FakeTools) -> Callable[[Request], Outcome]:
    def done(request: Request) -> Outcome:
        tools.honest(request)
        return dies_under_write(request)

    return done


@asynchronous
async def test_a_read_may_be_cut_off_more_often_than_it_may_be_tried():
    tools = FakeTools(script={"get_order": [DIES] * 3})
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert (state.task.state, state.control.recoveries) == ("COMPLETED", 3)
    assert [attempt.outcome for attempt in state.evidence.calls[0].attempts] == ["cut_off"] * 3 + ["success"]
    assert state.calls_made() == 4


@asynchronous
async def test_a_death_between_two_lost_answers_gives_no_third_attempt():
    tools = FakeTools(script={"get_order": [NO_ANSWER, DIES, NO_ANSWER]})
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "attempts_exhausted")
    assert tools.sent("get_order") == 3


@pytest.mark.parametrize("tool", ["create_return", "send_return_notice"])
@asynchronous
async def test_a_write_that_is_cut_off_is_looked_up_each_time_and_sent_again_only_where_it_is_absent(tool: str):
    tools = FakeTools()
    tools.script = {tool: [dies_under_write, dies_under_write, died_after(tools)]}
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert (state.task.state, state.control.recoveries) == ("COMPLETED", 3)
    assert tools.sent(tool) == 3
    assert len(tools.returns) == len(tools.notices) == 1
    assert [e.outcome for e in state.evidence.effects if e.name == tool] == ["absent", "absent", "succeeded"]


@asynchronous
async def test_each_send_of_a_write_has_its_own_look_ups():
    """Four sends are proved absent by a look-up each; the fifth one's look-up may still fail for a while."""
    tools = FakeTools()
    tools.script = {
        "create_return": [dies_under_write] * 4 + [died_after(tools)],
        "find_return": [None] * 4 + [rejected("unreachable"), rejected("no_answer")],
    }
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert (state.task.state, state.control.recoveries) == ("COMPLETED", 6)
    assert (tools.sent("create_return"), tools.sent("find_return")) == (5, 7)
    assert len(tools.returns) == 1


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ({"get_order": [DIES] * 99}, "recoveries_exhausted"),
        ({"create_return": [dies_under_write] * 99}, "recoveries_exhausted"),
        ({"get_return": [DIES] * 99}, "unverified_effect"),
        ({"create_return": [dies_under_write], "find_return": [DIES] * 99}, "unknown_effect"),
    ],
)
@asynchronous
async def test_a_server_that_dies_for_ever_is_given_up_by_the_bound_of_recoveries(
    script: dict[str, list[Answer | None]], reason: str
):
    tools = FakeTools(script=script)
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", reason)
    assert state.control.recoveries == RECOVERIES + 1
    assert len(tools.returns) <= 1
    assert tools.notices == {}
