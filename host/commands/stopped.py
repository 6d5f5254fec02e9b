"""What is stopped and what is held, read from a database that runs; nothing is started, nobody is waited for long."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from rich.console import Console
from rich.text import Text

from host.commands.stop import scope_view, show_scopes
from host.stack.home import Home, existing_home
from host.stack.ports import LOOPBACK
from host.stack.status import POSTGRES, PartState, StackStatus
from host.stop_views import HeldCases, StopScope
from host.store import stops
from host.store.pool import bounded
from shared_contracts.printed import plain

WORKS_AS = "host_rt"
_SECONDS_MAX = 2
_BOUNDED = f"-c statement_timeout={_SECONDS_MAX * 1000} -c lock_timeout={_SECONDS_MAX * 1000}"


@dataclass(frozen=True, slots=True)
class Stopped:
    """`unknown` says why nothing can be said; without scopes and reason there is no home."""

    scopes: tuple[StopScope, ...] = ()
    held: tuple[HeldCases, ...] = ()
    unknown: str | None = None


def dsn_of(home: Home, port: int) -> str:
    """Give the engine's own connection to the running database of a home."""
    passfile = str(home.passfiles / WORKS_AS)
    return make_conninfo(host=LOOPBACK, port=port, dbname="host", user=WORKS_AS, passfile=passfile)


async def of_home(root: Path, seen: StackStatus) -> Stopped:
    """Read it where the home's database runs."""
    home = existing_home(root)
    running = next((p for p in seen.parts if p.name == POSTGRES and p.state is PartState.RUNNING), None)
    if home is None:
        return Stopped()
    if running is None or running.port is None:
        return Stopped(unknown="the database does not run; kessai up, then kessai status")
    return await read(dsn_of(home, running.port))


async def read(dsn: str) -> Stopped:
    """Read it from one database."""
    try:
        async with await AsyncConnection.connect(
            bounded(dsn, _BOUNDED, connect_timeout=_SECONDS_MAX), autocommit=True
        ) as connection:
            scopes, held = await stops.scopes(connection), await stops.held(connection)
    except psycopg.Error as error:
        return Stopped(unknown=str(error).partition("\n")[0])
    waiting = tuple(HeldCases(state=one.state, cases=one.cases) for one in held)
    return Stopped(tuple(map(scope_view, scopes)), waiting)


def words(found: Stopped) -> str:
    """Say it in one line."""
    engaged = [one for one in found.scopes if one.engaged]
    if not engaged:
        return "nothing is stopped"
    said = f"stopped: {', '.join(one.scope for one in engaged)}, by {engaged[0].actor}: {engaged[0].reason}"
    return said + (f"; held: {', '.join(f'{one.state} {one.cases}' for one in found.held)}" if found.held else "")


def show(to: Console, found: Stopped) -> None:
    """Say what is stopped and held; nothing where nothing is."""
    if found.unknown is not None:
        to.print(Text(plain(f"stops: unknown, {found.unknown}"), style="yellow"), soft_wrap=True)
    if any(one.engaged for one in found.scopes):
        to.print(Text("\nwork is stopped or held back; kessai resume goes on, at the end with --full", style="yellow"))
        show_scopes(to, found.scopes)
    for one in found.held:
        to.print(Text("held      ", style="dim"), Text(f"{one.cases} in {plain(one.state)}"), sep="", soft_wrap=True)
