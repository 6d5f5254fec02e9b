"""A server that broke the protocol is negotiated with anew once, then left alone for a bounded time.

    sound → (broke) → suspect, renegotiated → (broke again) → isolated for 30 s → suspect → …
              any sound answer ─────────────────────────────────────────────────────┘→ sound

Breaks are counted per negotiation, so that many calls in flight over one bad connection count as one.
"""

from __future__ import annotations

ISOLATION_SECONDS = 30.0  # the longest back-off of one call; within it a restart is usually over


class Quarantine:
    """Times are of one monotonic clock, in seconds; a generation is one negotiation."""

    def __init__(self) -> None:
        self.generation = 0
        self._suspect = False
        self._until: float | None = None

    def isolated(self, now: float) -> bool:
        """Tell whether nothing may be sent."""
        return self._until is not None and now < self._until

    def broke(self, generation: int, now: float) -> None:
        """Note a broken protocol; what came over an older negotiation tells nothing of this one."""
        if generation != self.generation:
            return
        if self._suspect:
            self._until = now + ISOLATION_SECONDS
        self._suspect = True
        self.generation += 1

    def sound(self, generation: int) -> None:
        """Note an answer in the protocol."""
        if generation == self.generation:
            self._suspect = False
            self._until = None
