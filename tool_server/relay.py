"""Sends what waits in the outbox: notices that surely did not leave when their own handler tried.

Each round also forgets some of the used tokens that are too old to be sent again.

Invariant: it takes only `pending` rows that are due and that no live handler holds; any number may run at once.
It is asked to stop and never cancelled: a mail in hand is finished and recorded, and a cancellation that meets the
end of a statement can be lost (asyncio.wait_for before Python 3.12).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import psycopg
import structlog

from tool_server.log import exception_fields
from tool_server.mail import Channel
from tool_server.outbox import deliver_due
from tool_server.store.calls import forget_tokens
from tool_server.store.notices import due
from tool_server.store.pool import BusyError, Pool, UnavailableError

_SECONDS = 1.0  # between rounds; a look costs one indexed read
log = structlog.get_logger()


async def send_due(pool: Pool, channel: Channel, stop: asyncio.Event | None = None) -> int:
    """Try every due notice once, one after the other; give how many were tried."""
    tried = 0
    for within in await due(pool):
        if stop is not None and stop.is_set():
            break
        tried += await deliver_due(pool, channel, within)
    return tried


async def run(pool: Pool, channel: Channel, stop: asyncio.Event) -> None:
    """Run until asked to stop; a database that is away, or not migrated yet, is waited for."""
    while not stop.is_set():
        try:
            await send_due(pool, channel, stop)
            await forget_tokens(pool)
        except (psycopg.Error, UnavailableError, BusyError) as error:
            log.warning("relay_waits", **exception_fields(error))
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _SECONDS)
