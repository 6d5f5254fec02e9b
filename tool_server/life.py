"""Whether this process still takes work, and how many requests it has in hand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Life:
    """One per process. Draining starts at once and never ends; what is in hand is finished."""

    def __init__(self) -> None:
        self._in_hand = 0
        self.draining = False  # once set, new work is refused for good
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def hand(self) -> Iterator[None]:
        """Hold one request in hand."""
        self._in_hand += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_hand -= 1
            if self._in_hand == 0:
                self._idle.set()

    async def idle(self) -> None:
        """Wait until nothing is in hand."""
        await self._idle.wait()
