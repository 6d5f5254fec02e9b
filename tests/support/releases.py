"""A program that carries two releases of one kind, and what a release has passed by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from host.domain.acting import By
from host.domain.principals import Principal
from host.domain.proposals import NeedsHuman, PlannerDecision, PlannerView
from host.engine.accept import Origin, accept, beginning, read_case
from host.engine.parts import Kind, Parts, Tools
from host.planner.conformance import ConformancePlanner
from host.store import ledger, releases, rollout
from host.store.migrate import migrate
from host.store.releases import Passed
from host.workflows.catalogue import WORKFLOWS
from host.workflows.returns import RETURNS
from tests.support.cluster import database_name, drop_database, dsn_of
from tests.support.engine import CASE, KINDS, PINS, host_database, no_wake, parts

SATO = By("sato", "somebody", "sha256:" + "0" * 64)
WHY = "a test"


def _to_a_person(view: PlannerView) -> PlannerDecision:
    """Propose what the release before does, until the return is to be made: from there on a person has to."""
    return NeedsHuman("planner_needs_human") if view.state == "ELIGIBLE" else RETURNS.propose(view)


NEXT = replace(RETURNS, release="returns-2", propose=_to_a_person)  # it has a defect, which is why there is a way back


@asynccontextmanager
async def two_releases(tools: Tools) -> AsyncIterator[Parts]:
    """An engine whose program carries both, over a database that was migrated by it."""
    dsn = host_database()
    name = database_name(dsn)
    migrate(dsn_of(name), (*WORKFLOWS, NEXT))
    try:
        async with AsyncConnectionPool(dsn, min_size=1, max_size=8, open=False, kwargs={"autocommit": True}) as pool:
            made = await parts(pool, tools, ConformancePlanner((*WORKFLOWS, NEXT)))
            async with pool.connection() as connection:
                moves = await ledger.moves(connection, NEXT.kind, NEXT.release)
            yield replace(made, kinds={**made.kinds, (NEXT.kind, NEXT.release): Kind(NEXT, moves)})
    finally:
        drop_database(dsn_of(name))


async def owner(made: Parts) -> AsyncConnection[Any]:
    return await AsyncConnection.connect(dsn_of(database_name(made.pool.conninfo)), autocommit=True)


def passed_by(release: str, report: str = "") -> Passed:
    """What a release has passed by: a report that is told apart by `report`."""
    sha = (release + report).encode().hex().ljust(64, "0")[:64]
    return Passed("returns", release, sha, "build-1", datetime(2026, 8, 1, tzinfo=UTC), {"passed": True})


async def record(made: Parts, release: str, report: str = "") -> releases.Act:
    """Record that a release has passed."""
    async with await owner(made) as connection, connection.transaction():
        return await releases.record(connection, passed_by(release, report), SATO, WHY)


async def roll_back(made: Parts, *carried: str) -> releases.Act:
    async with await owner(made) as connection, connection.transaction():
        found = await releases.last_passed(connection, "returns", carried)
        assert found is not None
        return await releases.roll_back(connection, found, SATO, WHY)


async def take_new(made: Parts, principal: Principal | None = None, **changes: Any) -> UUID:
    """Take a case in under the release that new cases begin under, as the commands do."""
    kind, case = await beginning(made.pool, made.kinds, *read_case({**CASE, **changes}, KINDS))
    asking = made.authorization.principals[0] if principal is None else principal
    return (await accept(made.pool, kind, case, Origin(asking), PINS, no_wake)).workflow_id


async def take_many(made: Parts, numbers: range, principal: Principal) -> list[UUID]:
    """Take several in at once, each of an order of its own."""
    return await asyncio.gather(*(take_new(made, principal, order_id=f"A-{n}", request_id=f"r-{n}") for n in numbers))


async def acted(made: Parts, act: Any, *arguments: Any) -> Any:
    """Do what an operator does, as the owner."""
    async with await owner(made) as connection, connection.transaction():
        return await act(connection, *arguments, SATO, WHY)


async def open_stage(made: Parts) -> Any:
    async with made.pool.connection() as connection:
        return await rollout.current_stage(connection)
