"""The order family: `get_order`."""

from __future__ import annotations

from tool_server.call import Answer, Call
from tool_server.store.pool import Pool
from tool_server.store.queries import queries
from tool_server.store.reading import read
from tool_server.tools import Handler

ORDERS = queries("orders")


async def get_order(pool: Pool, call: Call) -> Answer:
    """Read one order, with what was already returned of it."""
    return await read(pool, ORDERS["get_order"], call)


HANDLERS: dict[str, Handler] = {"get_order": get_order}
