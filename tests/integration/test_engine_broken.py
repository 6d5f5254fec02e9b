"""A drive that breaks by a bug of ours: the worker lives, the case waits longer, and is a person's in the end."""

from __future__ import annotations

from typing import Any

import pytest

from host.engine.worker import run_once
from tests.support.engine import advance_clock, asynchronous, engine, rows, take
from tests.support.fake_tools import FakeTools, rejected


class Breaking(FakeTools):
    """Breaks the driver where the tools of a state are asked for, before anything could be committed."""

    broken = True

    def available(self) -> frozenset[str]:
        if self.broken:
            raise ZeroDivisionError
        return super().available()


def breaking(_request: Any) -> Any:
    raise ZeroDivisionError


POSITION = "SELECT state, control_state, reason, recoveries, wake_reason, lease_owner FROM workflow"


@asynchronous
async def test_a_drive_that_breaks_before_its_first_commit_is_counted_waits_longer_and_ends_with_a_person():
    async with engine(Breaking()) as parts:
        workflow_id = await take(parts)
        pauses = []
        for _ in range(40):
            assert await run_once(parts, workflow_id) is None
            due = await rows(parts, "SELECT extract(epoch FROM wake_at - updated_at)::float8 FROM workflow")
            if due == [(None,)]:
                break
            pauses.append(due[0][0])
            advance_clock(parts, pauses[-1] + 0.1)
        position = await rows(parts, POSITION)
        ends = await rows(parts, "SELECT action FROM audit UNION ALL SELECT topic FROM outbox")
        again = await run_once(parts, workflow_id)
    assert pauses[:6] == [1, 2, 4, 8, 16, 30]
    assert len(pauses) == 20
    assert position == [("NEEDS_REVIEW", "needs_human", "recoveries_exhausted", 20, None, None)]
    assert ends == [("workflow_ended",), ("returns.needs_review",)]
    assert again is not None


@pytest.mark.parametrize("tool", ["get_order", "create_return", "get_return", "find_notice"])
def test_a_drive_that_breaks_in_the_middle_is_counted_from_any_place_and_ends_with_a_person(tool):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={tool: [breaking] * 99, "find_return": [breaking] * 99})
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            for _ in range(60):
                if await run_once(parts, workflow_id) is not None:
                    break
                advance_clock(parts, 40)
            ((state, control, *_),) = await rows(parts, POSITION)
        assert (state, control) == ("NEEDS_REVIEW", "needs_human")
        assert len(tools.executed) <= 2

    run()


@asynchronous
async def test_a_drive_that_breaks_when_a_retry_is_due_ends_with_a_person_too():
    tools = Breaking(script={"get_order": [rejected("rate_limited")]})
    tools.broken = False
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await run_once(parts, workflow_id)
        tools.broken = True
        for _ in range(60):
            advance_clock(parts, 40)
            if await run_once(parts, workflow_id) is not None:
                break
        ((state, _, reason, *_),) = await rows(parts, POSITION)
    assert (state, reason) == ("NEEDS_REVIEW", "recoveries_exhausted")


@asynchronous
async def test_a_drive_that_breaks_once_goes_on_as_if_nothing_had_been():
    tools = Breaking()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        assert await run_once(parts, workflow_id) is None
        tools.broken = False
        advance_clock(parts, 1.1)
        state = await run_once(parts, workflow_id)
    assert state is not None
    assert state.task.state == "COMPLETED"
    assert state.control.recoveries == 1
