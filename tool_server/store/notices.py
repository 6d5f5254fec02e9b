"""Statements of the notice family; whoever delivers holds the session locks of key and return on a connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
import psycopg

from tool_server.call import Call
from tool_server.letter import Item, Recipient
from tool_server.store.bounds import Bounds, bounds_of
from tool_server.store.calls import call_text, run_within
from tool_server.store.pool import BusyError, Connection, Pool, UnavailableError, one
from tool_server.store.queries import queries
from tool_server.store.reading import bounds

NOTICES = queries("notices")
_DUE_MAX = 50  # rows per round of the relay


@dataclass(frozen=True, slots=True)
class Material:
    """What a notice is made of.

    `recipient` is None where no address is known; `known` tells that the key has its notice already, whatever
    became of the return since.
    """

    return_status: str
    items: tuple[Item, ...]
    recipient: Recipient | None
    now: datetime
    known: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that is marked `sending` and is to be delivered."""

    channel: str
    message_id: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Begun:
    """A claimed send. `before` is the row's earlier status, `waiting` None where the notice had its end before."""

    before: str | None
    waiting: Waiting | None


@asynccontextmanager
async def holding(
    pool: Pool, within: Bounds, *, wait: bool, return_id: str | None = None
) -> AsyncIterator[Connection | None]:
    """Lend a connection whose session holds the key's live lock; None where somebody alive holds it.

    Meanwhile the return cannot be cancelled: `return_id`, or what the key's row tells of. Raises BusyError while it
    is being cancelled, and UnavailableError.
    """
    parameters = _of(within)
    async with pool.lend(NOTICES["hold" if wait else "try_hold"], parameters) as (connection, (_, held)):
        if not held:
            yield None
            return
        told = None
        try:
            told = await _hold_return(connection, {**parameters, "within": within.text(), "return_id": return_id})
            yield connection
        finally:
            if not connection.broken:  # a broken connection has lost the locks already
                await one(connection, NOTICES["let_go"], {**parameters, "told": told})


async def _hold_return(connection: Connection, parameters: Mapping[str, str | None]) -> str | None:
    try:
        _, told = await one(connection, NOTICES["hold_return"], parameters)
    except psycopg.errors.LockNotAvailable as error:
        raise BusyError(str(error)) from error
    except psycopg.OperationalError as error:
        raise UnavailableError(str(error)) from error
    return None if told is None else str(told)


async def material(connection: Connection, call: Call, return_id: str, corrects: str | None) -> Material | None:
    """Read what a notice is made of; None where the customer has no such return, or nothing to correct."""
    asked = {"key": call.details.idempotency_key, "return_id": return_id, "corrects": corrects}
    parameters = {"within": within_of(call).text(), **bounds(call), **asked}
    row = await (await connection.execute(NOTICES["material"], parameters)).fetchone()
    if row is None:
        return None
    status, lines, email, name, language, now, known = row
    items = tuple(Item(line["name"], line["quantity"]) for line in lines)
    return Material(status, items, None if email is None else Recipient(email, name, language), now, known)


async def begin_sending(connection: Connection, call: Call, row: dict[str, Any], content: bytes) -> str | Begun:
    """Claim the key and write the row as `sending`, committed; give the code of a refusal instead."""
    parameters = {"call": call_text(call), "message": orjson.dumps(row).decode(), "content": content}
    code, before, channel, sent_as, kept = await one(connection, NOTICES["begin_sending"], parameters)
    if code is not None:
        return str(code)
    return Begun(before, None if kept is None else Waiting(channel, sent_as, kept))


async def conclude(
    where: Connection | Pool, call: Call, outcome: str | None, reason: str | None
) -> tuple[dict[str, Any], str | None]:
    """Record what came of a delivery, log the call, and give the notice as it stands, with the reason for it."""
    parameters = {"call": call_text(call), "outcome": outcome, "reason": reason}
    query = NOTICES["conclude"]
    record, before = await (where.one(query, parameters) if isinstance(where, Pool) else one(where, query, parameters))
    return record, before if outcome is None else reason


async def settle(connection: Connection, within: Bounds, outcome: str, reason: str | None) -> None:
    """Record what came of a delivery that no call waits for."""
    parameters = {**_of(within), "outcome": outcome, "reason": reason}
    await run_within(connection, within, NOTICES["settle"], parameters)


async def look_up(pool: Pool, call: Call) -> tuple[str | None, dict[str, Any] | None, bool]:
    """Find the key's notice, or close the key; the third value tells of a row that nobody alive is sending."""
    code, result, stale = await pool.one(NOTICES["find_notice"], {"call": call_text(call)})
    return code, result, bool(stale)


async def drop_cancelled(connection: Connection, within: Bounds) -> None:
    """Give up a notice whose return was cancelled before it left; the caller holds the key's live lock."""
    await run_within(connection, within, NOTICES["drop_cancelled"], _of(within))


async def left_sending(connection: Connection, within: Bounds) -> Waiting | None:
    """Give the message of a row that still says `sending`."""
    row = await run_within(connection, within, NOTICES["left_sending"], _of(within))
    return None if row is None else Waiting(*row)


async def due(pool: Pool) -> list[Bounds]:
    """Name the notices that wait to be sent, the longest waiting first: each with the bounds of whose it is."""
    async with pool.connection() as connection:
        rows = await (await connection.execute(NOTICES["due"], {"limit": _DUE_MAX})).fetchall()
    return [Bounds(tenant, customer, order, "", key) for tenant, customer, order, key in rows]


async def take(connection: Connection, within: Bounds, channel: str) -> Waiting | None:
    """Move a due row to `sending`, committed; None where it is not due or must not leave any more."""
    row = await run_within(connection, within, NOTICES["take"], {**_of(within), "channel": channel})
    return None if row is None else Waiting(channel, *row)


def within_of(call: Call) -> Bounds:
    """Give the bounds of a call's token."""
    return bounds_of(call.caller.claims, call.details)


def _of(within: Bounds) -> dict[str, str]:
    """Name a notice: its tenant and its key."""
    return {"tenant": within.tenant, "key": within.key}
