"""A lease's keeper ends with the work that it is kept for, whenever that is over."""

from __future__ import annotations

import asyncio

from host.engine.drive import load
from host.engine.lease import Lease
from tests.support.engine import asynchronous, engine, owners, take
from tests.support.fake_tools import FakeTools

LEASE_SECONDS = 0.03  # a third of it is when the keeper first asks the database
AT_ONCE, ROUNDS = 8, 40
HELD = "UPDATE workflow SET lease_owner = %s, lease_until = clock_now() + interval '1 hour' WHERE workflow_id = %s"


@asynchronous
async def test_work_that_is_over_while_its_lease_is_being_renewed_is_over() -> None:
    """A cancellation that meets an answer of the database can be lost: on Python 3.11 five of 32 were."""
    async with engine(FakeTools(), lease_seconds=LEASE_SECONDS) as parts:
        workflow_id = await take(parts)
        with owners(parts) as connection:
            connection.execute(HELD, (parts.owner, workflow_id))
        state = await load(parts, workflow_id)

        async def held(after: float) -> None:
            await Lease(parts).holding(state, asyncio.sleep(LEASE_SECONDS / 3 + after))

        for number in range(ROUNDS):
            async with asyncio.timeout(5):
                await asyncio.gather(*(held((number * 7 + n) % 60 / 10_000) for n in range(AT_ONCE)))
