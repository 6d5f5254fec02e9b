"""Stops as the ledger holds them: engaged by whoever runs the host; a scope without a row reads as stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import class_row

from host.store.queries import load_queries

_SQL = load_queries(__file__)
NEW_WORK, UPDATES, READS, PARALLEL = "new_work", "updates", "reads", "parallel"
EVERYTHING: Final = (NEW_WORK, UPDATES, READS)


@dataclass(frozen=True, slots=True)
class Stop:
    """One scope. `at` is None where the row is missing."""

    scope: str
    engaged: bool
    actor: str
    reason: str
    at: datetime | None


async def engage(connection: AsyncConnection[Any], scopes: Sequence[str], actor: str, reason: str, cause: str) -> None:
    """Let nothing new begin from this transaction's commit on; waits for what is committing now."""
    parameters = {"scopes": list(scopes), "actor": actor, "reason": reason, "cause": cause}
    await connection.execute(_SQL["engage"], parameters)


async def standing(connection: AsyncConnection[Any]) -> list[Stop]:
    """Tell of every scope whether it is stopped, by whom and why."""
    cursor = connection.cursor(row_factory=class_row(Stop))
    await cursor.execute(_SQL["standing"])
    return await cursor.fetchall()
