"""A driver's lease on its workflow: how long it holds, and who keeps it through slow work.

The lease only says who may work; a commit is guarded by the fence, which a lost lease has made stale. It is counted
from before the database was asked, so that ours never seems to hold longer than the database's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

import psycopg
from psycopg_pool import PoolTimeout

from host.domain.state import State
from host.engine.parts import Parts
from host.store import ledger

T = TypeVar("T")


class Lease:
    """One driver's lease; every commit takes it anew."""

    def __init__(self, parts: Parts) -> None:
        """Begin with a lease that the first commit is about to take."""
        self._parts = parts
        self._since = time.monotonic()

    def taken(self, asked_at: float) -> None:
        """Count from when the database was asked for it."""
        self._since = asked_at

    def over(self) -> bool:
        """Tell whether somebody else may have the workflow by now."""
        return time.monotonic() - self._since >= self._parts.lease_seconds

    async def holding(self, state: State, work: Awaitable[T]) -> T:
        """Await the work; from a third of the lease on, renew it."""
        keepers: list[asyncio.Task[None]] = []
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        # a task of its own only for work that lasts: nearly all of it is over long before
        timer = loop.call_later(
            self._parts.lease_seconds / 3, lambda: keepers.append(loop.create_task(self._keep(state, done)))
        )
        try:
            return await work
        finally:
            timer.cancel()
            done.set()  # a cancellation that meets an answer of the database can be lost
            for keeper in keepers:
                keeper.cancel()
            if keepers:
                await asyncio.gather(*keepers, return_exceptions=True)

    async def _keep(self, state: State, done: asyncio.Event) -> None:
        parts = self._parts
        while not done.is_set():
            # the database may be back before the lease is out
            with suppress(psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout):
                asked_at = time.monotonic()
                async with parts.pool.connection() as connection:
                    held = await ledger.renew_lease(
                        connection, state.task.workflow_id, state.trace.fence, parts.owner, parts.lease_seconds
                    )
                if not held:
                    return
                self.taken(asked_at)
            with suppress(TimeoutError):
                async with asyncio.timeout(parts.lease_seconds / 3):
                    await done.wait()
