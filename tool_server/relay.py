"""Sends what waits in the outbox: notices that surely did not leave when their own handler tried.

Invariant: it takes only `pending` rows that are due and that no live handler holds; any number may run at once.
"""

from __future__ import annotations

import asyncio

import psycopg
import structlog

from tool_server.log import exception_fields
from tool_server.mail import Channel
from tool_server.outbox import deliver_due
from tool_server.store.notices import due
from tool_server.store.pool import BusyError, Pool, UnavailableError

_SECONDS = 1.0  # between rounds; a look costs one indexed read
log = structlog.get_logger()


async def run_once(pool: Pool, channel: Channel) -> int:
    """Try every due notice once, one after the other; give how many were tried."""
    return sum([await deliver_due(pool, channel, tenant, key) for tenant, key in await due(pool)])


async def run(pool: Pool, channel: Channel) -> None:
    """Run for ever; a database that is away, or not migrated yet, is waited for."""
    while True:
        try:
            await run_once(pool, channel)
        except (psycopg.Error, UnavailableError, BusyError) as error:
            log.warning("relay_waits", **exception_fields(error))
        except Exception as error:  # noqa: BLE001 - the outermost place: one notice that cannot be sent stops no other
            log.error("relay_failed", **exception_fields(error))  # noqa: TRY400 - its text may quote data
        await asyncio.sleep(_SECONDS)
