"""A real host database and an engine over it, under the worker's own role, with tools of the test's own."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, sql
from psycopg_pool import AsyncConnectionPool

from host.domain.control import ENDS
from host.domain.principals import AuthorizationSet, Principal
from host.domain.proposals import Planner
from host.domain.rows import Rows
from host.domain.state import State
from host.domain.step import Step
from host.domain.wait import Wait
from host.domain.workflow import Workflow
from host.engine.accept import Origin, Pins, accept, read_case
from host.engine.drive import drive
from host.engine.parts import Kind, Parts, Tools
from host.planner.conformance import ConformancePlanner
from host.store import ledger
from host.store.migrate import migrate
from host.store.rollout import waive_anew
from host.workflows.catalogue import CURRENT, WORKFLOWS
from host.workflows.returns import RETURNS
from shared_contracts.approval import Approver
from shared_contracts.base import Money
from shared_contracts.contract import Scope
from shared_contracts.tools import TOOLS
from tests.support.cluster import create_database, database_name, dsn_of, kept

KINDS = CURRENT
PINS = Pins(order_snapshot="2026-07-30T00:00:00+09:00", policy="policy-v12", authz="authz-v7")
DESK = Principal(
    name="returns-desk@acme-jp",
    tenant_id="acme-jp",
    roles=("returns-desk",),
    scopes=frozenset(Scope),
    tools=frozenset(TOOLS),
)
# somebody who may decide, without whom a kind that asks for approvals only drafts
HEAD = Approver(
    name="head", tenant_id="acme-jp", limit=Money(amount=500_000, currency="JPY"), substitutes=(),
    substitutes_after_seconds=0,
)  # fmt: skip
CASE: dict[str, Any] = {
    "kind": "returns",
    "customer_id": "C-1",
    "order_id": "A-1",
    "lines": [{"line_id": "1", "quantity": 1}],
    "reason": "changed_mind",
    "message": "",
}
SCOPES = ["new_work", "updates", "reads", "parallel"]
ROLE, PASSWORD = "host_rt", "the-workers-own"
_template: list[str] = []
_free: list[str] = []
_CLOCK = sql.SQL("CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT {} $$")
_FILLED = (
    "workflow", "checkpoint", "offer", "decision", "call", "attempt", "effect", "refusal", "audit", "outbox",
    "external_task", "planner_cost", "approver_key", "approval_request", "approval", "procrastinate_jobs",
    "procrastinate_events", "procrastinate_workers", "stop", "stop_log", "reconciliation", "compensation",
    "release_log", "rollout_log", "admission", "case_check",
    "seal_link", "seal_head", "seal_witness", "seal_cut", "seal_restored",
)  # fmt: skip


def host_database() -> str:
    """Copy the migrated database, for the worker's role; one migration per process."""
    if not _template:
        dsn = create_database()
        migrate(dsn, WORKFLOWS, waived_by="test")
        with psycopg.connect(dsn) as admin:
            admin.execute(f"ALTER ROLE {ROLE} PASSWORD '{PASSWORD}'")
        _template.append(database_name(dsn))
    database = database_name(create_database(template=_template[0]))
    with psycopg.connect(dsn_of(database)) as admin:
        admin.execute(f"GRANT CONNECT ON DATABASE {database} TO {ROLE}")
    return dsn_of(database, user=ROLE, password=PASSWORD)


def _empty(database: str) -> None:
    """Make a database as it was when it was migrated: far faster than another copy."""
    admin = kept(dsn_of(database))
    with admin.transaction():
        admin.execute("SET LOCAL session_replication_role = replica")  # histories are guarded against their owner too
        admin.execute(sql.SQL("; ").join(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)) for name in _FILLED))
        admin.execute("DELETE FROM act WHERE relation <> 'asked_approval'")
        admin.execute("INSERT INTO stop SELECT s, false, 'test', 'test', now() FROM unnest(%s::text[]) s", (SCOPES,))
        admin.execute("SET LOCAL session_replication_role = origin")
        admin.execute(_CLOCK.format(sql.SQL("clock_timestamp()")))
        waive_anew(admin, "test", "a test's own")


def owners(engine_parts: Parts) -> psycopg.Connection[Any]:
    """Connect to the engine's database as its owner, who may try anything."""
    return psycopg.connect(dsn_of(database_name(engine_parts.pool.conninfo)), autocommit=True)


def advance_clock(engine_parts: Parts, seconds: float) -> None:
    """Let the database's one clock go on by so much more than the real one."""
    connection = kept(engine_parts.pool.conninfo)
    row = connection.execute("SELECT extract(epoch FROM clock_now() - clock_timestamp())::float8").fetchone()
    ahead = seconds + (0.0 if row is None else float(row[0]))
    connection.execute(_CLOCK.format(sql.SQL("clock_timestamp() + make_interval(secs => {})").format(ahead)))


def engage(engine_parts: Parts, scope: str, *, engaged: bool = True) -> None:
    """Engage or release a stop as an operator does: in a transaction that holds the stop's lock."""
    with owners(engine_parts) as connection, connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(stop_lock_key())")
        connection.execute("UPDATE stop SET engaged = %s, at = clock_now() WHERE scope = %s", (engaged, scope))


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on an event loop of its own, for a bounded time."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 60))

    return run


async def no_wake(connection: AsyncConnection[Any], workflow_id: UUID) -> None:
    """Wake nobody: the test drives by itself."""


@asynccontextmanager
async def engine(
    tools: Tools,
    planner: Planner | None = None,
    *,
    lease_seconds: float = 15,
    principal: Principal = DESK,
    approvers: tuple[Approver, ...] = (HEAD,),
    workflow: Workflow = RETURNS,
) -> AsyncIterator[Parts]:
    """Give an engine on a database of its own, which the next test gets emptied."""
    dsn = _free.pop() if _free else host_database()
    try:
        async with AsyncConnectionPool(dsn, min_size=1, max_size=8, open=False, kwargs={"autocommit": True}) as pool:
            made = await parts(
                pool, tools, planner, lease_seconds=lease_seconds, principal=principal, approvers=approvers
            )
            async with pool.connection() as connection:
                moves = await ledger.moves(connection, workflow.kind, workflow.release)
            yield replace(made, kinds={(workflow.kind, workflow.release): Kind(workflow, moves)})
    finally:
        _empty(database_name(dsn))
        _free.append(dsn)


async def parts(
    pool: Any,
    tools: Tools,
    planner: Planner | None = None,
    *,
    lease_seconds: float = 15,
    principal: Principal = DESK,
    owner: str = "test-driver",
    approvers: tuple[Approver, ...] = (HEAD,),
) -> Parts:
    """Put an engine together over a pool."""
    async with pool.connection() as connection:
        moves = await ledger.moves(connection, RETURNS.kind, RETURNS.release)
    return Parts(
        pool=pool,
        tools=tools,
        planner=ConformancePlanner(WORKFLOWS) if planner is None else planner,
        kinds={(RETURNS.kind, RETURNS.release): Kind(RETURNS, moves)},
        registry=TOOLS,
        authorization=AuthorizationSet(version="authz-v7", principals=(principal,), approvers=approvers, operators=()),
        owner=owner,
        lease_seconds=lease_seconds,
    )


async def take(engine_parts: Parts, **changes: Any) -> UUID:
    """Take a case in."""
    workflow, case = read_case({**CASE, **changes}, KINDS)
    kind = engine_parts.kinds[workflow.kind, workflow.release]
    principal = engine_parts.authorization.principals[0]
    return (await accept(engine_parts.pool, kind, case, Origin(principal), PINS, no_wake)).workflow_id


def untouched(state: State) -> Rows:
    """A step that changes nothing of where a workflow stands and lets go of it; for what else is laid beside it."""
    return Step(state, RETURNS, {}, claim=False, active_ms=0).rows("nobody", 1.0, Wait("ended", None))


async def rows(engine_parts: Parts, query: LiteralString, **parameters: Any) -> list[tuple[Any, ...]]:
    """Run a query of the test's own."""
    async with engine_parts.pool.connection() as connection:
        return await (await connection.execute(query, parameters)).fetchall()


async def settle(engine_parts: Parts, workflow_id: UUID, *, most: int = 60) -> State:
    """Drive to an end or to a wait for a person, and let the clock pass over every other wait."""
    for _ in range(most):
        state = await drive(engine_parts, workflow_id)
        reason, due = (await rows(engine_parts, _WAIT, id=workflow_id))[0]
        if state.control.control in ENDS or due is None or reason in RESTS:
            return state
        advance_clock(engine_parts, max(0.0, due) + 0.001)
    raise AssertionError(f"no rest after {most} drives: {state}")


RESTS = frozenset({"approval", "stopped", "stopped_reads", "compensation"})
_WAIT: LiteralString = """
SELECT wake_reason, extract(epoch FROM wake_at - clock_now())::float8 FROM workflow WHERE workflow_id = %(id)s
"""
