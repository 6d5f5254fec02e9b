"""The life of the whole stack of one machine: brought up for one command, or kept up in the background.

    down ──temporary_stack──► temporary ──its last holder leaves──► down
      └──────────up──────────► up ◄─up─┘ └────────────down────────► down

Whoever uses a stack holds a shared lock. The kernel lets go of it when its process dies, so the last one
out of a temporary stack stops everything, and what a killed one left behind is taken over by the next.

Who comes and goes is decided here; how one part is brought up, in `bring_up`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from host.stack import assembly, bring_up, postgres, processes
from host.stack.assembly import TOOL_SERVER, WORKER, StackChoice, StackParts
from host.stack.home import Home, existing_home, open_home
from host.stack.links import Links
from host.stack.locks import Hold, locked
from host.stack.mode import Mode, anything_runs, holders_lock, recorded_mode, stack_lock, write_mode
from host.stack.processes import Running
from host.stack.signals import Ending, ended_by_signals


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What a run needs."""

    links: Links
    maildir: Path | None  # None: it leaves by SMTP, or a running tool server with other settings than ours knows
    postgres_pid: int
    tool_server_pid: int
    postgres_started_here: bool
    tool_server_started_here: bool


@asynccontextmanager
async def temporary_stack(root: Path, choice: StackChoice) -> AsyncIterator[Endpoints]:
    """Database and tool server, adopted or started; on the way out what nobody else uses is stopped."""
    async with _holding(root) as (home, hold):
        async with locked(stack_lock(home)):
            may_restart = _enter(home, hold)
            parts, begun = await bring_up.database(home, choice, may_restart=may_restart, to_serve=True)
            tool_server, port = await bring_up.tool_server(parts, begun, may_restart=may_restart)
        yield _endpoints(parts, tool_server, port)


@asynccontextmanager
async def temporary_database(root: Path, choice: StackChoice) -> AsyncIterator[str]:
    """The same without a tool server; gives the engine's own connection string."""
    async with temporary_parts(root, choice) as parts:
        yield assembly.host_dsn(parts)


@asynccontextmanager
async def temporary_parts(root: Path, choice: StackChoice) -> AsyncIterator[StackParts]:
    """The same for an operator's acts, which need more than the engine's own connection."""
    async with _holding(root) as (home, hold):
        async with locked(stack_lock(home)):
            parts, _ = await bring_up.database(home, choice, may_restart=_enter(home, hold), to_serve=False)
        yield parts


async def up(root: Path, choice: StackChoice) -> None:
    """Everything, with a worker, until `down`. What is outdated is restarted.

    A failure leaves nothing running where nothing ran; where something did, what runs by then stays, as what it was
    up for before. An outdated part that was stopped by then stays stopped: the next start brings it back.
    """
    with ended_by_signals() as ending:
        home = open_home(root)
        async with locked(stack_lock(home)):
            before = recorded_mode(home) if anything_runs(home) else Mode.DOWN
            write_mode(home, Mode.UP)
            async with AsyncExitStack() as unless_up:
                unless_up.push_async_callback(_back, home, before, ending)
                parts, begun = await bring_up.database(home, choice, may_restart=True, to_serve=True)
                _, port = await bring_up.tool_server(parts, begun, may_restart=True)
                await bring_up.worker(parts, port)
                unless_up.pop_all()


async def _back(home: Home, before: Mode, ending: Ending | None) -> None:
    """After whatever kept it from coming up, which goes on from here to whoever asked; no case was driven yet."""
    if ending is not None:
        ending.leave()
    write_mode(home, before)
    if before is Mode.DOWN:
        await stop_all(home)


async def down(root: Path) -> bool:
    """Stop everything; False where nothing ran."""
    home = existing_home(root)
    if home is None:
        return False
    with ended_by_signals():
        async with locked(stack_lock(home)):
            ran = anything_runs(home)
            await stop_all(home)
            write_mode(home, Mode.DOWN)
            return ran


async def stop_all(home: Home) -> None:
    """In the order in which they need one another; one that does not stop keeps no other from stopping."""
    async with AsyncExitStack() as last_first:
        last_first.push_async_callback(postgres.stop, home)
        for name in (TOOL_SERVER, WORKER):
            running = processes.find(home, name)
            if running is not None:
                last_first.push_async_callback(processes.stop, home, running)


@asynccontextmanager
async def _holding(root: Path) -> AsyncIterator[tuple[Home, Hold]]:
    with ended_by_signals() as ending:
        home = open_home(root)
        hold = Hold(holders_lock(home))
        try:
            yield home, hold
        finally:
            if ending is not None:
                ending.leave()
            if hold.held:
                await _leave(home, hold)
            hold.close()


def _enter(home: Home, hold: Hold) -> bool:
    """Under the stack's lock: become a holder. True where nobody is in our way, so that we may restart things."""
    alone = hold.exclusive()
    hold.shared()
    kept_up = recorded_mode(home) is Mode.UP and anything_runs(home)
    if not kept_up:
        write_mode(home, Mode.TEMPORARY)
    return alone and not kept_up


async def _leave(home: Home, hold: Hold) -> None:
    async with locked(stack_lock(home)):
        if hold.exclusive() and recorded_mode(home) is not Mode.UP:
            await stop_all(home)
            write_mode(home, Mode.DOWN)


def _endpoints(parts: StackParts, tool_server: Running, port: int) -> Endpoints:
    ours = tool_server.fingerprint == assembly.tool_server(parts, port).fingerprint()
    return Endpoints(
        links=assembly.links_of(parts, port),
        maildir=assembly.maildir_of(parts) if ours else None,
        postgres_pid=parts.server.process.pid,
        tool_server_pid=tool_server.process.pid,
        postgres_started_here=parts.server.started_here,
        tool_server_started_here=tool_server.started_here,
    )
