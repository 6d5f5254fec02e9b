"""Lifts a stop that a finding of one case has raised, so that the other cases go on: recorded first, as its owner.

A stop is what a system in use wants of such a finding, and the case that raised it is scored by what became of it. The
others of an evaluation are cases of their own: they show nothing if they are never begun.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field

from host.domain.acting import By
from host.store import stops
from host.store.errors import NotLiftedError, StoppedError
from host.store.pool import Pool

REASON = "the other cases of the evaluation go on"
SETTLED_SECONDS_MAX = 30.0  # for what was under way when the stop was engaged
LOOK_SECONDS = 0.1
HELD_MAX = 10_000
AGAIN_SECONDS = 0.5


@dataclass
class Lifts:
    """`said` is what each stop was for, with the case that raised it."""

    pool: Pool
    owner: Pool
    said: list[str] = field(default_factory=list)
    _looked: float = 0.0

    async def look(self) -> None:
        """Lift what stands, now and then."""
        now = time.monotonic()
        if now < self._looked + AGAIN_SECONDS:
            return
        self._looked = now
        async with self.pool.connection() as connection:
            engaged = [one for one in await stops.standing(connection) if one.engaged]
        if engaged:
            await self._lift()

    async def _lift(self) -> None:
        by = By("evaluation", str(os.getuid()), None)
        await self._settled()
        async with self.pool.connection() as connection, connection.transaction():
            await stops.be_patient(connection)
            history = await stops.stopped_since(connection, 0)
            before = await stops.newest_act(connection)
            counted = await stops.reconcile(connection, by, REASON, before)
        self.said = [f"{one.cause}: {one.reason} (workflow {one.workflow_id})" for one in history]
        try:
            async with self.owner.connection() as owner, owner.transaction():
                await stops.be_patient(owner)
                if any(one.engaged for one in await stops.standing(owner) if one.scope in stops.EVERYTHING):
                    await stops.lift(owner, by, REASON, counted.reconciliation_id)
                for held in await stops.held(owner):
                    await stops.release(owner, by, REASON, held.state, HELD_MAX)
                await stops.end_one_at_a_time(owner, by, REASON)
        except (NotLiftedError, StoppedError):
            return  # looked at again soon; a case that waits longer than it may is given up

    async def _settled(self) -> None:
        until = time.monotonic() + SETTLED_SECONDS_MAX
        while time.monotonic() < until:
            async with self.pool.connection() as connection:
                if not await stops.in_doubt(connection):
                    return
            await asyncio.sleep(LOOK_SECONDS)
