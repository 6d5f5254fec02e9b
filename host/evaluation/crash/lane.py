"""A place in which one cell after another is run: databases of its own, and programs that are killed by their pid.

Invariant: nothing real is opened here, no process is sent a signal that was not born here, and all are gone afterwards.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

from host.database import database
from host.engine.accept import Origin, Pins, accept, read_case
from host.engine.parts import Kind
from host.engine.wake import Wake, queue_app, waker
from host.evaluation import place
from host.evaluation.audit import Auditors
from host.evaluation.crash import shop
from host.evaluation.crash.forks import Nursery
from host.evaluation.crash.names import COMMAND, SERVER, Victim
from host.rights import kinds, pins, read_authorization
from host.settings import Settings
from host.stack import assembly, processes
from host.stack.assembly import StackParts
from host.stack.bring_up import MIGRATION_SECONDS_MAX
from host.stack.errors import LoggedError, StackError, StackProblem
from host.stack.files import tail, write_whole
from host.stack.links import Links
from host.stack.pids import Identity
from host.stack.postgres import PostgresChoice
from host.stack.processes import Program, python_module
from host.stack.roles import Side
from host.store import crash
from host.store.pool import Pool
from host.workflows.catalogue import CURRENT

TAKEOVER_SECONDS = 1.0
LOOK_SECONDS = 0.03
READY_SECONDS, ENDED_SECONDS = 60.0, 30.0  # of a machine that others may use too
NO_LIMIT = "10000"  # calls a second: how it paces itself is not what is looked at
_SEED_MODE = 0o600


class LateError(Exception):
    """What was waited for did not come in its time."""


@dataclass(frozen=True, slots=True)
class Nurseries:
    """One for each side's programs."""

    host: Nursery
    tools: Nursery


@dataclass
class Lane:
    """`kept` are the programs that cells share as long as none of them kills it."""

    parts: StackParts
    port: int
    pool: Pool
    owner: Pool
    wake: Wake
    kinds: Mapping[str, Kind]
    settings: Settings
    born: Nurseries
    stock: dict[str, list[UUID]] = field(default_factory=dict)
    kept: dict[str, Identity] = field(default_factory=dict)
    _living: list[Identity] = field(default_factory=list)
    _next: int = 0

    # -- where things are -----------------------------------------------------------------------------------------

    @property
    def links(self) -> Links:
        """What the engine needs to work here."""
        return assembly.links_of(self.parts, self.port)

    @property
    def auditors(self) -> Auditors:
        """The two roles that count."""
        return Auditors(assembly.auditor_dsn(self.parts, Side.HOST), assembly.auditor_dsn(self.parts, Side.TOOLS))

    @property
    def mail(self) -> Path:
        """Where mails appear."""
        return self.parts.home.mail / "new"

    def file(self, name: str) -> Path:
        """A file of a run, in the place's own home."""
        return self.parts.home.run / name

    # -- programs -------------------------------------------------------------------------------------------------

    def worker(self, **settings: str) -> Program:
        """As the stack starts it, with what this cell changes."""
        plain = assembly.worker(self.parts, self.port)
        return replace(plain, settings={**plain.settings, **settings})

    def command(self, *words: str, **settings: str) -> Program:
        """What a person types, who has a key here."""
        links = self.links
        own = {
            "KESSAI_DSN": links.dsn, "KESSAI_SERVER_URL": links.server_url, "KESSAI_AUDIENCE": links.audience,
            "KESSAI_ISSUER": links.issuer, "KESSAI_SIGNING_KEY_FILE": str(links.signing_key_file),
            "KESSAI_APPROVERS": str(self.file("approvers")), "KESSAI_LEASE_SECONDS": f"{TAKEOVER_SECONDS:g}",
        }  # fmt: skip
        arguments = python_module(assembly.HOST, *words)
        return Program(COMMAND, arguments, own | settings, self.parts.build.code, None, None, 0.0)

    def start(self, program: Program, boundary: Mapping[str, str]) -> Identity:
        """Start it; it may die before it is ready."""
        process = self._nursery(program.name).start(program, self.log(program.name), boundary)
        self._living = [*(one for one in self._living if one.alive()), process]
        return process

    def was_killed(self, name: Victim, process: Identity) -> bool:
        """Tell whether SIGKILL ended it, by the word of the process that gave birth to it."""
        return self._nursery(name).was_killed(process)

    def _nursery(self, name: str) -> Nursery:
        return self.born.tools if name == SERVER else self.born.host

    async def started(self, program: Program, boundary: Mapping[str, str]) -> Identity:
        """Start it and wait until it is ready; raises StackError."""
        since = len(self.said(program.name))
        process = self.start(program, boundary)

        async def ready() -> bool:
            if not process.alive():
                raise self.failed(program.name, "ended while it started")
            if program.port is not None:
                return await processes.answers_ready(program.port)
            return "ready: " in self.said(program.name)[since:]

        try:
            await until(ready, READY_SECONDS)
        except LateError as error:
            raise self.failed(program.name, "is not ready") from error
        return process

    async def keep(self, name: Victim) -> None:
        """Have the tool server or the worker that cells share."""
        living = self.kept.get(name)
        if living is None or not living.alive():
            program = assembly.tool_server(self.parts, self.port) if name == SERVER else self.worker()
            self.kept[name] = await self.started(program, {})

    async def drop(self, name: Victim) -> None:
        """Let the shared one go: a cell is about to have one of its own."""
        living = self.kept.pop(name, None)
        if living is not None:
            await kill(living)

    async def clear(self, *, all_of_it: bool = False) -> None:
        """End whatever a cell has started and left."""
        if all_of_it:
            self.kept.clear()
        for process in self._living:
            if process not in self.kept.values():
                await kill(process)

    async def fresh(self) -> None:
        """Have nothing under way, nothing queued and nothing stopped, whatever the last cell left."""
        await self.clear()
        async with self.owner.connection() as owner:
            await crash.forget_queue(owner)
            await crash.lift(owner)

    async def run(self, program: Program) -> str:
        """Run a command to its end, whatever that is; gives what it printed."""
        since = len(self.said(program.name))
        await gone(self.start(program, {}), ENDED_SECONDS)
        return self.said(program.name)[since:]

    def log(self, name: str) -> Path:
        """Where a program's output goes."""
        return processes.log_of(self.parts.home, name)

    def said(self, name: str) -> str:
        """What it holds; nothing where the program was never started."""
        log = self.log(name)
        return log.read_text("utf-8", "replace") if log.exists() else ""

    def failed(self, name: str, why: str) -> StackError:
        """A program that has nothing to do with what is looked at did not do its part."""
        what = f"{name.replace('_', ' ')} {why}."
        return LoggedError(StackProblem.PROGRAM_FAILED, what, self.log(name), tail(self.log(name))).without_log()

    # -- cases ----------------------------------------------------------------------------------------------------

    def number(self) -> int:
        """Give the number of an order that no cell has had."""
        self._next += 1
        if self._next >= shop.ORDERS:
            raise RuntimeError("the shop has no more orders")
        return self._next

    async def take(self, document: Mapping[str, object]) -> UUID:
        """Take a case in, with its wake-up, as the host does."""
        _, read = read_case(dict(document), CURRENT)
        kind, authorization = str(document["kind"]), read_authorization(self.settings.authz_file)
        asks = next(one for one in authorization.principals if kind in one.asks_for)
        pinned: Pins = pins(self.settings, authorization)
        return (await accept(self.pool, self.kinds[kind], read, Origin(asks), pinned, self.wake)).workflow_id

    async def position(self, workflow_id: UUID) -> crash.Position | None:
        """Where a case stands."""
        async with self.pool.connection() as connection:
            return await crash.position(connection, workflow_id)

    async def waiting(self, workflow_id: UUID) -> None:
        """Wait until a case waits for a yes; raises LateError."""

        async def waits() -> bool:
            found = await self.position(workflow_id)
            return found is not None and found.waits

        await until(waits, ENDED_SECONDS)

    async def forgettable(self) -> None:
        """Wait until a killed worker has been silent for so long that the next one forgets it; raises LateError."""

        async def silent() -> bool:
            async with self.pool.connection() as connection:
                return await crash.silent(connection, TAKEOVER_SECONDS)

        await until(silent, ENDED_SECONDS)

    async def idle(self) -> None:
        """Wait until nothing is queued; raises LateError."""

        async def empty() -> bool:
            async with self.pool.connection() as connection:
                return await crash.queued(connection) == 0

        await until(empty, ENDED_SECONDS)


async def until(true: Callable[[], Awaitable[bool]], seconds: float) -> None:
    """Look again and again; raises LateError."""
    deadline = time.monotonic() + seconds
    while not await true():
        if time.monotonic() > deadline:
            raise LateError(f"{seconds:g} s were over")
        await asyncio.sleep(LOOK_SECONDS)


async def kill(process: Identity) -> None:
    """SIGKILL, and wait until the kernel has taken everything back."""
    process.signal(signal.SIGKILL)
    await gone(process, READY_SECONDS)


async def gone(process: Identity, seconds: float) -> None:
    """Wait for an end; raises LateError."""
    if not await process.gone(seconds):
        raise LateError(f"process {process.pid} had not ended after {seconds:g} s")


@asynccontextmanager
async def opened(root: Path, choice: PostgresChoice, born: Nurseries) -> AsyncIterator[Lane]:
    """Bring a place up in `root`, and remove all of it afterwards. Raises StackError, NotReadyError."""
    await place.drop(root)  # of a killed run: its mails would be in no table of ours
    try:
        async with place.databases(root, choice) as plain, AsyncExitStack() as leaving:
            parts = _settled(plain)
            file = parts.home.run / "orders.json"
            write_whole(file, json.dumps(shop.seed(), ensure_ascii=False), _SEED_MODE)
            await processes.run_to_end(parts.home, assembly.load_file(parts, file), MIGRATION_SECONDS_MAX)
            pool = await leaving.enter_async_context(database(assembly.host_dsn(parts), 4))
            owner = await leaving.enter_async_context(database(assembly.host_owner_dsn(parts), 2))
            queue = queue_app(assembly.host_dsn(parts))
            await leaving.enter_async_context(queue.open_async())
            known = await kinds(pool)
            current = {kind: known[kind, workflow.release] for kind, workflow in CURRENT.items()}
            lane = Lane(
                parts, place.free_port(parts), pool, owner, waker(queue), current, Settings.model_construct(), born
            )
            try:
                yield lane
            finally:
                await lane.clear(all_of_it=True)
    finally:
        await place.drop(root)


def _settled(parts: StackParts) -> StackParts:
    """The same with what a matrix needs: no pace, and a short wait until what a dead worker had is gone on with."""
    tools = {"KESSAI_TOOLS_RATE_PRINCIPAL": NO_LIMIT, "KESSAI_TOOLS_RATE_TENANT": NO_LIMIT}
    worker = {
        "KESSAI_RATE_PRINCIPAL": NO_LIMIT, "KESSAI_RATE_TENANT": NO_LIMIT, "KESSAI_CONCURRENCY": "8",
        "KESSAI_LEASE_SECONDS": f"{TAKEOVER_SECONDS:g}",
    }  # fmt: skip
    return replace(parts, choice=replace(parts.choice, tool_server_settings=tools, worker_settings=worker))
