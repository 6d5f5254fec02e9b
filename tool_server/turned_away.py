"""Who comes without what is needed: a line for each of a few, a number for the many, an alarm, and less of an answer.

Invariant: however many come, they add a bounded number of lines per window, and none of what they sent is in the log.
Nobody is turned away for what others do: a request is judged first, and an address that failed too often is only told
to wait instead of why it failed. So behind a balancer, where all have one address, a right token passes meanwhile.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import structlog

from tool_server.limits import Buckets

log = structlog.get_logger()

WINDOW_SECONDS = 10.0
LINES_MAX = 50  # of a window; from then on they are counted, and an operator is called


class TurnedAway:
    """`clock` gives seconds that never go back. What a window had beyond its lines is told when the next one begins.

    A single one is logged as `event`; `alarm` calls an operator, and `numbers` has a window's.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        event: str = "refused",
        alarm: str = "many_turned_away",
        numbers: str = "turned_away",
        lines_max: int = LINES_MAX,
    ) -> None:
        self._clock, self._event, self._alarm = clock, event, alarm
        self._numbers, self._lines_max = numbers, lines_max
        self._ends = clock() + WINDOW_SECONDS
        self._counts: Counter[str] = Counter()

    def note(self, code: str, reason: str, **known: str) -> None:
        """Take note of one; `reason` is one of our own words, `known` what a token that held says."""
        if self._clock() >= self._ends:
            self._begin()
        self._counts[reason] += 1
        seen = self._counts.total()
        if seen <= self._lines_max:
            log.warning(self._event, code=code, reason=reason, **known)
        elif seen == self._lines_max + 1:
            log.error(self._alarm, reasons=dict(self._counts), window_seconds=WINDOW_SECONDS)

    def _begin(self) -> None:
        if self._counts.total() > self._lines_max:
            log.error(self._numbers, reasons=dict(self._counts), window_seconds=WINDOW_SECONDS)
        self._ends = self._clock() + WINDOW_SECONDS
        self._counts.clear()


class Failures:
    """How often one address may fail. `rate` is per second; memory is bounded as that of `Buckets`."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets, self._clock = Buckets(rate), clock

    def wait(self, address: str) -> float:
        """Count one failure of an address and give 0, or give the seconds that it is told to wait."""
        now = self._clock()
        wait = self._buckets.wait(address, now)
        if wait == 0.0:
            self._buckets.take(address, now)
        return wait
