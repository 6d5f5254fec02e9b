"""What a log says again and again, of a fault or a stranger: a few times a minute, then how much was kept back.

Invariant: of lines that are alike a minute gets MANY; the last of these calls an operator, since they are many.
Lines are alike by words of our own, so they are of few kinds; above KINDS_MAX all others are one. However many come,
lines and memory stay bounded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, TypeAlias

SECONDS = 60.0
MANY = 20  # within a minute; an honest host has less of anything that is logged
KINDS_MAX = 500
# What says which line of the program it is and what it met; ids, and whatever a caller chose, are not among them.
_WORDS = ("event", "code", "status", "reason", "place", "exception", "error", "family", "tool")

Line: TypeAlias = MutableMapping[str, Any]


class LogLimit:
    """`clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._minutes: dict[Hashable, tuple[float, int]] = {}  # of a kind: when its minute ends, how many it has had

    def written(self, line: Line) -> Line | None:
        """Give a line as it is to be written, or None where it is kept back."""
        kind, now = self._kind(line), self._clock()
        ends, count = self._minutes.get(kind, (now, 0))
        if now >= ends:
            self._minutes[kind] = (now + SECONDS, 1)
            return {**line, "kept_back": count - MANY} if count > MANY else line
        self._minutes[kind] = (ends, count + 1)
        if count + 1 < MANY:
            return line
        if count + 1 > MANY:
            return None
        level = "critical" if line.get("level") == "critical" else "error"
        return {**line, "event": "many_alike", "of": line["event"], "level": level}

    def _kind(self, line: Line) -> Hashable:
        kind = (*map(line.get, _WORDS), *line.get("frames", ())[-1:])
        return kind if kind in self._minutes or len(self._minutes) < KINDS_MAX else None


def processor(dropped: type[BaseException]) -> Callable[[object, str, Line], Line]:
    """Make a limit into structlog's processor; `dropped` is its DropEvent."""
    limit = LogLimit()

    def bounded(_logger: object, _name: str, line: Line) -> Line:
        written = limit.written(line)
        if written is None:
            raise dropped
        return written

    return bounded
