"""Compensations as the ledger holds them; what orders and ends one is part of a durable step."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from host.domain.acting import By
from host.store.queries import load_queries

_SQL = load_queries(__file__)


async def release(connection: AsyncConnection[Any], workflow_id: UUID, by: By) -> bool:
    """Let one be undone under a stop; False where none waits for it."""
    named = {"workflow_id": workflow_id, "by": by.name, "details": Jsonb(by.details())}
    cursor = await connection.execute(_SQL["release"], named)
    row = await cursor.fetchone()
    return row is not None and row[0] is True
