"""Statements of the return family that run inside the transaction of a write; none commits."""

from __future__ import annotations

from typing import Any

import orjson

from shared_contracts.approval import ApprovalEvent
from tool_server.call import Call
from tool_server.store.calls import call_text
from tool_server.store.pool import Connection, one
from tool_server.store.queries import queries
from tool_server.store.reading import bounds

RETURNS = queries("returns")


async def locked_facts(connection: Connection, call: Call) -> dict[str, Any] | None:
    """Take the order's lock, then state the facts; the second statement sees what the first waited for."""
    await lock_order(connection, call)
    parameters = {**bounds(call), "requested_at": call.details.requested_at}
    stated: dict[str, Any] | None = (await one(connection, RETURNS["facts"], parameters))[0]
    return stated


async def lock_order(connection: Connection, call: Call) -> None:
    """Take the order's lock: its line counters, in line order."""
    await one(connection, RETURNS["lock_order"], bounds(call))


async def issue(
    connection: Connection, call: Call, ruled: dict[str, Any], approval: ApprovalEvent | None
) -> dict[str, Any]:
    """Insert the return and log the call, with the approval that permits it; give the return as it stands."""
    parameters = {"call": call_text(call, approval), "ruled": orjson.dumps(ruled).decode()}
    record: dict[str, Any] = (await one(connection, RETURNS["issue"], parameters))[0]
    return record


async def cancel(connection: Connection, call: Call, return_id: str) -> tuple[str | None, dict[str, Any] | None]:
    """Cancel the return and log the call, or give the code that forbids it."""
    code, result = await one(connection, RETURNS["cancel"], {"call": call_text(call), "return_id": return_id})
    return code, result


async def replay(connection: Connection, call: Call) -> dict[str, Any]:
    """Give the effect of the key as it stands now, and log the call."""
    record: dict[str, Any] = (await one(connection, RETURNS["replay"], {"call": call_text(call)}))[0]
    return record
