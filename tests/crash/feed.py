"""Keeps cases coming, so that a kill never meets an idle system: a bounded number is open at every moment."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

from host.domain.control import ENDS
from tests.crash.desk import Desk
from tests.crash.stand import Stand

OPEN = 48  # kept open, so that what ends between two looks never takes it below the least
OPEN_LEAST = 20
LOOK_SECONDS = 0.05
FILL_SECONDS = 60.0
MORE_ORDERS = 1_000
_ENDED = "SELECT workflow_id FROM workflow WHERE workflow_id = ANY (%(open)s) AND control_state = ANY (%(ends)s)"


class Feeder:
    """`accepted` are all cases that were ever taken in, in order."""

    def __init__(self, stand: Stand, desk: Desk) -> None:
        self._stand, self._desk = stand, desk
        self._open: set[UUID] = set()
        self.accepted: list[UUID] = []
        self._full = asyncio.Event()

    @property
    def ended(self) -> int:
        return len(self.accepted) - len(self._open)

    async def run(self) -> None:
        """Feed until cancelled."""
        while True:
            await self._look()
            while len(self._open) < OPEN:
                await self._take()
            self._full.set()
            await asyncio.sleep(LOOK_SECONDS)

    async def full(self) -> None:
        """Wait until there was a look at which enough were open."""
        self._full.clear()
        async with asyncio.timeout(FILL_SECONDS):
            await self._full.wait()

    async def open_now(self) -> int:
        """How many are open at this moment, as the database has it."""
        await self._look()
        return len(self._open)

    async def finish(self, within_seconds: float) -> set[UUID]:
        """Take nothing more in, and wait for the rest; gives what has not ended by then."""
        until = time.monotonic() + within_seconds
        while await self.open_now() and time.monotonic() < until:  # noqa: ASYNC110 - only the database knows
            await asyncio.sleep(LOOK_SECONDS)
        return set(self._open)

    async def _take(self) -> None:
        if len(self.accepted) == self._stand.loaded:
            await self._stand.load(MORE_ORDERS)
        taken = await self._desk.take(len(self.accepted))
        self.accepted.append(taken)
        self._open.add(taken)

    async def _look(self) -> None:
        ends = [end.value for end in ENDS]
        rows = await self._desk.rows(_ENDED, open=list(self._open), ends=ends)
        self._open -= {row[0] for row in rows}
