"""Exit codes: what a script can tell from `kessai run` without reading a word."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Every code that a command may end with."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    WAITING_APPROVAL = 10
    NEEDS_REVIEW = 11
    EXPIRED = 12
    COMPENSATION_REQUIRED = 13
    STOPPED = 14
    NOT_READY = 15
    INTERRUPTED = 130


MEANINGS: dict[Exit, str] = {
    Exit.DONE: "the business has its answer: COMPLETED or REJECTED",
    Exit.WAITING_APPROVAL: "WAITING_APPROVAL: a person has to say yes or no",
    Exit.NEEDS_REVIEW: "NEEDS_REVIEW: a person has the case",
    Exit.EXPIRED: "EXPIRED: nobody said yes in time",
    Exit.COMPENSATION_REQUIRED: "COMPENSATION_REQUIRED: something has to be undone",
    Exit.STOPPED: "refused, or halted, because work is stopped",
    Exit.NOT_READY: "not ready: database, tool server, settings' files, versions",
    Exit.BAD_INPUT: "bad input: a case, an option, a setting",
    Exit.FAILED: "the run failed by a fault of ours or of the planner",
}

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


def table() -> str:
    """Write the codes for a help text, one line each."""
    return "\n".join(f"  {code.value:>2}  {meaning}" for code, meaning in MEANINGS.items())
