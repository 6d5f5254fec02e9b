"""Tasks of outside hosts: registered before their token is minted, found again by the token's id."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from host.store.queries import load_queries

_SQL = load_queries(__file__)


async def register(connection: AsyncConnection[Any], task: dict[str, Any]) -> None:
    """Write a task down; `seconds` says for how long its token is good."""
    await connection.execute(_SQL["register"], {"task": Jsonb(task)})


async def tasks(connection: AsyncConnection[Any], most: int) -> list[dict[str, Any]]:
    """List what tokens were issued for, newest first."""
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(_SQL["tasks"], {"most": most})
    return await cursor.fetchall()
