"""Stop and go on as an operator does, straight through the store: the engine's role stops, the owner lifts."""

from __future__ import annotations

from uuid import UUID

from psycopg import AsyncConnection

from host.domain.acting import By
from host.engine.parts import Parts
from host.store import stops
from host.store.stops import Reconciled
from tests.support.cluster import database_name, dsn_of

OPERATOR = By("sato", "tester", "sha256:of-a-test")
REASON = "a test"
UPDATES = (stops.NEW_WORK, stops.UPDATES)


async def stop(parts: Parts, *, reads: bool = False, by: By = OPERATOR, reason: str = REASON) -> None:
    scopes = stops.EVERYTHING if reads else UPDATES
    async with parts.pool.connection() as connection, connection.transaction():
        await stops.engage(connection, scopes, by, reason, "operator")


async def newest_act(parts: Parts) -> int:
    async with parts.pool.connection() as connection:
        return await stops.newest_act(connection)


async def reconciled(parts: Parts, after: int | None = None) -> Reconciled:
    """As somebody does who looks nothing up, unless the test says from when on something was."""
    act = await newest_act(parts) if after is None else after
    async with parts.pool.connection() as connection:
        return await stops.reconcile(connection, OPERATOR, REASON, act)


async def owner(parts: Parts) -> AsyncConnection[tuple[object, ...]]:
    return await AsyncConnection.connect(dsn_of(database_name(parts.pool.conninfo)), autocommit=True)


async def lift(parts: Parts, reconciliation_id: int | None = None) -> int:
    """Over a fresh record, unless the test has one; gives how many were held by it."""
    number = (await reconciled(parts)).reconciliation_id if reconciliation_id is None else reconciliation_id
    async with await owner(parts) as connection:
        return await stops.lift(connection, OPERATOR, REASON, number)


async def release(parts: Parts, state: str, most: int) -> list[UUID]:
    async with await owner(parts) as connection:
        return await stops.release(connection, OPERATOR, REASON, state, most)


async def full(parts: Parts) -> None:
    async with await owner(parts) as connection:
        await stops.end_one_at_a_time(connection, OPERATOR, REASON)


async def held(parts: Parts) -> dict[str, int]:
    async with parts.pool.connection() as connection:
        return {one.state: one.cases for one in await stops.held(connection)}


async def engaged(parts: Parts) -> set[str]:
    async with parts.pool.connection() as connection:
        return {one.scope for one in await stops.scopes(connection) if one.engaged}
