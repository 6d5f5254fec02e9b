"""A real host database and an engine over it, with tools of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from host.domain.principals import AuthorizationSet, Principal
from host.domain.proposals import Planner
from host.engine.accept import Pins, accept, read_case
from host.engine.parts import Kind, Parts, Tools
from host.planner.conformance import ConformancePlanner
from host.store import ledger
from host.store.migrate import migrate
from host.workflows.returns import RETURNS
from shared_contracts.contract import Scope
from shared_contracts.tools import TOOLS
from tests.support.cluster import create_database, drop_database

KINDS = {RETURNS.kind: RETURNS}
PINS = Pins(order_snapshot="2026-07-30T00:00:00+09:00", policy="policy-v12", authz="authz-v7")
DESK = Principal(
    name="returns-desk@acme-jp",
    tenant_id="acme-jp",
    roles=("returns-desk",),
    scopes=frozenset(Scope),
    tools=frozenset(TOOLS),
)
CASE: dict[str, Any] = {
    "kind": "returns",
    "customer_id": "C-1",
    "order_id": "A-1",
    "lines": [{"line_id": "1", "quantity": 1}],
    "reason": "changed_mind",
    "message": "",
}
_template: list[str] = []


def host_database() -> str:
    """Copy the migrated database; one migration per process."""
    if not _template:
        dsn = create_database()
        migrate(dsn, (RETURNS,))
        _template.append(dsn.rsplit("dbname=", 1)[-1].split()[0].rsplit("/", 1)[-1].split("?")[0])
    return create_database(template=_template[0])


async def no_wake(_connection: AsyncConnection[Any], _workflow_id: UUID) -> None:
    """Wake nobody: the test drives by itself."""


@asynccontextmanager
async def engine(
    tools: Tools, planner: Planner | None = None, *, lease_seconds: float = 15, principal: Principal = DESK
) -> AsyncIterator[Parts]:
    """Give an engine on a database of its own."""
    dsn = host_database()
    async with AsyncConnectionPool(dsn, min_size=1, max_size=8, open=False, kwargs={"autocommit": True}) as pool:
        yield await parts(pool, tools, planner, lease_seconds=lease_seconds, principal=principal)
    drop_database(dsn)


async def parts(
    pool: Any, tools: Tools, planner: Planner | None = None, *, lease_seconds: float = 15, principal: Principal = DESK
) -> Parts:
    """Put an engine together over a pool."""
    async with pool.connection() as connection:
        moves = await ledger.moves(connection, RETURNS.kind, RETURNS.release)
    return Parts(
        pool=pool,
        tools=tools,
        planner=ConformancePlanner(KINDS) if planner is None else planner,
        kinds={(RETURNS.kind, RETURNS.release): Kind(RETURNS, moves)},
        registry=TOOLS,
        authorization=AuthorizationSet(version="authz-v7", principals=(principal,), approvers=()),
        owner="test-driver",
        lease_seconds=lease_seconds,
    )


async def take(engine_parts: Parts, **changes: Any) -> UUID:
    """Take a case in."""
    workflow, case = read_case({**CASE, **changes}, KINDS)
    kind = engine_parts.kinds[workflow.kind, workflow.release]
    principal = engine_parts.authorization.principals[0]
    return (await accept(engine_parts, kind, case, principal, PINS, None, no_wake)).workflow_id


async def rows(engine_parts: Parts, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
    """Run a query of the test's own."""
    async with engine_parts.pool.connection() as connection:
        return await (await connection.execute(query, parameters)).fetchall()
