"""Reads calls and effects of an evaluation off the tool server's own tables, with its auditor's role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from host.store.audit import snapshot
from host.store.fetch import all_of
from host.store.queries import load_queries

_SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Logged:
    """One row of the log. `purpose` None: a call that a planner proposed."""

    task_id: str
    jti: str
    tool: str
    purpose: str | None
    idempotency_key: str | None
    outcome: str


@dataclass(frozen=True, slots=True)
class Made:
    """One return or notice that stands there; `about` is its reason and lines, or the return that it tells of.

    `in_doubt`: whether it left nobody knows.
    """

    kind: str
    tenant_id: str
    id: str
    order_id: str
    customer_id: str
    idempotency_key: str | None
    about: Sequence[str]
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class Undone:
    """A return that is cancelled, or a notice that is corrected, by its own id."""

    kind: str
    tenant_id: str
    id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Provider:
    """Everything that the tool server knows."""

    calls: tuple[Logged, ...]
    made: tuple[Made, ...]
    undone: tuple[Undone, ...]


async def read(dsn: str) -> Provider:
    """Read it of one instant. Raises NotAnAuditorError, and what connecting raises."""
    async with snapshot(dsn) as connection:
        return Provider(
            calls=tuple(await all_of(connection, Logged, _SQL["calls"])),
            made=tuple(await all_of(connection, Made, _SQL["made"])),
            undone=tuple(await all_of(connection, Undone, _SQL["undone"])),
        )
