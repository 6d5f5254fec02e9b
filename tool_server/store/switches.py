"""What an operator switches, as the owner: tools off and on, keys and tokens off for good."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from psycopg import AsyncConnection

from tool_server.store.queries import queries

SWITCHES = queries("switches")
Kind: TypeAlias = Literal["kid", "jti"]


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


async def revoke(dsn: str, kind: Kind, value: str, actor: str) -> bool:
    """Refuse every call of a signing key, or of one token, from now on; False where that was done before."""
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        cursor = await connection.execute(SWITCHES["revoke"], {"kind": kind, "value": value, "actor": actor})
        return cursor.rowcount == 1


async def has_called(dsn: str, kind: Kind, value: str) -> bool:
    """Tell whether the log has a call with this key, or with this token."""
    query = SWITCHES["kid_has_called"] if kind == "kid" else SWITCHES["jti_has_called"]
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        row = await (await connection.execute(query, {"value": value})).fetchone()
    return row == (True,)


async def switched(dsn: str) -> dict[str, Switched]:
    """Give the newest switch of each tool that was ever switched."""
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        rows = await (await connection.execute(SWITCHES["switched"])).fetchall()
    return {row[0]: Switched(*row) for row in rows}
