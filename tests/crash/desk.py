"""Takes cases in as the host does: a workflow and its wake-up in one transaction. It calls and drives nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

from psycopg import OperationalError

from host.database import Pool, database
from host.domain.outcome import Outcome
from host.domain.principals import Principal
from host.engine.accept import Origin, Pins, accept, read_case
from host.engine.parts import Kind, Parts, Request
from host.engine.wake import Wake, queue_app, waker
from host.planner.conformance import ConformancePlanner
from host.rights import pins, read_authorization
from host.settings import Settings
from host.store import ledger
from host.workflows.catalogue import CURRENT, WORKFLOWS
from host.workflows.returns import RETURNS
from shared_contracts.tools import TOOLS
from tests.crash.orders import PRINCIPAL, case

Rows = list[tuple[Any, ...]]


class NoTools:
    """Whoever only takes cases in has no way out."""

    async def call(self, request: Request) -> Outcome:
        raise AssertionError(f"the desk calls nothing, and {request.tool.name} least of all")

    async def turn(self, tenant_id: str, principal: str) -> None:
        raise AssertionError(f"the desk calls nothing, for {principal} of {tenant_id} no more than for others")

    def available(self) -> frozenset[str]:
        return frozenset()


@dataclass(frozen=True)
class Desk:
    """Where cases come in. `wake` may be used to wake a workflow once more than it needs."""

    parts: Parts
    kind: Kind
    principal: Principal
    pins: Pins
    wake: Wake

    @property
    def pool(self) -> Pool:
        return self.parts.pool

    async def take(self, number: int) -> UUID:
        """Take in the return of one order; the same number again is the same request."""
        _, read = read_case(case(number), CURRENT)
        return (
            await accept(self.parts.pool, self.kind, read, Origin(self.principal), self.pins, self.wake)
        ).workflow_id

    async def rows(self, query: LiteralString, **values: object) -> Rows:
        """Ask; a connection that has died meanwhile is replaced once, as a test may have killed the database."""
        try:
            return await self._rows(query, values)
        except OperationalError:
            await self.pool.check()
            return await self._rows(query, values)

    async def _rows(self, query: LiteralString, values: dict[str, object]) -> Rows:
        async with self.pool.connection() as connection:
            return await (await connection.execute(query, values)).fetchall()


@asynccontextmanager
async def desk(dsn: str) -> AsyncIterator[Desk]:
    """Open one on the host's database, as the engine's own role."""
    settings = Settings()
    authorization = read_authorization(settings.authz_file)
    queue = queue_app(dsn)
    async with database(dsn) as pool, queue.open_async():
        async with pool.connection() as connection:
            moves = await ledger.moves(connection, RETURNS.kind, RETURNS.release)
        kind = Kind(RETURNS, moves)
        parts = Parts(
            pool=pool,
            tools=NoTools(),
            planner=ConformancePlanner(WORKFLOWS),
            kinds={(RETURNS.kind, RETURNS.release): kind},
            registry=TOOLS,
            authorization=authorization,
            owner="the desk",
            lease_seconds=15,
        )
        principal = authorization.by_name()[PRINCIPAL]
        yield Desk(parts, kind, principal, pins(settings, authorization), waker(queue))
