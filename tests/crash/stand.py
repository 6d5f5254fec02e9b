"""One stack for crash tests: a database as durable as production's, and real programs that are killed by their pid.

Invariant: whatever was started here is gone when the block ends; no other process is ever sent a signal.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from host.stack import assembly, postgres, processes
from host.stack.assembly import StackChoice, StackParts
from host.stack.build import installed_build
from host.stack.home import open_home
from host.stack.keys import ensure_keys
from host.stack.links import Links
from host.stack.pids import Identity, spawn
from host.stack.ports import choose_port
from host.stack.postgres import Cluster, PostgresChoice, Server
from host.stack.processes import Program
from host.stack.removal import empty_home
from host.stack.roles import Side, dsn
from host.stack.serving import ADMIN
from host.stack.stack import temporary_database
from tests.crash.orders import write_orders

READY_SECONDS = 60.0  # a start takes two seconds of a core, which others may need too
END_SECONDS = 45.0  # a drain, above what each program allows itself
LOAD_SECONDS = 300.0
RATES = {"RATE_PRINCIPAL": "10000", "RATE_TENANT": "10000"}


@dataclass
class Stand:
    """The database of a home of its own, and what was started over it."""

    parts: StackParts
    port: int
    within: Path
    living: list[Identity] = field(default_factory=list)
    loaded: int = 0

    # -- where things are ---------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return assembly.resource_at(self.port)

    @property
    def links(self) -> Links:
        """What the host needs to work here."""
        return assembly.links_of(self.parts, self.port)

    def role(self, side: Side, role: str) -> str:
        """A role's own connection string."""
        return dsn(self.parts.home, self.parts.server, side, role)

    @property
    def cluster(self) -> Cluster:
        return postgres.cluster_of(self.parts.home, self.parts.choice.postgres)

    def moved(self, server: Server) -> None:
        """The database is now served by another process."""
        self.parts = replace(self.parts, server=server)

    def admin(self, database: str = "postgres") -> str:
        """The superuser's, which stays in this process."""
        return self.parts.server.conninfo(database, ADMIN, password=self.cluster.admin_password())

    def rows(self, side: Side, role: str, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        """Ask as a role."""
        with psycopg.connect(self.role(side, role), autocommit=True) as connection:
            return connection.execute(query, values).fetchall()

    # -- programs -----------------------------------------------------------------------------------------------

    def worker(self, name: str, **settings: str) -> Program:
        """A worker under a name of its own, at the tool server's real address unless told another."""
        plain = assembly.worker(self.parts, self.port)
        pulse = self.parts.home.run / f"{name}.pulse"
        own = {"KESSAI_PULSE_FILE": str(pulse)} | settings
        return replace(plain, name=name, pulse=pulse, settings=dict(plain.settings) | own)

    def tool_server(self, **settings: str) -> Program:
        plain = assembly.tool_server(self.parts, self.port)
        return replace(plain, settings=dict(plain.settings) | settings)

    def log(self, name: str) -> Path:
        return processes.log_of(self.parts.home, name)

    def said(self, name: str) -> str:
        """A program's log; nothing where it was never started."""
        log = self.log(name)
        return log.read_text("utf-8") if log.exists() else ""

    def start(self, program: Program) -> Identity:
        """Start it; it is not yet ready."""
        return self.spawn(program, program.arguments, {})

    def spawn(self, program: Program, arguments: tuple[str, ...], more: Mapping[str, str]) -> Identity:
        """Start other arguments than the program's own, with its settings and some more."""
        environment = processes.environment(program.settings) | dict(more)
        started = spawn(list(arguments), log=self.log(program.name), env=environment)
        self.living = [*(one for one in self.living if one.alive()), started]
        return started

    async def ready(self, program: Program, process: Identity, since: int = 0) -> None:
        """Wait until a tool server answers, or until a worker has said in its log that it is ready."""
        async with asyncio.timeout(READY_SECONDS):
            while not await self._answers(program, since):
                assert process.alive(), f"{program.name} ended: {self.said(program.name)[-2000:]}"
                await asyncio.sleep(0.02)

    async def _answers(self, program: Program, since: int) -> bool:
        if program.port is not None:
            return await processes.answers_ready(program.port)
        return "ready: " in self.said(program.name)[since:]

    async def started(self, program: Program) -> Identity:
        """Start it and wait until it is ready."""
        since = len(self.said(program.name))
        process = self.start(program)
        await self.ready(program, process, since)
        return process

    # -- the shop -----------------------------------------------------------------------------------------------

    async def load(self, orders: int) -> None:
        """Let the shop have that many more orders."""
        file = self.within / f"orders-{self.loaded}.json"
        write_orders(file, range(self.loaded, self.loaded + orders))
        program = assembly.load_demo(replace(self.parts, build=replace(self.parts.build, demo_files=(file,))))
        await processes.run_to_end(self.parts.home, replace(program, name=f"load-{self.loaded}"), LOAD_SECONDS)
        self.loaded += orders


async def kill(process: Identity) -> None:
    """SIGKILL, and wait until the kernel has taken everything back."""
    process.signal(signal.SIGKILL)
    assert await process.gone(END_SECONDS), "a killed process is gone"


async def end(process: Identity) -> None:
    """SIGTERM, and wait for the drain."""
    process.signal(signal.SIGTERM)
    assert await process.gone(END_SECONDS), "it drains within its bound"


@asynccontextmanager
async def stand(orders: int, worker_settings: Mapping[str, str]) -> AsyncIterator[Stand]:
    """Bring the database up, migrated, with roles and orders; no program of ours runs yet."""
    choice = StackChoice(
        PostgresChoice(bin=None, os_user=None),
        tool_server_port=None,
        tool_server_settings={f"KESSAI_TOOLS_{name}": value for name, value in RATES.items()},
        worker_settings={f"KESSAI_{name}": value for name, value in RATES.items()} | dict(worker_settings),
    )
    with _directory() as within:
        root = within / "home"
        try:
            async with temporary_database(root, choice):
                made = await _furnished(root, within, choice)
                try:
                    await made.load(orders)
                    yield made
                finally:
                    for process in made.living:
                        await kill(process)
        finally:
            await empty_home(root)


@contextmanager
def _directory() -> Iterator[Path]:
    """One that the cluster's own user can pass through."""
    with tempfile.TemporaryDirectory(prefix="kessai-crash-") as made:
        Path(made).chmod(0o711)
        yield Path(made)


async def _furnished(root: Path, within: Path, choice: StackChoice) -> Stand:
    home = open_home(root)
    server = await postgres.start(postgres.cluster_of(home, choice.postgres))  # it runs: this adopts it
    return Stand(StackParts(home, server, ensure_keys(home), installed_build(), choice), choose_port(None), within)
