"""Releases as the ledger holds them: which passed, by which report, and under which one new cases begin.

Invariant: the newest act of a kind says it; nothing is ever taken out of the history. Only the owner writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from host.domain.acting import By
from host.store.acts import said_by
from host.store.errors import refusals
from host.store.fetch import all_of, first_of, only_of
from host.store.queries import load_queries

_SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Act:
    """One line of the history: a release with its passing report, or a way back to one."""

    act_id: int
    act: str
    kind: str
    release: str
    report_sha256: str | None
    build: str | None
    evaluated_at: datetime | None
    gate: dict[str, Any] | None
    left_release: str | None
    rests_on: int | None
    actor: str
    reason: str
    details: dict[str, str]
    at: datetime


@dataclass(frozen=True, slots=True)
class Passed:
    """A release and what it passed by."""

    kind: str
    release: str
    report_sha256: str
    build: str
    evaluated_at: datetime
    gate: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OpenUnder:
    """How many cases go on under a release."""

    kind: str
    release: str
    cases: int


async def take_turn(owner: AsyncConnection[Any]) -> None:
    """Wait until nobody else acts; the turn ends with the transaction."""
    await owner.execute(_SQL["take_turn"])


async def begins_under(connection: AsyncConnection[Any], kind: str) -> str | None:
    """Name the release that new cases begin under; None where none is recorded."""
    cursor = await connection.execute(_SQL["begins_under"], {"kind": kind})
    row = await cursor.fetchone()
    return None if row is None else row[0]


async def history(connection: AsyncConnection[Any]) -> list[Act]:
    """Give every act, the oldest first."""
    return await all_of(connection, Act, _SQL["history"])


async def open_under(connection: AsyncConnection[Any]) -> list[OpenUnder]:
    """Count the cases that go on, by release."""
    return await all_of(connection, OpenUnder, _SQL["open_under"])


async def record(owner: AsyncConnection[Any], passed: Passed, by: By, reason: str) -> Act:
    """Keep that a release has passed: from now on new cases begin under it. Raises ActRefusedError, InvariantError."""
    named = {
        "kind": passed.kind, "release": passed.release, "report_sha256": passed.report_sha256, "build": passed.build,
        "evaluated_at": passed.evaluated_at, "gate": Jsonb(passed.gate),
    }  # fmt: skip
    return await _written(owner, _SQL["record"], {**named, **said_by(by, reason)})


async def last_passed(connection: AsyncConnection[Any], kind: str, carried: Sequence[str]) -> Act | None:
    """Find the newest record of another one of these releases than new cases begin under."""
    return await first_of(connection, Act, _SQL["last_passed"], kind=kind, carried=list(carried))


async def roll_back(owner: AsyncConnection[Any], to: Act, by: By, reason: str) -> Act:
    """Let new cases begin under what had passed before. Raises ActRefusedError."""
    named = {"kind": to.kind, "release": to.release, "rests_on": to.act_id}
    return await _written(owner, _SQL["roll_back"], {**named, **said_by(by, reason)})


async def _written(owner: AsyncConnection[Any], query: LiteralString, named: dict[str, Any]) -> Act:
    with refusals():
        await take_turn(owner)  # before the act gets its number: the newest is the last
        return await only_of(owner, Act, query, **named)
