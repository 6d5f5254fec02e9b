"""The reading statements: what people, and the commands, ask of the ledger. They write nothing and lock nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from host.store.fetch import all_of, first_of, only_of
from host.store.queries import load_queries

_SQL = load_queries(__file__)
LATEST = UUID(int=2**128 - 1)  # every id comes before it


@dataclass(frozen=True, slots=True)
class Position:
    """Where a workflow stands just now, for whoever waits for it."""

    state: str
    control_state: str
    reason: str
    wake_reason: str | None
    lease_owner: str | None
    seq: int
    version: int
    leased: bool
    due_in_seconds: float | None


@dataclass(frozen=True, slots=True)
class Moment:
    """One checkpoint of the timeline. `tool` and `send` are those of the call that it belongs to."""

    seq: int
    at: datetime
    control_from: str
    control_to: str
    state: str
    event: str
    actor: str
    reason: str
    evidence: list[str]
    tool: str | None
    send: int


@dataclass(frozen=True, slots=True)
class Summary:
    """One line of a list. `effects` and the codes of `alerts` stand in the exception queue alone.

    `held` is of a driver's hand; `held_by` of a stop.
    """

    workflow_id: UUID
    kind: str
    tenant_id: str
    resource: str
    state: str
    control_state: str
    reason: str
    wake_reason: str | None
    review_closed_at: datetime | None
    created_at: datetime
    updated_at: datetime
    held: bool
    age_seconds: float
    effects: list[dict[str, Any]] | None
    alerts: list[str] | None
    held_by: str | None


@dataclass(frozen=True, slots=True)
class Match:
    """One of several workflows that a name belongs to; step and tool where the name is a call's."""

    workflow_id: UUID
    state: str
    step_id: str | None
    tool: str | None


@dataclass(frozen=True, slots=True)
class Rights:
    """Who reads, and whether that role may do what the engine needs and no more."""

    role: str
    narrow: bool


async def find(connection: AsyncConnection[Any], name: str, most: int) -> list[UUID]:
    """List the workflows that a name belongs to, newest first."""
    workflow_id, step = _parts(name)
    parameters = {"workflow_id": workflow_id, "step": step, "name": name, "most": most}
    cursor = await connection.execute(_SQL["find"], parameters)
    return [row[0] async for row in cursor]


async def matches(connection: AsyncConnection[Any], name: str, found: list[UUID]) -> list[Match]:
    """Tell apart what shares a name, newest first."""
    return await all_of(connection, Match, _SQL["matches"], name=name, found=found)


def _parts(name: str) -> tuple[UUID | None, int | None]:
    """Take a step's id apart: workflow and number."""
    head, dot, tail = name.partition(".")
    try:
        workflow_id = UUID(head)
    except ValueError:
        return None, None
    if dot == "":
        return workflow_id, None
    numbered = tail.isascii() and tail.isdecimal() and len(tail) < 9
    return (workflow_id, int(tail)) if numbered else (None, None)


async def read(connection: AsyncConnection[Any], workflow_id: UUID) -> dict[str, Any] | None:
    """Read everything that a record is assembled from; None where there is none."""
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(_SQL["record"], {"workflow_id": workflow_id})
    return await cursor.fetchone()


async def position(connection: AsyncConnection[Any], workflow_id: UUID) -> Position | None:
    """Tell where a workflow stands."""
    return await first_of(connection, Position, _SQL["position"], workflow_id=workflow_id)


async def timeline(connection: AsyncConnection[Any], workflow_id: UUID, after: int) -> list[Moment]:
    """List the checkpoints after a sequence number."""
    return await all_of(connection, Moment, _SQL["timeline"], workflow_id=workflow_id, after=after)


async def page(
    connection: AsyncConnection[Any], state: str | None, kind: str | None, before: UUID, most: int
) -> list[Summary]:
    """List workflows, newest first; of one state, of one kind where one is named."""
    return await all_of(connection, Summary, _SQL["page"], state=state, kind=kind, before=before, most=most)


async def exceptions(connection: AsyncConnection[Any], most: int) -> list[Summary]:
    """List the exception queue, oldest first."""
    return await all_of(connection, Summary, _SQL["exceptions"], most=most)


async def exception_reasons(connection: AsyncConnection[Any]) -> dict[str, int]:
    """Count the whole exception queue by reason."""
    cursor = await connection.execute(_SQL["exception_reasons"])
    return {reason: cases async for reason, cases in cursor}


async def entries(connection: AsyncConnection[Any], workflow_id: UUID | None, most: int) -> list[dict[str, Any]]:
    """Export the calls of one workflow or, newest first, of all."""
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(_SQL["entries"], {"workflow_id": workflow_id, "most": most})
    return await cursor.fetchall()


async def rights(connection: AsyncConnection[Any]) -> Rights:
    """Look at the connection's own role."""
    return await only_of(connection, Rights, _SQL["rights"])
