"""Reads cases and effects of a crash matrix in databases of its own, and sets there what a cell begins with.

Invariant: effects are counted with the tool server's auditor, by SELECT alone; what changes anything of the host's
needs the owner's connection, which no program that works ever has.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from host.store.audit import snapshot
from host.store.fetch import first_of
from host.store.queries import load_queries

_SQL = load_queries(__file__)
OURS = "this cell begins stopped"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a case stands. `under_way` counts requests without an answer and what is still to be undone."""

    state: str
    reason: str
    recoveries: int
    closed: bool
    waits: bool
    ended: bool
    under_way: int


@dataclass(frozen=True, slots=True)
class Provider:
    """What stands at the tool server of one case; `messages` are the Message-IDs of all its mails."""

    returns: int
    cancellations: int
    notices: int
    corrections: int
    messages: tuple[str, ...]


async def position(connection: AsyncConnection[Any], workflow_id: UUID) -> Position | None:
    """Tell where a case stands."""
    return await first_of(connection, Position, _SQL["position"], workflow_id=workflow_id)


async def silent(connection: AsyncConnection[Any], seconds: float) -> bool:
    """Tell whether a worker has been silent for longer than that; on one machine, whose clock is the queue's too."""
    row = await (await connection.execute(_SQL["last_beat"])).fetchone()
    return row is not None and row[0] is not None and datetime.now(UTC) - row[0] > timedelta(seconds=seconds)


async def of_request(connection: AsyncConnection[Any], request_id: str) -> list[UUID]:
    """Find the cases of a request; more than one is one too many."""
    rows = await connection.execute(_SQL["of_request"], {"request_id": request_id})
    return [row[0] for row in await rows.fetchall()]


async def following(connection: AsyncConnection[Any], workflow_id: UUID) -> list[UUID]:
    """Find the cases that were asked for anew after this one."""
    rows = await connection.execute(_SQL["following"], {"workflow_id": workflow_id})
    return [row[0] for row in await rows.fetchall()]


async def asked_for(connection: AsyncConnection[Any], workflow_id: UUID) -> str:
    """Give the digest of the action that waits for a yes."""
    rows = await connection.execute(_SQL["asked_for"], {"workflow_id": workflow_id})
    return str((await rows.fetchall())[0][0])


async def queued(connection: AsyncConnection[Any]) -> int:
    """Count what the queue still holds."""
    return int((await (await connection.execute(_SQL["queued"])).fetchall())[0][0])


async def stops(connection: AsyncConnection[Any]) -> list[str]:
    """Name what is stopped, and why."""
    return [row[0] for row in await (await connection.execute(_SQL["stops"])).fetchall()]


async def forget_queue(owner: AsyncConnection[Any]) -> None:
    """Empty the queue."""
    await owner.execute(_SQL["forget_queue"])


async def stop_updates(owner: AsyncConnection[Any]) -> None:
    """Let a cell begin while updates are stopped."""
    await owner.execute(_SQL["stop_updates"], {"reason": OURS})


async def lift(owner: AsyncConnection[Any]) -> None:
    """Let work go on, whatever raised the stop."""
    await owner.execute(_SQL["lift"])


async def provider(dsn: str, workflow_id: UUID) -> Provider:
    """Count what stands there under the keys of a case."""
    keys = {"keys": f"{workflow_id}:%"}
    async with snapshot(dsn) as tools:
        ((returns, cancellations),) = await (await tools.execute(_SQL["returns"], keys)).fetchall()
        told = await (await tools.execute(_SQL["notices"], keys)).fetchall()
    corrections = sum(kind == "correction" for kind, _ in told)
    messages = tuple(str(message) for _, message in told)
    return Provider(int(returns), int(cancellations), len(told) - corrections, corrections, messages)


async def messages(dsn: str) -> frozenset[str]:
    """Give the Message-ID of every mail that the tool server knows of."""
    async with snapshot(dsn) as tools:
        return frozenset(str(row[0]) for row in await (await tools.execute(_SQL["messages"])).fetchall())
