"""What hurts every case at work: a program that is killed, a database that restarts, a tool server of older contracts.

    cases of one kind ──► each one's request is held ──► it is done once, to all of them ──► the answers go on

Invariant: it is done to the evaluation's own processes by their ids, and what is told of it was seen of them: the
one that was there is gone, and another one answers.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace

from host.stack import postgres, processes
from host.stack.assembly import TOOL_SERVER, WORKER, StackParts
from host.stack.bring_up import READY_SECONDS_MAX
from host.stack.processes import DEAD_SECONDS, Program, Running
from host.store.pool import Pool
from shared_contracts.evaluation import FaultKind

TOGETHER_SECONDS = 1.5  # well below a read's time
OLDER_VERSION = "0"
# The same program, over contracts that say of themselves that they are older.
_OLDER = f"""
import dataclasses, runpy
from shared_contracts.tools import TOOLS
TOOLS.update({{name: dataclasses.replace(tool, version="{OLDER_VERSION}") for name, tool in TOOLS.items()}})
runpy.run_module("tool_server.cli", run_name="__main__", alter_sys=True)
"""


@contextmanager
def _quiet_pools() -> Iterator[None]:
    """Say nothing of connections that are known to be broken."""
    said = logging.getLogger("psycopg.pool")
    level = said.level
    said.setLevel(logging.ERROR)
    try:
        yield
    finally:
        said.setLevel(level)


@dataclass
class Outages:
    """`running` is what works now; while `steady` is held, nobody asks the database or looks whether programs live.

    `pools` are the evaluation's own connections, which a restart breaks.
    """

    parts: StackParts
    programs: dict[str, Program]
    running: dict[str, Running]
    pools: Sequence[Pool]
    steady: asyncio.Lock = field(default_factory=asyncio.Lock)
    _together: int = 1
    _arrived: int = 0
    _all: asyncio.Event = field(default_factory=asyncio.Event)
    _doing: asyncio.Task[str] | None = None

    def expect(self, together: int) -> None:
        """Wait for so many cases before it is done to them."""
        self._together = together

    async def strike(self, kind: FaultKind) -> str:
        """Do it, once for all that wait for it; gives what was seen."""
        self._arrived += 1
        if self._arrived >= self._together:
            self._all.set()
        if self._doing is None:
            self._doing = asyncio.create_task(self._when_all(kind))
        return await asyncio.shield(self._doing)

    async def _when_all(self, kind: FaultKind) -> str:
        try:
            async with asyncio.timeout(TOGETHER_SECONDS):
                await self._all.wait()
        except TimeoutError:
            pass  # who comes later has one of his own
        hit = self._arrived
        self._arrived, self._doing = 0, None
        self._all.clear()
        async with self.steady:
            return f"{await self._do(kind)}; {hit} at once"

    async def _do(self, kind: FaultKind) -> str:
        match kind:
            case FaultKind.WORKER_KILLED:
                return await self._kill(WORKER)
            case FaultKind.SERVER_KILLED:
                return await self._kill(TOOL_SERVER)
            case FaultKind.DATABASE_RESTART:
                return await self._restart()
            case _:
                raise ValueError(f"{kind.value} is done to no request")

    async def _kill(self, name: str) -> str:
        before = self.running[name]
        before.process.signal(signal.SIGKILL)
        if not await before.process.gone(DEAD_SECONDS):
            raise processes.failed(self.parts.home, before, "outlived SIGKILL")
        after = await self._start(self.programs[name])
        return f"process {before.process.pid} of the {name} was killed and {after.process.pid} took its place"

    async def _restart(self) -> str:
        was, cluster = self.parts.server, postgres.cluster_of(self.parts.home, self.parts.choice.postgres)
        before = await postgres.find(cluster)
        stopped = await postgres.stop(self.parts.home)
        now = await postgres.start(cluster)
        if before is None or not stopped or now.process == before.process:
            raise RuntimeError("the database did not restart")
        if (now.port, now.socket_directory) != (was.port, was.socket_directory):
            raise RuntimeError("the database came back at another address")
        with _quiet_pools():
            for pool in self.pools:
                await pool.check()
        return f"process {before.process.pid} of the database was stopped and {now.process.pid} took its place"

    @asynccontextmanager
    async def without_worker(self) -> AsyncIterator[None]:
        """Let nobody drive any case for as long as the block lasts; nothing is looked at meanwhile."""
        async with self.steady:
            await processes.stop(self.parts.home, self.running[WORKER])
            try:
                yield
            finally:
                await self._start(self.programs[WORKER])

    @asynccontextmanager
    async def older(self) -> AsyncIterator[None]:
        """Let a tool server of older contracts stand there for as long as the block lasts."""
        program = self.programs[TOOL_SERVER]
        arguments = (sys.executable, "-P", "-c", _OLDER, *program.arguments[program.arguments.index("serve") :])
        await self._replace(replace(program, arguments=arguments))
        try:
            yield
        finally:
            await self._replace(program)

    async def _replace(self, program: Program) -> None:
        async with self.steady:
            await processes.stop(self.parts.home, self.running[program.name])
            await self._start(program)

    async def _start(self, program: Program) -> Running:
        started = self.running[program.name] = processes.start(self.parts.home, program)
        await processes.wait_ready(self.parts.home, started, READY_SECONDS_MAX)
        return started
