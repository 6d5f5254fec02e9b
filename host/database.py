"""The pool on the host's own database, opened only where the schema is this program's.

Reading commands need this and nothing else, so that they start without the tool client, the queue and the engine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from host.store import ledger
from host.store.packaged import QUEUE, packaged
from host.store.pool import Pool, bounded
from host.workflows.catalogue import BY_RELEASE
from shared_contracts.told import unconnected

POOL_SIZE_MAX = 16
NO_CONNECTION_STRING = "is no connection string; write host=… port=… dbname=… user=…"
OPEN_SECONDS = 10.0
# Our statements take milliseconds: who holds a row for longer, or a database that is stuck, must not hold us as well.
_SESSION = "-c lock_timeout=2000 -c statement_timeout=10000 -c idle_in_transaction_session_timeout=10000"


class NotReadyError(Exception):
    """Work cannot begin; the message says what is wrong and what mends it."""


@asynccontextmanager
async def database(dsn: str, size: int = POOL_SIZE_MAX) -> AsyncIterator[Pool]:
    """Open the pool on a database of this program's schema; raises NotReadyError."""
    where = _where(dsn)
    await _look(dsn, where)
    pool: Pool = AsyncConnectionPool(
        bounded(dsn, _SESSION),
        min_size=1, max_size=size, open=False, timeout=OPEN_SECONDS, kwargs={"autocommit": True},
    )  # fmt: skip
    try:
        await pool.open(wait=True, timeout=OPEN_SECONDS)
        yield pool
    except PoolTimeout as error:
        raise NotReadyError(f"the host's database ({where}) stopped answering; try again") from error
    finally:
        await pool.close()


def _where(dsn: str) -> str:
    """Name the server without anything secret."""
    try:
        known = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        raise NotReadyError(f"KESSAI_DSN {NO_CONNECTION_STRING}") from error
    return " ".join(f"{name}={known[name]}" for name in ("host", "port", "dbname", "user") if known.get(name))


async def _look(dsn: str, where: str) -> None:
    """Connect once by itself: a pool would try again and again without saying why."""
    try:
        conninfo = bounded(dsn, _SESSION, connect_timeout=int(OPEN_SECONDS))
        async with await AsyncConnection.connect(conninfo, autocommit=True) as first:
            await _check_schema(first)
    except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
        raise NotReadyError(f"the host's database ({where}) is held up, as by a migration; try again") from error
    except psycopg.OperationalError as error:
        asks = error.pgconn is not None and error.pgconn.needs_password
        what, mend = unconnected(str(error), wants_password=asks, setting="KESSAI_DSN")
        raise NotReadyError(f"{what}\n{where}\n{mend}") from error


async def _check_schema(connection: AsyncConnection[Any]) -> None:
    try:
        rows = await (await connection.execute("SELECT name FROM schema_version")).fetchall()
        unknown = await ledger.releases(connection) - BY_RELEASE.keys()  # only they are worth a look at all workflows
        missing = await ledger.open_releases(connection) & unknown if unknown else set()
    except psycopg.errors.UndefinedTable as error:
        raise NotReadyError("the host's database has no schema yet; run `kessai migrate`") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise NotReadyError("this role may not read the host's database; run `kessai migrate` as its owner") from error
    ours, theirs = {file.name for file in packaged()}, {name for (name,) in rows} - {QUEUE}
    if theirs - ours:
        raise NotReadyError("the host's database has a newer schema than this program; install the newer program")
    if ours - theirs:
        raise NotReadyError(
            "the host's database has an older schema; run `kessai migrate` (this machine's: `kessai up`)"
        )
    if missing:
        raise NotReadyError(f"open workflows of {sorted(missing)} need a release that this program does not carry")
