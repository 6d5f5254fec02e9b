"""What an evaluation does in databases of its own: looks, moves rows under a driver or a yes, lifts, turns the clock.

Invariant: all but the looking needs the owner's connection, which no program that works ever has.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection, sql
from psycopg.types.json import Jsonb

from host.store.fetch import all_of
from host.store.queries import load_queries

_SQL = load_queries(__file__)
_VOLATILITY = {"STABLE": sql.SQL("STABLE"), "VOLATILE": sql.SQL("VOLATILE")}


@dataclass(frozen=True, slots=True)
class Position:
    """Where a case stands: `ended`, or `waits` for a person's yes or no."""

    workflow_id: UUID
    state: str
    ended: bool
    waits: bool


async def positions(connection: AsyncConnection[Any], ids: Collection[UUID]) -> list[Position]:
    """Tell where these cases stand."""
    return await all_of(connection, Position, _SQL["positions"], ids=list(ids))


async def busy(connection: AsyncConnection[Any], waiting: Collection[UUID]) -> int:
    """Count the open cases beside these, and those of them that a driver has."""
    cursor = await connection.execute(_SQL["busy"], {"waiting": list(waiting)})
    return int((await cursor.fetchall())[0][0])


async def move_row(owner: AsyncConnection[Any], workflow_id: UUID) -> int:
    """Give a case's row a newer version than its driver holds; gives that version."""
    cursor = await owner.execute(_SQL["move_row"], {"workflow_id": workflow_id})
    return int((await cursor.fetchall())[0][0])


Addresses = dict[tuple[str, str], str]


async def addresses(tools_owner: AsyncConnection[Any]) -> Addresses:
    """Give where each customer gets mail, by tenant and customer."""
    found = await (await tools_owner.execute(_SQL["addresses"])).fetchall()
    return {(str(tenant), str(customer)): str(address) for tenant, customer, address in found}


async def move_order(tools_owner: AsyncConnection[Any], order_id: str) -> str:
    """Let an order have another destination than the one that was approved; gives it."""
    ((destination,),) = await (await tools_owner.execute(_SQL["move_order"], {"order_id": order_id})).fetchall()
    return str(destination)


async def revoke_approver(tools_owner: AsyncConnection[Any], kid: str) -> str:
    """Let an approver's key count no more at the shop; gives whose it was."""
    ((name,),) = await (await tools_owner.execute(_SQL["revoke_approver"], {"kid": kid})).fetchall()
    return str(name)


async def lift_by_hand(owner: AsyncConnection[Any], actor: str, reason: str) -> None:
    """Let work go on, whatever is still in doubt."""
    await owner.execute(_SQL["lift_by_hand"], {"actor": actor, "reason": reason})


async def keep_notes(owner: AsyncConnection[Any], notes: dict[str, Any]) -> None:
    """Keep what a run saw outside of the databases in the one table that nobody changes."""
    await owner.execute(_SQL["keep_notes"], {"notes": Jsonb(notes)})


async def kept_notes(connection: AsyncConnection[Any]) -> dict[str, Any] | None:
    """Read what was kept last; None where nothing was."""
    row = await (await connection.execute(_SQL["kept_notes"])).fetchone()
    return None if row is None else dict(row[0])


async def now(connection: AsyncConnection[Any]) -> datetime:
    """Read the clock that decides."""
    cursor = await connection.execute(_SQL["now"])
    moment: datetime = (await cursor.fetchall())[0][0]
    return moment


async def turn_clock(owner: AsyncConnection[Any], ahead: timedelta) -> None:
    """Let this database's clock run ahead of the machine's; its rights and everything that calls it stay."""
    cursor = await owner.execute(_SQL["clock"])
    kept = str((await cursor.fetchall())[0][0])
    body = sql.SQL("SELECT clock_timestamp() + {}").format(sql.Literal(ahead)).as_string(owner)
    await owner.execute(
        sql.SQL(
            "CREATE OR REPLACE FUNCTION public.clock_now() RETURNS timestamptz LANGUAGE sql {} PARALLEL SAFE AS {}"
        ).format(_VOLATILITY[kept], sql.Literal(body))
    )
