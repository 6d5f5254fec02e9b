"""What an operator switches, as the owner: tools off and on, keys and tokens off for good."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from psycopg import AsyncConnection

from tool_server.store.queries import queries

SWITCHES = queries("switches")


@dataclass(frozen=True, slots=True)
class Switched:
    """The newest switch of a tool."""

    tool: str
    enabled: bool
    actor: str
    at: datetime


async def switch_tool(dsn: str, tool: str, actor: str, *, enabled: bool) -> None:
    """Remove a tool from its next call on, or give it back."""
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(SWITCHES["switch_tool"], {"tool": tool, "enabled": enabled, "actor": actor})


async def revoke(dsn: str, kind: Literal["kid", "jti"], value: str, actor: str) -> None:
    """Refuse every call of a signing key, or of one token, from now on."""
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(SWITCHES["revoke"], {"kind": kind, "value": value, "actor": actor})


async def switched(dsn: str) -> dict[str, Switched]:
    """Give the newest switch of each tool that was ever switched."""
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        rows = await (await connection.execute(SWITCHES["switched"])).fetchall()
    return {row[0]: Switched(*row) for row in rows}
