"""Stops as the ledger holds them: engaged by whoever runs the host, lifted by its owner alone.

Invariant: a scope without a row reads as stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from host.domain.acting import By
from host.store.acts import said_by
from host.store.errors import refusals
from host.store.fetch import all_of, only_of
from host.store.queries import load_queries

_SQL = load_queries(__file__)
NEW_WORK, UPDATES, READS, PARALLEL = "new_work", "updates", "reads", "parallel"
EVERYTHING: Final = (NEW_WORK, UPDATES, READS)


@dataclass(frozen=True, slots=True)
class Stop:
    """One scope. `at` is None where the row is missing."""

    scope: str
    engaged: bool
    actor: str
    reason: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Open:
    """What has not ended and stands in one state."""

    state: str
    cases: int
    workflow_ids: list[UUID]


@dataclass(frozen=True, slots=True)
class Held:
    """How many of one state wait until somebody releases them."""

    state: str
    cases: int


@dataclass(frozen=True, slots=True)
class UnderWay:
    """An effect whose intent was committed, of a case at work."""

    workflow_id: UUID
    state: str
    name: str
    idempotency_key: str


@dataclass(frozen=True, slots=True)
class InDoubt:
    """Whose request was under way; `open`: a driver can go on with it, otherwise a person has it."""

    workflow_id: UUID
    open: bool


@dataclass(frozen=True, slots=True)
class Again:
    """A stop of the history; where something was found, `workflow_id` is its case."""

    stop_id: int
    actor: str
    reason: str
    cause: str
    workflow_id: UUID | None


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What was counted, as the record keeps it."""

    reconciliation_id: int
    states: dict[str, Any]
    unsettled: list[dict[str, Any]]
    accepted: list[dict[str, Any]]
    to_undo: list[dict[str, Any]]
    outside: list[dict[str, Any]]
    at: datetime


async def engage(
    connection: AsyncConnection[Any], scopes: Sequence[str], by: By, reason: str, cause: str, *, behind: bool = True
) -> None:
    """Let nothing new begin from this transaction's commit on; `behind` all that is committing now, or at once."""
    row = {**said_by(by, reason), "scopes": list(scopes), "cause": cause, "behind": behind}
    await connection.execute(_SQL["engage"], row)


async def wait_briefly(connection: AsyncConnection[Any]) -> None:
    """Let this transaction give up soon where something else holds its lock: raises LockNotAvailable."""
    await connection.execute(_SQL["wait_briefly"])


async def passed(connection: AsyncConnection[Any]) -> list[int]:
    """List the database's processes that began before a stop that did not wait for them, and are not through."""
    cursor = await connection.execute(_SQL["passed"])
    return [int(row[0]) for row in await cursor.fetchall()]


async def be_patient(connection: AsyncConnection[Any]) -> None:
    """Let this transaction wait for whatever is committing now: to stop, or not to, is no race."""
    await connection.execute(_SQL["be_patient"])


async def scopes(connection: AsyncConnection[Any]) -> list[Stop]:
    """Tell of every scope whether it is stopped, by whom and why."""
    return await all_of(connection, Stop, _SQL["scopes"])


async def open_cases(connection: AsyncConnection[Any]) -> list[Open]:
    """List what has not ended, by state."""
    return await all_of(connection, Open, _SQL["open_cases"])


async def under_way(connection: AsyncConnection[Any]) -> list[UnderWay]:
    """List the effects that are finished and recorded although a stop is engaged."""
    return await all_of(connection, UnderWay, _SQL["under_way"])


async def held(connection: AsyncConnection[Any]) -> list[Held]:
    """Count those that wait until somebody releases them, by state."""
    return await all_of(connection, Held, _SQL["held"])


async def in_doubt(connection: AsyncConnection[Any]) -> list[InDoubt]:
    """List whose effect has to be looked up before anything may go on."""
    return await all_of(connection, InDoubt, _SQL["in_doubt"])


async def newest_act(connection: AsyncConnection[Any]) -> int:
    """Give the newest act of the history; what is reconciled from here on is after it."""
    cursor = await connection.execute(_SQL["newest_act"])
    return int((await cursor.fetchall())[0][0])


async def stopped_since(connection: AsyncConnection[Any], act: int) -> list[Again]:
    """List the stops since an act of the history, the oldest first."""
    return await all_of(connection, Again, _SQL["stopped_since"], after=act)


async def reconcile(connection: AsyncConnection[Any], by: By, reason: str, after: int) -> Reconciled:
    """Count everything and keep it; `after` is the newest act from before anything was looked up."""
    return await only_of(connection, Reconciled, _SQL["reconcile"], **said_by(by, reason), after=after)


async def lift(owner: AsyncConnection[Any], by: By, reason: str, reconciliation_id: int) -> int:
    """End the stop, one case at a time from then on; gives how many it holds. Raises NotLiftedError."""
    with refusals():
        cursor = await owner.execute(_SQL["lift"], {**said_by(by, reason), "reconciliation": reconciliation_id})
        return int((await cursor.fetchall())[0][0])


async def release(owner: AsyncConnection[Any], by: By, reason: str, state: str, most: int) -> list[UUID]:
    """Let some of those that are held go on, the oldest first; gives them. Raises StoppedError."""
    with refusals():
        cursor = await owner.execute(_SQL["release"], {**said_by(by, reason), "state": state, "most": most})
        return list((await cursor.fetchall())[0][0])


async def end_one_at_a_time(owner: AsyncConnection[Any], by: By, reason: str) -> None:
    """Let several cases be driven at a time again. Raises StoppedError and NotLiftedError."""
    with refusals():
        await owner.execute(_SQL["end_one_at_a_time"], said_by(by, reason))
