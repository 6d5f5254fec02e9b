"""Reads the tool server's log and business tables as its auditor's role: all that the host asks of that database.

Invariant: no module of the tool server is imported for it, and no connection is used but an auditor's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from psycopg import AsyncConnection

from host.domain.books import Logged, Made, Stands
from host.store.fetch import all_of
from host.store.queries import load_queries

_SQL = load_queries(__file__)


async def log(
    connection: AsyncConnection[Any], tokens: list[str] | None = None, task: str | None = None
) -> tuple[Logged, ...]:
    """Read the log: all of it, or the rows of some tokens and of a task."""
    return tuple(await all_of(connection, Logged, _SQL["log"], tokens=tokens, task=task))


async def made(connection: AsyncConnection[Any], keys: list[str] | None = None) -> tuple[Made, ...]:
    """Read what stands there: all of it, or under some keys."""
    found = await all_of(connection, Made, _SQL["made"], keys=keys)
    return tuple(replace(row, stands=Stands(row.stands)) for row in found)
