"""Exit codes: what a script can tell from a command without reading a word."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Every code that a command may end with."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    NOTHING_COMPARED = 3
    WAITING_APPROVAL = 10
    NEEDS_REVIEW = 11
    EXPIRED = 12
    COMPENSATION_REQUIRED = 13
    STOPPED = 14
    NOT_READY = 15
    NOT_ADMITTED = 16
    INTERRUPTED = 130


_BY_STATE: dict[str, Exit] = {
    "COMPLETED": Exit.DONE,
    "REJECTED": Exit.DONE,
    "WAITING_APPROVAL": Exit.WAITING_APPROVAL,
    "NEEDS_REVIEW": Exit.NEEDS_REVIEW,
    "EXPIRED": Exit.EXPIRED,
    "COMPENSATION_REQUIRED": Exit.COMPENSATION_REQUIRED,
}


class CommandError(Exception):
    """A command cannot do what it was asked: with which code it ends, what is wrong, and what mends it."""

    def __init__(self, code: Exit, what: str, mend: str = "") -> None:
        """Keep the parts; they are printed one per line."""
        super().__init__(what)
        self.code, self.what, self.mend = code, what, mend


def exit_of(state: str, control_state: str) -> Exit | None:
    """Give the code for where a workflow rests; None while it does not rest."""
    return Exit.FAILED if control_state == "failed" else _BY_STATE.get(state)
