"""Wake-ups: jobs of procrastinate in the same database, each carrying a workflow's id and nothing else.

A job is only a hint; the workflow's row decides. Jobs have neither a lock nor a queueing lock: a doubled wake-up costs
one read, while a lock that is held would abort the transaction that makes the work due.
"""

from __future__ import annotations

from typing import Any, Protocol
from uuid import UUID

from procrastinate import App, PsycopgConnector
from psycopg import AsyncConnection

from host.store.pool import bounded

TASK = "drive"


class Wake(Protocol):
    """Makes a wake-up in the caller's own transaction."""

    async def __call__(self, connection: AsyncConnection[Any], workflow_id: UUID) -> None:
        """Defer one job."""


def queue_app(dsn: str) -> App:
    """Make the queue's app over its own small pool."""
    return App(connector=PsycopgConnector(conninfo=bounded(dsn), min_size=1, max_size=4))


def waker(app: App) -> Wake:
    """Give the function that defers a wake-up on a caller's connection."""

    async def wake(connection: AsyncConnection[Any], workflow_id: UUID) -> None:
        await app.configure_task(TASK, connection=connection, allow_unknown=True).defer_async(
            workflow_id=str(workflow_id)
        )

    return wake
