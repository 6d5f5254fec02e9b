"""What everybody may ask and nobody may multiply: one look is under way, and whoever asks meanwhile waits for the same.

Invariant: an answer, or None where there is none yet, comes within the seconds that it is given. A look that takes
longer is left to itself, and the next question waits for it: cutting it off would cost a connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Look(Generic[T]):
    """`find` is what looks; it is bounded by the timeouts of its statements."""

    def __init__(self, find: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> None:
        self._find, self._seconds = find, seconds
        self._under_way: asyncio.Task[T] | None = None

    async def found(self) -> T | None:
        """Look, or join the look that is under way."""
        looking = self._under_way
        if looking is None or looking.done():
            looking = self._under_way = asyncio.create_task(self._find())
        await asyncio.wait([looking], timeout=self._seconds)  # another may have begun when this goes on
        return looking.result() if looking.done() else None

    async def close(self) -> None:
        """Let a look end by itself."""
        if self._under_way is not None:
            await asyncio.wait([self._under_way])
