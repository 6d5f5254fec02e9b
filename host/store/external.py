"""Tasks of outside hosts: registered before their token is minted, found again by the token's id."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from host.store.errors import refusals
from host.store.queries import load_queries

_SQL = load_queries(__file__)
OWN_TASK = "baseline:"  # how the task of a token begins that the host uses itself and hands to nobody


async def register(connection: AsyncConnection[Any], task: dict[str, Any]) -> None:
    """Write a task down; `seconds` says for how long its token is good. Raises StoppedError, and ReadsStoppedError."""
    with refusals():
        await connection.execute(_SQL["register"], {"task": Jsonb(task)})


async def now(connection: AsyncConnection[Any]) -> datetime:
    """Give the database's time, by which a question without a time of its own is asked."""
    ((moment,),) = await (await connection.execute(_SQL["now"])).fetchall()
    assert isinstance(moment, datetime)  # noqa: S101 - what the function's type says
    return moment


async def tasks(connection: AsyncConnection[Any], most: int) -> list[dict[str, Any]]:
    """List what tokens were issued for, newest first."""
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(_SQL["tasks"], {"most": most})
    return await cursor.fetchall()


async def good(connection: AsyncConnection[Any]) -> list[dict[str, Any]]:
    """List the tasks whose token is good still, and in somebody else's hand."""
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(_SQL["good"], {"own": OWN_TASK})
    return await cursor.fetchall()
