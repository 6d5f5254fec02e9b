"""Compensations as the ledger holds them; what orders and ends one is part of a durable step."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from host.store.queries import load_queries

_SQL = load_queries(__file__)


async def release(connection: AsyncConnection[Any], workflow_id: UUID, by: str, os_user: str) -> bool:
    """Let one be undone under a stop; False where none waits for it."""
    cursor = await connection.execute(_SQL["release"], {"workflow_id": workflow_id, "by": by, "os_user": os_user})
    row = await cursor.fetchone()
    return row is not None and row[0] is True
