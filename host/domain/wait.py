"""Why a driver lets go of a workflow that has not ended."""

from __future__ import annotations

from dataclasses import dataclass

from shared_contracts.approval import LIFETIME

UNITS_BUSY_SECONDS = 1.0  # another workflow at work on the same units knows within a call or two
STOP_RECHECK_SECONDS = 5.0  # a resumed system goes on within this, without anybody having to wake each case


@dataclass(frozen=True, slots=True)
class Wait:
    """`after_seconds` on the database's clock; None waits for a person and has no timer."""

    reason: str
    after_seconds: float | None


ENDED = Wait("ended", None)
APPROVAL = Wait("approval", LIFETIME.total_seconds())  # nobody there: it ends by itself


def halted(*, reads: bool) -> Wait:
    """Wait for the end of a stop; while it lasts the sweeper wakes nobody who waits for it."""
    return Wait("stopped_reads" if reads else "stopped", STOP_RECHECK_SECONDS)
