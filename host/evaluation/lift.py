"""Lifts a stop that a finding of one case has raised, so that the other cases go on: recorded first, as its owner.

A stop is what a system in use wants of such a finding, and the case that raised it is scored by what became of it. The
others of an evaluation are cases of their own: they show nothing if they are never begun.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from uuid import UUID

from host.domain.acting import By
from host.store import compensations, stops, trial
from host.store.errors import NotLiftedError, StoppedError
from host.store.pool import Pool

REASON = "the other cases of the evaluation go on"
BY_HAND_SECONDS = 20.0  # what nobody can find out by then, such as an unknown outcome, keeps no other case waiting
HELD_MAX = 10_000
AGAIN_SECONDS = 0.5


@dataclass
class Lifts:
    """`pool` looks, `owner` lifts."""

    pool: Pool
    owner: Pool
    _looked: float = 0.0
    _since: float | None = None

    async def look(self) -> None:
        """Lift what stands, now and then."""
        now = time.monotonic()
        if now < self._looked + AGAIN_SECONDS:
            return
        self._looked = now
        async with self.pool.connection() as connection:
            engaged = any(one.engaged for one in await stops.scopes(connection))
        if not engaged:
            self._since = None
            return
        self._since = now if self._since is None else self._since
        await self._lift(by_hand=now - self._since > BY_HAND_SECONDS)

    async def _lift(self, *, by_hand: bool) -> None:
        """Do what an operator does; what is refused is tried again at the next look."""
        by = By("evaluation", str(os.getuid()), None)
        counted = await self._reconciled(by)
        if counted is None:
            return
        try:
            async with self.owner.connection() as owner, owner.transaction():
                await stops.be_patient(owner)
                if by_hand:
                    await trial.lift_by_hand(owner, by.name, REASON)
                elif any(one.engaged for one in await stops.scopes(owner) if one.scope in stops.EVERYTHING):
                    await stops.lift(owner, by, REASON, counted.reconciliation_id)
                for held in await stops.held(owner):
                    await stops.release(owner, by, REASON, held.state, HELD_MAX)
                if any(one.engaged for one in await stops.scopes(owner)):
                    await stops.end_one_at_a_time(owner, by, REASON)
        except (NotLiftedError, StoppedError):
            return  # the next look tries again

    async def _reconciled(self, by: By) -> stops.Reconciled | None:
        """Count everything; None where something is to be undone first, which is let through."""
        async with self.pool.connection() as connection, connection.transaction():
            await stops.be_patient(connection)
            before = await stops.newest_act(connection)
            counted = await stops.reconcile(connection, by, REASON, before)
        for one in counted.to_undo:
            if one["released_by"] is None:
                async with self.pool.connection() as connection:
                    await compensations.release(connection, UUID(one["workflow_id"]), by)
        return None if counted.to_undo else counted
