"""Reads one database as an auditor does: of one instant, and with a role that can change nothing in it.

Invariant: a role that could write is refused before anything is read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from psycopg import AsyncConnection, IsolationLevel

from host.domain.books import Attempted, Intended, Issued, Ledger
from host.store.external import OWN_TASK
from host.store.fetch import all_of
from host.store.pool import bounded
from host.store.queries import load_queries

_SQL = load_queries(__file__)
CONNECT_SECONDS = 10
_SESSION = "-c statement_timeout=300000 -c lock_timeout=10000"  # a scan of all that ever happened


class NotAnAuditorError(Exception):
    """The connection's role may write, so that it is none of the two that may compare."""


@asynccontextmanager
async def snapshot(dsn: str) -> AsyncIterator[AsyncConnection[Any]]:
    """Connect, and see one instant in the block. Raises NotAnAuditorError, and what connecting raises."""
    async with await AsyncConnection.connect(bounded(dsn, _SESSION, connect_timeout=CONNECT_SECONDS)) as connection:
        await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        await connection.set_read_only(True)
        ((writes,),) = await (await connection.execute(_SQL["writes"])).fetchall()
        if writes:
            raise NotAnAuditorError
        yield connection


@dataclass(frozen=True, slots=True)
class Only:
    """One workflow alone, and whoever else has these tokens and keys."""

    case: str
    tokens: list[str]
    keys: list[str]


async def ledger(connection: AsyncConnection[Any], only: Only | None = None) -> Ledger:
    """Read the host's side."""
    case, tokens, keys = (None, None, None) if only is None else (only.case, only.tokens, only.keys)
    issued = await all_of(connection, Issued, _SQL["issued"])
    return Ledger(
        attempts=tuple(await all_of(connection, Attempted, _SQL["attempts"], case=case, tokens=tokens)),
        effects=tuple(await all_of(connection, Intended, _SQL["effects"], case=case, keys=keys)),
        # a token that the host uses itself names its task without the mark that the record has of it
        issued=tuple(replace(task, task_id=task.task_id.removeprefix(OWN_TASK)) for task in issued),
    )
