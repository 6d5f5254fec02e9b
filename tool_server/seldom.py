"""What is found again and again, such as a database that is away by everybody who asks `/readyz`: said now and then.

Invariant: however often it is found, the log gets one line of it in SECONDS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

SECONDS = 10.0


class Seldom:
    """`clock` gives seconds that never go back. What is told of it comes from a few kinds, and none is forgotten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._from: dict[Hashable, float] = {}

    def due(self, what: Hashable) -> bool:
        """Tell whether it is to be said now; who is told so says it."""
        now = self._clock()
        if now < self._from.get(what, now):
            return False
        self._from[what] = now + SECONDS
        return True
