"""The ledger's statements. Each function takes a connection first and never commits; the caller owns that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from host.domain.rows import Rows
from host.domain.workflow import Move
from host.store.errors import StaleWorkflowError, refusals
from host.store.fetch import all_of, first_of, only_of
from host.store.queries import load_queries

_SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit left behind; times are the database's."""

    workflow_id: UUID
    version: int
    fence: int
    at: datetime
    active_ms: int
    entered_active_ms: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """The workflow of a request, and whether this call made it."""

    workflow_id: UUID
    body_sha256: str
    created: bool


@dataclass(frozen=True, slots=True)
class Queue:
    """Work that could go on now and has no worker."""

    waiting: int
    oldest_seconds: float


async def load(connection: AsyncConnection[Any], workflow_id: UUID) -> dict[str, Any] | None:
    """Read a workflow with all that belongs to it; None where there is none."""
    return next(iter(await load_all(connection, [workflow_id])), None)


async def load_all(connection: AsyncConnection[Any], workflow_ids: list[UUID]) -> list[dict[str, Any]]:
    """Read several workflows at once, in no order."""
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(_SQL["load"], {"workflow_ids": workflow_ids})
    return await cursor.fetchall()


async def unapproved(connection: AsyncConnection[Any], most: int) -> list[UUID]:
    """List cases whose time for an approval is up."""
    cursor = await connection.execute(_SQL["unapproved"], {"most": most})
    return [row[0] async for row in cursor]


async def overdue(connection: AsyncConnection[Any], most: int) -> list[UUID]:
    """List cases in which something was to be undone by now."""
    cursor = await connection.execute(_SQL["overdue"], {"most": most})
    return [row[0] async for row in cursor]


async def commit_steps(connection: AsyncConnection[Any], rows: Rows) -> dict[str, Committed]:
    """Write the steps of one or of several workflows, all or none; gives what each workflow became, by its id.

    Raises StaleWorkflowError, StoppedError, OneAtATimeError, OutOfTimeError, ApprovalOverError, UnitsBusyError,
    UnsettledElsewhereError, InvariantError.
    """
    with refusals():
        done = await all_of(connection, Committed, _SQL["commit_steps"], rows=Jsonb(rows))
    return {str(one.workflow_id): one for one in done}


async def renew_lease(
    connection: AsyncConnection[Any], workflow_id: UUID, fence: int, owner: str, seconds: float
) -> bool:
    """Keep a lease through a slow call; False means that it was taken."""
    parameters = {"workflow_id": workflow_id, "fence": fence, "owner": owner, "seconds": seconds}
    cursor = await connection.execute(_SQL["renew_lease"], parameters)
    row = await cursor.fetchone()
    return row is not None and row[0] is True


async def count_broken_drive(connection: AsyncConnection[Any], workflow_id: UUID, most: int) -> None:
    """Count a drive that broke before it committed; beyond `most` of them the case goes to a person."""
    await connection.execute(_SQL["count_broken_drive"], {"workflow_id": workflow_id, "most": most})


async def accept_case(connection: AsyncConnection[Any], case: dict[str, Any]) -> Accepted:
    """Take a case in, or find the workflow that its request has; raises StoppedError."""
    with refusals():
        row = await first_of(connection, Accepted, _SQL["accept_case"], case=Jsonb(case))
    if row is None:
        raise StaleWorkflowError("the request was taken in and is gone again; try once more")
    return row


async def moves(connection: AsyncConnection[Any], kind: str, release: str) -> dict[Move, int]:
    """Read the ids of every legal move of a kind's release."""
    cursor = await connection.execute(_SQL["moves"], {"kind": kind, "release": release})
    return {Move(*row[1:]): row[0] async for row in cursor}


async def releases(connection: AsyncConnection[Any]) -> set[tuple[str, str]]:
    """List the releases that were ever installed here; they are few."""
    cursor = await connection.execute(_SQL["releases"])
    return {(kind, release) async for kind, release in cursor}


async def open_releases(connection: AsyncConnection[Any]) -> set[tuple[str, str]]:
    """List the releases that workflows still go on under."""
    cursor = await connection.execute(_SQL["open_releases"])
    return {(kind, release) async for kind, release in cursor}


async def queue(connection: AsyncConnection[Any]) -> Queue:
    """Measure the waiting queue."""
    return await only_of(connection, Queue, _SQL["queue"])


async def due(connection: AsyncConnection[Any], most: int) -> list[UUID]:
    """List due workflows that no pending wake-up will bring, oldest first."""
    cursor = await connection.execute(_SQL["due"], {"most": most})
    return [row[0] async for row in cursor]


async def one_at_a_time(connection: AsyncConnection[Any]) -> bool:
    """Tell whether one case is driven at a time, as it is after a stop."""
    row = await (await connection.execute(_SQL["one_at_a_time"])).fetchone()
    return row is None or row[0] is not False


async def lock_sweep(connection: AsyncConnection[Any]) -> bool:
    """Take the sweep for this transaction; False where another process has it."""
    cursor = await connection.execute(_SQL["lock_sweep"])
    row = await cursor.fetchone()
    return row is not None and row[0] is True
