"""The life of the whole stack of one machine: brought up for one command, or kept up in the background.

    down ──temporary_stack──► temporary ──its last holder leaves──► down
      └──────────up──────────► up ◄─up─┘ └────────────down────────► down

Whoever uses a stack holds a shared lock. The kernel lets go of it when its process dies, so the last one
out of a temporary stack stops everything, and what a killed one left behind is taken over by the next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from host.stack import assembly, postgres, processes
from host.stack.assembly import TOOL_SERVER, WORKER, StackChoice, StackParts
from host.stack.build import installed_build
from host.stack.errors import StackError, StackProblem
from host.stack.files import read_json, write_json
from host.stack.home import Home, existing_home, open_home
from host.stack.keys import ensure_keys
from host.stack.links import Links
from host.stack.locks import Hold, locked
from host.stack.mode import Mode, anything_runs, holders_lock, recorded_mode, stack_lock, write_mode
from host.stack.place import abandoned_places, remove_place
from host.stack.ports import choose_port, is_free
from host.stack.processes import Running
from host.stack.provision import provision
from host.stack.roles import write_passwords
from host.stack.rotation import tidy
from host.stack.signals import Ending, ended_by_signals

READY_SECONDS_MAX = 60.0
MIGRATION_SECONDS_MAX = 600.0


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
            parts, begun = await _database(home, choice, may_restart=may_restart, to_serve=True)
            tool_server, port = await _tool_server(parts, begun, may_restart=may_restart)
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
            parts, _ = await _database(home, choice, may_restart=_enter(home, hold), to_serve=False)
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
                parts, begun = await _database(home, choice, may_restart=True, to_serve=True)
                _, port = await _tool_server(parts, begun, may_restart=True)
                await _worker(parts, port)
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


async def _database(
    home: Home, choice: StackChoice, *, may_restart: bool, to_serve: bool
) -> tuple[StackParts, Running | None]:
    """The parts, and the tool server if it was begun meanwhile: its code is loaded while the schema is made."""
    write_passwords(home)
    keys, build = ensure_keys(home), installed_build()
    tidy(keys, time.time())
    cluster = postgres.cluster_of(home, choice.postgres)
    for place in abandoned_places(home):
        await postgres.stop_data(place / "data")
        remove_place(home, place)
    parts = StackParts(home, await postgres.start(cluster), keys, build, choice)
    wanted = {"cluster": str(parts.server.system_identifier), "code": build.code}
    record = home.run / "prepared.json"
    prepared = read_json(record)
    if prepared == wanted:
        return parts, None
    others = prepared is not None and prepared.get("cluster") == wanted["cluster"] and _of_other_code(parts) != []
    if others and not (to_serve or may_restart):
        return parts, None  # whoever reads takes the schema as it is, and is told where it cannot
    await _clear_outdated(parts, may_restart=may_restart)
    record.unlink(missing_ok=True)
    await provision(cluster, parts.server)
    begun = _begun(parts) if to_serve else None
    async with AsyncExitStack() as unless_made:
        if begun is not None:
            unless_made.push_async_callback(processes.stop, home, begun)
        await _migrate(parts)
        unless_made.pop_all()
    write_json(record, wanted)
    return parts, begun


def _begun(parts: StackParts) -> Running | None:
    """A tool server that is not ready until it finds its schema; None where one runs already."""
    if processes.find(parts.home, TOOL_SERVER) is not None:
        return None
    return processes.start(parts.home, assembly.tool_server(parts, _port(parts)))


async def _migrate(parts: StackParts) -> None:
    """Both sides at once; neither is left running when the other fails."""

    async def tools() -> None:
        await processes.run_to_end(parts.home, assembly.migrate_tools(parts), MIGRATION_SECONDS_MAX)
        await processes.run_to_end(parts.home, assembly.load_demo(parts), MIGRATION_SECONDS_MAX)

    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(tools())
            both.create_task(processes.run_to_end(parts.home, assembly.migrate_host(parts), MIGRATION_SECONDS_MAX))
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


async def _clear_outdated(parts: StackParts, *, may_restart: bool) -> None:
    """Other code than ours must not meet the schema that we are about to make."""
    for running in _of_other_code(parts):
        if not may_restart:
            raise _outdated(running)
        await processes.stop(parts.home, running)


def _of_other_code(parts: StackParts) -> list[Running]:
    found = (processes.find(parts.home, name) for name in (WORKER, TOOL_SERVER))
    return [running for running in found if running is not None and running.build != parts.build.code]


async def _tool_server(parts: StackParts, begun: Running | None, *, may_restart: bool) -> tuple[Running, int]:
    """The process and its port. With other settings than ours it is good enough while it is not ours to restart."""
    if begun is not None and begun.port is not None:
        await _ready(parts.home, begun)
        return begun, begun.port
    running = processes.find(parts.home, TOOL_SERVER)
    if running is not None and running.port is not None:
        wanted = running.port if parts.choice.tool_server_port is None else parts.choice.tool_server_port
        same = running.fingerprint == assembly.tool_server(parts, wanted).fingerprint()
        if same or not may_restart:
            if running.build != parts.build.code:
                raise _outdated(running)
            await _ready(parts.home, running)
            return running, running.port
        if wanted != running.port:
            _port(parts)  # one that is taken is found before anything is stopped
        await processes.stop(parts.home, running)
    port = _port(parts)
    running = processes.start(parts.home, assembly.tool_server(parts, port))
    await _ready(parts.home, running)
    return running, port


async def _worker(parts: StackParts, port: int) -> Running:
    program = assembly.worker(parts, port)
    running = processes.find(parts.home, WORKER)
    if running is not None and running.fingerprint != program.fingerprint():
        await processes.stop(parts.home, running)
        running = None
    if running is None:
        running = processes.start(parts.home, program)
    await _ready(parts.home, running)
    return running


async def _ready(home: Home, running: Running) -> None:
    async with AsyncExitStack() as unless_ready:
        if running.started_here:
            unless_ready.push_async_callback(processes.stop, home, running)
        await processes.wait_ready(home, running, READY_SECONDS_MAX)
        unless_ready.pop_all()


def _port(parts: StackParts) -> int:
    chosen = parts.choice.tool_server_port
    if chosen is None:
        return choose_port(processes.remembered_port(parts.home, TOOL_SERVER))
    if not is_free(chosen):
        raise StackError(
            StackProblem.PORT_IN_USE,
            f"Port {chosen}, which the tool server is to have, is in use.",
            "End what holds it, set KESSAI_TOOL_SERVER_PORT to another, or unset it: then a free one is taken.",
        )
    return chosen


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


def _outdated(running: Running) -> StackError:
    return StackError(
        StackProblem.PROGRAM_OUTDATED,
        f"The running {running.name.replace('_', ' ')} (process {running.process.pid}) is of another version.",
        "Wait until the run that uses it has ended; where the stack is up: kessai up restarts it, kessai down ends it.",
    )
