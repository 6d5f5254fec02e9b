"""Waits for cases of an evaluation to rest, with one question to the database for all of them at a time.

Invariant: whoever waits is answered, by where his case stands or by a time that is over; a program that has died or a
database that has gone ends the waiting of all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import UUID

from host.store import trial
from host.store.pool import Pool
from host.store.trial import Position

LOOK_SECONDS = 0.04
CASE_SECONDS_MAX = 150.0  # the limits give a case 90 s at work; what does not rest by then never will


class GaveUpError(Exception):
    """The case did not come to rest in its time."""


@dataclass
class Watch:
    """`beside` is what is looked at each time too; nothing is looked at while somebody else has `steady`."""

    pool: Pool
    beside: Callable[[], Awaitable[None]]
    steady: asyncio.Lock
    _waiting: dict[UUID, tuple[bool, asyncio.Future[Position]]] = field(default_factory=dict)

    async def rest(self, workflow_id: UUID, *, ended: bool) -> Position:
        """Wait until a case has ended or, where that counts too, waits for a decision. Raises GaveUpError."""
        future: asyncio.Future[Position] = asyncio.get_running_loop().create_future()
        self._waiting[workflow_id] = (ended, future)
        try:
            async with asyncio.timeout(CASE_SECONDS_MAX):
                return await future
        except TimeoutError as error:
            raise GaveUpError(str(workflow_id)) from error
        finally:
            self._waiting.pop(workflow_id, None)

    async def look(self) -> None:
        """Look again and again, until this is cancelled; raises what keeps it from looking, to all who wait."""
        try:
            while True:
                async with self.steady:
                    await self.beside()
                    if self._waiting:
                        async with self.pool.connection() as connection:
                            for position in await trial.positions(connection, list(self._waiting)):
                                self._tell(position)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            for _, future in self._waiting.values():
                future.cancel()

    def _tell(self, position: Position) -> None:
        ended, future = self._waiting.get(position.workflow_id, (False, None))
        if future is not None and not future.done() and (position.ended or (position.waits and not ended)):
            future.set_result(position)
