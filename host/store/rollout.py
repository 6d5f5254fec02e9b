"""The rollout as the ledger holds it: what was opened, passed, given up or waived, and what a person has checked.

Invariant: the newest act says what is so now, and without any nobody is let in. Only the owner writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from host.domain.acting import By
from host.domain.rollout import OpenStage, Reconciled
from host.store.acts import said_by
from host.store.errors import refusals
from host.store.fetch import all_of, first_of, only_of
from host.store.queries import load_queries

_SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Act:
    """One line of the history. The numbers are of a stage that was passed."""

    act_id: int
    act: str
    stage: int | None
    opening: int | None
    releases: dict[str, str] | None
    cases: int | None
    compared: int | None
    untracked: int | None
    missing: int | None
    duplicate: int | None
    uncompensated: int | None
    checked: int | None
    wrong: int | None
    actor: str
    reason: str
    details: dict[str, str]
    at: datetime


@dataclass(frozen=True, slots=True)
class ToCheck:
    """A case that a person has to look at, and has not."""

    workflow_id: UUID
    kind: str
    tenant_id: str
    resource: str
    state: str
    at: datetime
    ended: bool


@dataclass(frozen=True, slots=True)
class Sampling:
    """After the last stage: one of how many is looked at, and why."""

    one_in: int
    incidents: int
    cases: int
    checks: int
    wrong: int


async def history(connection: AsyncConnection[Any]) -> list[Act]:
    """Give every act, the oldest first."""
    return await all_of(connection, Act, _SQL["history"])


async def current_stage(connection: AsyncConnection[Any]) -> OpenStage | None:
    """Give the stage that is open, with what it has to show."""
    return await first_of(connection, OpenStage, _SQL["current_stage"])


async def to_check(connection: AsyncConnection[Any], most: int) -> list[ToCheck]:
    """List what is to be looked at, the oldest first."""
    return await all_of(connection, ToCheck, _SQL["to_check"], most=most)


async def sampling(connection: AsyncConnection[Any]) -> Sampling:
    """Count what decides how many are looked at."""
    return await only_of(connection, Sampling, _SQL["sampling"])


async def tracked(connection: AsyncConnection[Any]) -> bool:
    """Tell whether several cases may be driven at a time: a stage was passed with no call untracked, or none runs."""
    row = await (await connection.execute(_SQL["tracked"])).fetchone()
    return row is not None and row[0] is True


async def tenant(connection: AsyncConnection[Any], workflow_id: UUID) -> str:
    """Name the tenant of a case that is there; ValueError where it is not, since nobody covers such a one."""
    ((found,),) = await (await connection.execute(_SQL["tenant"], {"workflow_id": workflow_id})).fetchall()
    return str(found)


async def waive(owner: AsyncConnection[Any], by: By, reason: str) -> Act | None:
    """Say that no rollout runs. Raises ActRefusedError."""
    return await _written(owner, _SQL["waive"], said_by(by, reason))


async def open_stage(owner: AsyncConnection[Any], stage: int, by: By, reason: str) -> Act | None:
    """Open a stage under the releases of today. Raises ActRefusedError, InvariantError."""
    return await _written(owner, _SQL["open"], {"stage": stage, **said_by(by, reason)})


async def abandon(owner: AsyncConnection[Any], stage: int, by: By, reason: str) -> Act | None:
    """Give a stage up, unpassed; None where it is not the open one."""
    return await _written(owner, _SQL["abandon"], {"stage": stage, **said_by(by, reason)})


async def pass_stage(
    owner: AsyncConnection[Any], stage: int, reconciled: Reconciled, by: By, reason: str
) -> Act | None:
    """Close a stage as passed, with what is counted now; None where it is not the open one.

    Raises ActRefusedError, and InvariantError where something stands against it.
    """
    named = {
        "stage": stage, "compared": reconciled.compared, "untracked": reconciled.untracked,
        "missing": reconciled.missing, "duplicate": reconciled.duplicate,
    }  # fmt: skip
    return await _written(owner, _SQL["pass"], {**named, **said_by(by, reason)})


async def check(owner: AsyncConnection[Any], workflow_id: UUID, verdict: str, by: By, reason: str) -> None:
    """Keep what a person found. Raises ActRefusedError."""
    with refusals():
        await owner.execute(_SQL["take_turn"])  # a stage that is being passed counts it, or is passed before it
        await owner.execute(_SQL["check"], {"workflow_id": workflow_id, "verdict": verdict, **said_by(by, reason)})


def waive_anew(owner: psycopg.Connection[Any], actor: str, reason: str) -> bool:
    """Say that none runs where nobody has said anything yet; tells whether that was so."""
    owner.execute(_SQL["take_turn"])
    named = {"actor": actor, "reason": reason, "details": Jsonb({"os_user": actor})}
    return owner.execute(_SQL["waive_anew"], named).fetchone() is not None


async def _written(owner: AsyncConnection[Any], query: LiteralString, named: dict[str, Any]) -> Act | None:
    with refusals():
        await owner.execute(_SQL["take_turn"])  # before the act gets its number: the newest is the last
        return await first_of(owner, Act, query, **named)
