"""Brings up one part of the stack, the database, the tool server or the worker, or adopts the one that runs.

Invariant: no program meets a schema of other code than its own, and what was started and did not get ready is stopped.
Whoever calls holds the stack's lock, and says whether what runs may be restarted.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

from host.stack import assembly, postgres, processes
from host.stack.assembly import TOOL_SERVER, WORKER, StackChoice, StackParts
from host.stack.build import installed_build
from host.stack.errors import LoggedError, StackError, StackProblem
from host.stack.files import read_json, write_json
from host.stack.home import Home
from host.stack.keys import ensure_keys
from host.stack.place import abandoned_places, remove_place
from host.stack.ports import choose_port, is_free
from host.stack.processes import Running
from host.stack.provision import provision
from host.stack.roles import write_passwords
from host.stack.rotation import tidy

READY_SECONDS_MAX = 60.0
MIGRATION_SECONDS_MAX = 600.0
CHECK_SECONDS_MAX = 60.0


async def database(
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


async def tool_server(parts: StackParts, begun: Running | None, *, may_restart: bool) -> tuple[Running, int]:
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
        await _check(parts, running, wanted)
        await processes.stop(parts.home, running)
    port = _port(parts)
    started = processes.start(parts.home, assembly.tool_server(parts, port))
    try:
        await _ready(parts.home, started)
    except LoggedError as error:
        if running is None:
            raise
        gone = f"{error.what} The former one, process {running.process.pid}, was stopped before."
        raise StackError(error.problem, gone, f"With its settings kessai up starts it again.\n{error.mend}") from None
    return started, port


async def _check(parts: StackParts, running: Running, port: int) -> None:
    """Raises StackError where it would not start as it is set now, before the one that runs is stopped."""
    try:
        await processes.run_to_end(parts.home, assembly.check_tool_server(parts, port), CHECK_SECONDS_MAX)
    except LoggedError as error:
        left = f"the one that runs, process {running.process.pid}, was not stopped for it"
        what = f"The tool server would not start with these settings; {left}."
        raise StackError(error.problem, what, error.mend) from None


async def worker(parts: StackParts, port: int) -> Running:
    """The process; one with other settings than ours is restarted."""
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


def _outdated(running: Running) -> StackError:
    return StackError(
        StackProblem.PROGRAM_OUTDATED,
        f"The running {running.name.replace('_', ' ')} (process {running.process.pid}) is of another version.",
        "Wait until the run that uses it has ended; where the stack is up: kessai up restarts it, kessai down ends it.",
    )
