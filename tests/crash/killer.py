"""Chooses a victim, waits until it has work in its hands, kills it, starts it again at once, and says what it hit.

Invariant: right before each signal the database was asked, and said that the victim had work in flight.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from host.stack.pids import Identity
from host.stack.processes import Program
from tests.crash.desk import Desk
from tests.crash.feed import OPEN_LEAST, Feeder
from tests.crash.inflight import Flight, database_time, in_flight, owner_of, still_out
from tests.crash.stand import Stand, kill

PAUSE_SECONDS = 1.2  # at most, between two kills
HASTY_SHARE = 0.25  # of the kills do not wait until what was killed before is ready again
AIM_SECONDS = 0.004  # between two looks: a write runs for about ten milliseconds
AIM_SECONDS_MAX = 60.0
_CASES = """
SELECT control_state, state, wake_reason, lease_owner, count(*),
       min(wake_at - clock_now()), max(lease_until - clock_now())
  FROM workflow WHERE control_state NOT IN ('completed', 'needs_human') GROUP BY 1, 2, 3, 4
"""
SERVER = "tool server"
WORKER = "worker"


@dataclass(frozen=True)
class Kill:
    """One kill: the process, when by the database's clock, how many cases were open, and what was hit."""

    process: str
    at: datetime
    open: int
    hit: list[Flight]

    @property
    def inside_write(self) -> bool:
        return any(flight.inside_write for flight in self.hit)


class Crew:
    """The tool server and the workers, of which one at a time is killed."""

    def __init__(self, stand: Stand, server: Program, workers: list[Program]) -> None:
        self._stand, self._server, self._workers = stand, server, workers
        self._living: dict[str, Identity] = {}
        self._starting: tuple[Program, int] | None = None  # and how long its log was

    async def begin(self) -> None:
        """Start everything, and wait until it is ready."""
        self._living[self._server.name] = await self._stand.started(self._server)
        for worker in self._workers:
            self._living[worker.name] = await self._stand.started(worker)

    async def kill_one(self, desk: Desk, feeder: Feeder, chance: random.Random, *, aimed: bool) -> Kill:
        """Wait a random while, then for the victim's work; kill, look at what it left, start it again.

        What was in flight at the look may be over at the kill: then nothing was hit, and the kill does not count.
        """
        program = self._server if chance.random() < 0.5 else chance.choice(self._workers)
        if self._starting is not None and chance.random() > HASTY_SHARE:
            started, since = self._starting
            await self._stand.ready(started, self._living[started.name], since)
        await asyncio.sleep(chance.random() * PAUSE_SECONDS)
        seen, victim = await self._aim(desk, program, aimed=aimed), self._living[program.name]
        while (opened := await feeder.open_now()) < OPEN_LEAST:
            await feeder.full()
            seen = await self._aim(desk, program, aimed=aimed)
        at = await database_time(desk)
        await kill(victim)
        hit = await self._hit(desk, program, victim, seen, at)
        self._starting = (program, len(self._stand.said(program.name)))
        self._living[program.name] = self._stand.start(program)
        return Kill(SERVER if program is self._server else WORKER, at, opened, hit)

    async def _aim(self, desk: Desk, program: Program, *, aimed: bool) -> list[Flight]:
        """Give what is in flight at a moment at which the victim has work in hand, or a write if it is aimed at."""
        wanted: Callable[[Flight], bool] = (lambda f: f.inside_write) if aimed else (lambda f: f.tool is not None)
        until = time.monotonic() + AIM_SECONDS_MAX
        while time.monotonic() < until:
            seen = [f for f in await in_flight(desk) if self._in_hand(f, program)]
            if any(wanted(flight) for flight in seen):
                return seen
            await asyncio.sleep(AIM_SECONDS)
        raise AssertionError(f"{program.name} got no work: {await self._why(desk)}")

    async def _why(self, desk: Desk) -> str:
        """Everything that tells why nobody works."""
        alive = {name: process.alive() for name, process in self._living.items()}
        cases = await desk.rows(_CASES)
        logs = {name: self._stand.log(name).read_text("utf-8")[-1500:] for name in self._living}
        return f"alive {alive}; cases {cases}; logs {logs}"

    def _in_hand(self, flight: Flight, program: Program) -> bool:
        """The tool server's work is a request that is out; a worker's is what it has a lease on."""
        if program is self._server:
            return flight.jti is not None
        return flight.owner == owner_of(self._living[program.name])

    async def _hit(
        self, desk: Desk, program: Program, victim: Identity, seen: list[Flight], at: datetime
    ) -> list[Flight]:
        """What a dead worker holds is what it was doing; the server was doing what had no answer yet."""
        if program is self._server:
            return await still_out(desk, seen, at)
        return [flight for flight in await in_flight(desk) if flight.owner == owner_of(victim)]
