"""Approvers' keys and their decisions. Each function takes a connection first and never commits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from host.store.errors import refusals
from host.store.fetch import all_of
from host.store.queries import load_queries
from shared_contracts.approval import TrustedApprover

_SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class ApproverKey:
    """A key that counts: `x` is its public half."""

    kid: str
    name: str
    x: str


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key that counts or counted, and on whose word."""

    kid: str
    name: str
    x: str
    added_at: datetime
    added_by: str
    revoked_at: datetime | None
    revoked_by: str | None


async def keys(connection: AsyncConnection[Any]) -> list[ApproverKey]:
    """List the keys that are not revoked."""
    return await all_of(connection, ApproverKey, _SQL["keys"])


async def trust(connection: AsyncConnection[Any], trusted: TrustedApprover, by: str) -> bool:
    """Let a key count from now on; False where it does already. Raises ApproverKeyError where it never can."""
    key = trusted.key
    parameters = {"kid": key.kid, "name": trusted.approver.name, "x": key.x, "by": by}
    with refusals():
        cursor = await connection.execute(_SQL["trust"], parameters)
        row = await cursor.fetchone()
    return row is not None and row[0] is True


async def revoke(connection: AsyncConnection[Any], kid: str, by: str) -> bool:
    """Let a key count no more, for good; False where it does not already."""
    cursor = await connection.execute(_SQL["revoke"], {"kid": kid, "by": by})
    row = await cursor.fetchone()
    return row is not None and row[0] is True


async def listed(connection: AsyncConnection[Any]) -> list[ListedKey]:
    """List every key that was ever trusted."""
    return await all_of(connection, ListedKey, _SQL["listed"])
