"""Keep a driver's lease through slow work, so that nobody takes the workflow for abandoned.

The lease only says who may work; a commit is guarded by the fence, which a lost lease has made stale.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

import psycopg
from psycopg_pool import PoolTimeout

from host.domain.state import State
from host.engine.parts import Parts
from host.store import ledger

T = TypeVar("T")


async def holding(parts: Parts, state: State, work: Awaitable[T]) -> T:
    """Await the work; from a third of the lease on, renew it."""
    keepers: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    # a task of its own only for work that lasts: nearly all of it is over long before
    timer = loop.call_later(parts.lease_seconds / 3, lambda: keepers.append(loop.create_task(_keep(parts, state))))
    try:
        return await work
    finally:
        timer.cancel()
        for keeper in keepers:
            keeper.cancel()


async def _keep(parts: Parts, state: State) -> None:
    held = True
    while held:
        with suppress(psycopg.OperationalError, PoolTimeout):  # the database may be back before the lease is out
            async with parts.pool.connection() as connection:
                held = await ledger.renew_lease(
                    connection, state.task.workflow_id, state.trace.fence, parts.owner, parts.lease_seconds
                )
        await asyncio.sleep(parts.lease_seconds / 3)
