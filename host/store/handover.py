"""What a handover sheet is made of: the record's rows, and what lies around the case. One instant, one snapshot."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from host.store import record
from host.store.queries import load_queries

_SQL = load_queries(__file__)
OTHERS_MAX = 50  # more of them at work on one order than anybody reads about
STOPS_MAX = 100  # of a case that lay for months


async def read(connection: AsyncConnection[Any], workflow_id: UUID) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Read a case and what lies around it; None where there is no such case. Takes a transaction of its own."""
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = await record.read(connection, workflow_id)
        cursor = connection.cursor(row_factory=dict_row)
        await cursor.execute(_SQL["around"], {"workflow_id": workflow_id, "most": OTHERS_MAX, "most_stops": STOPS_MAX})
        around = await cursor.fetchone()
    return None if row is None or around is None else (row, around)
