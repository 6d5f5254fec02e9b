"""Statements of `load`: rows in, rows known. Run as the owner, inside the caller's transaction; none commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from psycopg import AsyncConnection

from tool_server.store.queries import queries

SEED = queries("seed")
Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class KnownPolicy:
    """A version of the rules as the database has it."""

    content_sha256: str
    effective_from: datetime
    tenant_id: str | None


@dataclass(frozen=True, slots=True)
class KnownOrder:
    """An order as the database has it; `counted` is what was returned and paid back of each line."""

    tenant_id: str
    order_id: str
    customer_id: str
    version: int
    currency: str
    content_sha256: str
    line_ids: list[str]
    return_ids: list[str]
    refunded: int
    shipping_refunded: int
    counted: dict[str, tuple[int, int]]


async def put(connection: AsyncConnection, name: str, rows: Rows, **more: str) -> int:
    """Run one of the writing statements over rows; give how many rows changed."""
    if not rows:
        return 0
    cursor = await connection.execute(SEED[name], {"rows": orjson.dumps(rows).decode(), **more})
    return cursor.rowcount


async def known_policies(connection: AsyncConnection) -> dict[str, KnownPolicy]:
    """Give each version's content digest, and when it begins."""
    rows = await (await connection.execute(SEED["known_policies"])).fetchall()
    return {version: KnownPolicy(*row) for version, *row in rows}


async def taken_returns(connection: AsyncConnection, keys: Rows) -> dict[tuple[str, str], str]:
    """Give those of the returns' tenants and numbers that are there, with their orders."""
    if not keys:
        return {}
    rows = await connection.execute(SEED["taken_returns"], {"rows": orjson.dumps(keys).decode()})
    return {(tenant, number): order for tenant, number, order in await rows.fetchall()}


async def rules_of_returns(connection: AsyncConnection) -> list[tuple[Any, ...]]:
    """Give version, from, until and the return fees by currency of every version."""
    return await (await connection.execute(SEED["rules_of_returns"])).fetchall()


async def lock_orders(connection: AsyncConnection, keys: Rows) -> list[KnownOrder]:
    """Take the locks of the orders that are known already, then give them as they are."""
    parameters = {"rows": orjson.dumps(keys).decode()}
    await connection.execute(SEED["lock_orders"], parameters)
    rows = await (await connection.execute(SEED["known_orders"], parameters)).fetchall()
    return [KnownOrder(*row) for row in rows]
