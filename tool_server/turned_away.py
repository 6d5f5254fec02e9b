"""Who comes without a right token: a line in the log for each of a few, a number for the many, and an alarm.

Invariant: however many come, they add a bounded number of lines per window, and none of what they sent is in the log.
Nobody is turned away for what others do: behind a balancer all have one address, and a limit by it would lock out the
right ones with the wrong.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import structlog

log = structlog.get_logger()

WINDOW_SECONDS = 10.0
LINES_MAX = 50  # of a window; from then on they are counted, and an operator is called


class TurnedAway:
    """`clock` gives seconds that never go back. What a window had beyond its lines is told when the next one begins."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends = clock() + WINDOW_SECONDS
        self._counts: Counter[str] = Counter()

    def note(self, code: str, reason: str) -> None:
        """Take note of one; `reason` is one of our own words."""
        if self._clock() >= self._ends:
            self._begin()
        self._counts[reason] += 1
        seen = self._counts.total()
        if seen <= LINES_MAX:
            log.warning("refused", code=code, reason=reason)
        elif seen == LINES_MAX + 1:
            log.error("many_turned_away", reasons=dict(self._counts), window_seconds=WINDOW_SECONDS)

    def _begin(self) -> None:
        if self._counts.total() > LINES_MAX:
            log.error("turned_away", reasons=dict(self._counts), window_seconds=WINDOW_SECONDS)
        self._ends = self._clock() + WINDOW_SECONDS
        self._counts.clear()
