"""One family's connections: every statement with bounded waits, and a dead connection is never a caller's problem.

Invariant: what is tried again is a read, or a transaction whose COMMIT was never sent. A COMMIT whose answer was
lost is told as just that, never as a failure and never as a success.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, LiteralString, Self, TypeAlias, TypeVar

import orjson
import psycopg
from psycopg import AsyncConnection, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from shared_contracts.keepalive import KEEPALIVE
from tool_server.store.role import check_role

Row: TypeAlias = tuple[Any, ...]
Connection: TypeAlias = AsyncConnection[Row]
Parameters: TypeAlias = Mapping[str, Any]
T = TypeVar("T")

# A statement of ours takes milliseconds: the timeouts only bound a stuck database, within the shortest tool's 5 s.
# Each goes by keys, and is planned once in a session, maybe while its table is empty: never to read one whole.
SESSION = (
    "-c TimeZone=UTC -c statement_timeout=4000 -c lock_timeout=2000 -c idle_in_transaction_session_timeout=10000"
    " -c enable_seqscan=off"
)
_WAIT_SECONDS = 3.0  # for a free connection, or the first one of a process
_KNOCK_SECONDS = 2  # the least that libpq takes
_RECONNECT_SECONDS = 5.0  # the pool waits twice as long after each failure, up to this: how late it can come back
CONNECTIONS_MAX = 10  # per family and replica; four families stay far below PostgreSQL's default of 100
_TRANSIENT = (errors.DeadlockDetected, errors.SerializationFailure)


class UnavailableError(Exception):
    """The database cannot work now; nothing was executed."""


class BusyError(Exception):
    """Somebody else holds what this call needs, for longer than a call should wait; nothing was executed."""


class CommitLostError(Exception):
    """The connection broke at COMMIT; whether it took effect is not known."""


class Pool:
    """The connections of one family, each seen to be of the family's role before anybody gets it."""

    def __init__(self, family: str, dsn: str) -> None:
        given = conninfo_to_dict(dsn)
        options = f"{given.get('options') or ''} {SESSION}".strip()
        self._family = family
        self._conninfo = make_conninfo(
            "", **{**KEEPALIVE, **given, "options": options, "application_name": f"kessai-tools/{family}"}
        )
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True, "prepare_threshold": 0},
            min_size=1, max_size=CONNECTIONS_MAX, timeout=_WAIT_SECONDS, reconnect_timeout=_RECONNECT_SECONDS,
            name=family, open=False, configure=self._configure,
        )  # fmt: skip

    async def __aenter__(self) -> Self:
        await self._pool.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.close()

    async def check_role(self, wait_seconds: float) -> None:
        """Judge the role as it stands now; raises WrongRoleError, UnavailableError."""

        async def once() -> None:
            async with self.connection(wait_seconds) as connection:
                await check_role(connection, self._family)

        await self._tried(once)

    async def knock(self) -> None:
        """Connect beside the pool, as it does; raises WrongRoleError and what keeps a connection from being made."""
        async with await AsyncConnection.connect(self._conninfo, connect_timeout=_KNOCK_SECONDS) as connection:
            await check_role(connection, self._family)

    async def one(self, query: LiteralString, parameters: Parameters) -> Row:
        """Run one statement that may run twice, and give its row; raises UnavailableError, BusyError."""
        return await self._twice(lambda connection: one(connection, query, parameters))

    async def transact(self, work: Callable[[Connection], Awaitable[tuple[bool, T]]]) -> T:
        """Run `work` in one transaction, committed where it says True; raises all three errors.

        `work` may run twice: what it does besides SQL must bear that.
        """
        return await self._twice(lambda connection: _transaction(connection, work))

    @asynccontextmanager
    async def connection(self, wait_seconds: float | None = None) -> AsyncIterator[Connection]:
        """Lend a connection of one's own, outside any transaction; raises UnavailableError."""
        try:
            connection = await self._pool.getconn(wait_seconds)
        except (PoolTimeout, PoolClosed) as error:
            raise UnavailableError(str(error)) from error
        try:
            yield connection
        finally:
            await self._pool.putconn(connection)

    @asynccontextmanager
    async def lend(self, query: LiteralString, parameters: Parameters) -> AsyncIterator[tuple[Connection, Row]]:
        """Lend a connection on which a first statement, which may run twice, has given its row."""
        async with AsyncExitStack() as stack:

            async def first() -> tuple[Connection, Row]:
                await stack.aclose()  # the connection of an attempt that failed
                connection = await stack.enter_async_context(self.connection())
                return connection, await one(connection, query, parameters)

            yield await self._tried(first)

    async def _configure(self, connection: Connection) -> None:
        set_json_loads(orjson.loads, connection)
        async with AsyncExitStack() as failed:
            failed.push_async_callback(connection.close)  # the pool would only forget it
            await check_role(connection, self._family)
            failed.pop_all()

    async def _twice(self, act: Callable[[Connection], Awaitable[T]]) -> T:
        async def once() -> T:
            async with self.connection() as connection:
                return await act(connection)

        return await self._tried(once)

    async def _tried(self, once: Callable[[], Awaitable[T]]) -> T:
        """Run what may run twice, and a second time where the first met a dead connection or a deadlock."""
        try:
            return await once()
        except errors.LockNotAvailable as error:
            raise BusyError(str(error)) from error
        except _TRANSIENT:
            pass
        except psycopg.OperationalError as error:
            if not _connection_died(error):
                raise UnavailableError(str(error)) from error
            await self._pool.check()  # after a restart all idle connections are dead: replace them at once
        try:
            return await once()
        except errors.LockNotAvailable as error:
            raise BusyError(str(error)) from error
        except psycopg.OperationalError as error:
            raise UnavailableError(str(error)) from error


async def one(connection: Connection, query: LiteralString, parameters: Parameters) -> Row:
    """Run a statement that gives one row, and give it."""
    row = await (await connection.execute(query, parameters)).fetchone()
    assert row is not None, "the statement gives one row whatever it finds"  # noqa: S101 — a bug, no input can cause it
    return row


async def _transaction(connection: Connection, work: Callable[[Connection], Awaitable[tuple[bool, T]]]) -> T:
    committing = False
    try:
        async with connection.transaction() as transaction:
            committing, given = await work(connection)
            if not committing:
                raise psycopg.Rollback(transaction)
    except psycopg.OperationalError as error:
        if committing and _connection_died(error):
            raise CommitLostError(str(error)) from error
        raise
    return given


def _connection_died(error: psycopg.OperationalError) -> bool:
    """Tell whether the server ended the connection (class 57P) or it broke without a word."""
    return error.sqlstate is None or error.sqlstate.startswith(("57P", "08"))
