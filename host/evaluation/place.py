"""The evaluation's own home beside the user's: its PostgreSQL, keys and programs, so that nothing real can be touched.

    <home>              what is real; nothing here opens it
    <home>-evaluation   host_template, tools_template: made once for this code; host, tools: anew for each run

Invariant: one evaluation at a time. What a killed one left is ended by the next, what another code made is removed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

from host.stack import assembly, postgres, processes
from host.stack.assembly import TOOL_SERVER, WORKER, StackChoice, StackParts
from host.stack.bring_up import READY_SECONDS_MAX
from host.stack.build import installed_build
from host.stack.errors import StackError, StackProblem
from host.stack.files import read_json, write_json
from host.stack.home import existing_home, open_home
from host.stack.keys import key_files
from host.stack.locks import Hold
from host.stack.mode import holders_lock
from host.stack.pair import fresh_pair, keep_template
from host.stack.ports import choose_port
from host.stack.postgres import PostgresChoice
from host.stack.processes import Program, Running
from host.stack.removal import empty_home
from host.stack.stack import temporary_parts

MADE = "evaluation.json"
LOAD_SECONDS_MAX = 120.0


def home_of(root: Path) -> Path:
    """Name the evaluation's home by the user's."""
    return root.with_name(f"{root.name}-evaluation")


async def drop(root: Path) -> bool:
    """Remove all of it; False where there was nothing. Raises StackError while an evaluation runs."""
    home = existing_home(root)
    if home is not None and holders_lock(home).exists():
        _alone(holders_lock(home), root).close()
    dropped = await empty_home(root)
    _leave(root)
    return dropped


def _leave(root: Path) -> None:
    with suppress(OSError):  # something of somebody else's lies there, or nothing ever did
        root.rmdir()


@asynccontextmanager
async def databases(root: Path, choice: PostgresChoice) -> AsyncIterator[StackParts]:
    """Give a pair of databases as the migrations and the packaged data leave it; no program works on it yet."""
    await without_another_codes(root)
    own = StackChoice(choice, None, {}, {})
    async with temporary_parts(root, own) as parts:
        hold = _alone(parts.home.run / "evaluation.lock", root)
        try:
            await _stop_left_behind(parts)
            cluster = postgres.cluster_of(parts.home, choice)
            if read_json(parts.home.run / MADE) is None:
                await keep_template(cluster, parts.server)
                write_json(parts.home.run / MADE, {"code": parts.build.code})
            await fresh_pair(cluster, parts.server)
            yield parts
        finally:
            hold.close()


@asynccontextmanager
async def kept(root: Path, choice: PostgresChoice) -> AsyncIterator[StackParts]:
    """Give the pair as the last run left it. Raises StackError where there is none of this code."""
    home = existing_home(root)
    made = None if home is None or not home.run.is_dir() else read_json(home.run / MADE)
    if made is None or made.get("code") != installed_build().code:
        none = made is None
        raise StackError(
            StackProblem.HOME_EMPTY if none else StackProblem.DATA_OF_OTHER_VERSION,
            f"In {root} {'no evaluation was run' if none else 'the last evaluation was of another build'}.",
            "Run kessai eval; what another build made is read by that build.",
        )
    async with temporary_parts(root, StackChoice(choice, None, {}, {})) as parts:
        hold = _alone(parts.home.run / "evaluation.lock", root)
        try:
            await _stop_left_behind(parts)
            yield parts
        finally:
            hold.close()


def programs(
    parts: StackParts, port: int, tools: Mapping[str, str], worker: Mapping[str, str], ways: Mapping[str, str]
) -> dict[str, Program]:
    """Give tool server and worker as the stack has them; `ways` are settings by which the worker finds others."""
    chosen = replace(parts, choice=replace(parts.choice, tool_server_settings=tools, worker_settings=worker))
    working = assembly.worker(chosen, port)
    found = {**working.settings, "KESSAI_AUDIENCE": assembly.resource_at(port), **ways}
    return {TOOL_SERVER: assembly.tool_server(chosen, port), WORKER: replace(working, settings=found)}


async def start(parts: StackParts, programs: Mapping[str, Program]) -> dict[str, Running]:
    """Start them all; gives each when all are ready."""
    started = {name: processes.start(parts.home, program) for name, program in programs.items()}
    for one in started.values():
        await processes.wait_ready(parts.home, one, READY_SECONDS_MAX)
    return started


async def load(parts: StackParts, data: bytes | None, delivered_on: date) -> None:
    """Load a retail shop's file beside what is packaged, where there is one; its deliveries came on that day."""
    if data is None:
        return
    file = parts.home.run / "retail.json"
    file.write_bytes(data)
    try:
        await processes.run_to_end(parts.home, assembly.load_file(parts, file, delivered_on), LOAD_SECONDS_MAX)
    finally:
        file.unlink()


async def remove(parts: StackParts, tools: Collection[str]) -> None:
    """Remove tools, as their owner does it; the tool server need not run."""
    for name in sorted(tools):
        await processes.run_to_end(parts.home, assembly.disable_tool(parts, name), LOAD_SECONDS_MAX)


def free_port(parts: StackParts) -> int:
    """Choose the tool server's port."""
    return choose_port(processes.remembered_port(parts.home, TOOL_SERVER))


async def without_another_codes(root: Path) -> None:
    """A pair that another code made, or that was not made to its end, is worth nothing: begin anew."""
    home = existing_home(root)
    if home is None:
        return
    made = read_json(home.run / MADE) if home.run.is_dir() else None
    if made is None or made.get("code") != installed_build().code:
        public = read_json(key_files(home).seal_keys)
        await drop(root)
        if public is not None:  # reports that were signed here are still to be verified
            write_json(key_files(open_home(root)).seal_keys, public)


async def _stop_left_behind(parts: StackParts) -> None:
    for name in (WORKER, TOOL_SERVER):
        running = processes.find(parts.home, name)
        if running is not None:
            await processes.stop(parts.home, running)


def _alone(lock: Path, root: Path) -> Hold:
    hold = Hold(lock)
    if not hold.exclusive():
        hold.close()
        raise StackError(
            StackProblem.HOME_BUSY,
            f"Another evaluation runs in {root}.",
            "Wait until it has ended, or name another home in KESSAI_HOME.",
        )
    return hold
