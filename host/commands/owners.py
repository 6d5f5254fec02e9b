"""What the owner of the host's database alone may do: one act, in one transaction, under the owner's connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from psycopg import AsyncConnection

from host.commands.exits import CommandError, Exit
from host.commands.workplace import owning
from host.database import database
from host.settings import Settings
from host.store import stops

T = TypeVar("T")


async def as_owner(settings: Settings, act: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
    """Act, after whatever is committing now; raises CommandError where the owner's connection is not ours."""
    async with owning(settings) as place:
        if place.dsn is None:
            mend = "Only the owner lets cases in: set it to the owner's connection. Nothing was changed."
            raise CommandError(Exit.NOT_READY, "KESSAI_MIGRATE_DSN is not set", mend)
        async with database(place.dsn, 1) as pool, pool.connection() as connection, connection.transaction():
            await stops.be_patient(connection)
            return await act(connection)
