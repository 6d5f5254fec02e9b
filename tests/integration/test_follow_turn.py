"""Whoever follows a case by hand after a stop waits for its turn, says so, and then goes on."""

from __future__ import annotations

import asyncio
import io

from rich.console import Console

from host.commands.follow import NOT_ITS_TURN, Follower, Timeline
from host.engine.drive import drive
from tests.support.engine import asynchronous, engage, engine, owners, rows, take
from tests.support.fake_tools import FakeTools

OTHERS_LEASE = """
UPDATE workflow SET lease_owner = 'another', lease_until = clock_now() + interval '1 hour', wake_at = NULL,
       wake_reason = NULL WHERE workflow_id = %s
"""


@asynchronous
async def test_a_case_that_is_run_by_hand_waits_while_another_has_its_turn_and_then_completes():
    async with engine(FakeTools()) as parts:
        mine, other = await take(parts, request_id="mine"), await take(parts, request_id="other")
        engage(parts, "parallel")
        with owners(parts) as sql:
            sql.execute(OTHERS_LEASE, (other,))
        to = io.StringIO()
        timeline = Timeline(parts.pool, mine, Console(file=to, width=200))
        following = asyncio.create_task(Follower(timeline, lambda: drive(parts, mine)).to_rest())
        while NOT_ITS_TURN not in to.getvalue():  # noqa: ASYNC110 - what it prints; bounded by the test's own time
            await asyncio.sleep(0.01)
        assert await rows(parts, "SELECT count(*) FROM call") == [(0,)]
        with owners(parts) as sql:
            sql.execute("UPDATE workflow SET lease_owner = NULL, lease_until = NULL WHERE workflow_id = %s", (other,))
        position = await following
        recoveries = await rows(parts, "SELECT recoveries FROM workflow WHERE workflow_id = %(id)s", id=mine)
    assert position.state == "COMPLETED"
    assert recoveries == [(0,)]
    assert to.getvalue().count(NOT_ITS_TURN) == 1
