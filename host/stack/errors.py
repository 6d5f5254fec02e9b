"""What keeps the stack of one machine from being ready; each says what, where and how to mend it.

One class for all of them: the command line turns it into exit 15 and three lines, never a traceback.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path


class StackProblem(StrEnum):
    """Stable codes, explained in the runbook."""

    HOME_NOT_WRITABLE = "home_not_writable"
    HOME_NOT_OURS = "home_not_ours"
    HOME_FOREIGN = "home_foreign"
    HOME_BUSY = "home_busy"
    HOME_TAKEN = "home_taken"
    HOME_UNFINISHED = "home_unfinished"
    HOME_EMPTY = "home_empty"
    BACKUP_PLACE_UNUSABLE = "backup_place_unusable"
    BACKUP_UNUSABLE = "backup_unusable"
    SECRET_READABLE = "secret_readable"
    SECRET_MISSING = "secret_missing"
    SECRET_MALFORMED = "secret_malformed"
    BINARIES_MISSING = "binaries_missing"
    BINARIES_TOO_OLD = "binaries_too_old"
    DATA_OF_OTHER_VERSION = "data_of_other_version"
    OS_USER_UNUSABLE = "os_user_unusable"
    PORT_IN_USE = "port_in_use"
    POSTGRES_FAILED = "postgres_failed"
    POSTGRES_FOREIGN = "postgres_foreign"
    POSTGRES_NOT_STOPPING = "postgres_not_stopping"
    PROGRAM_FAILED = "program_failed"
    PROGRAM_OUTDATED = "program_outdated"


class StackError(Exception):
    """The stack is not ready."""

    def __init__(self, problem: StackProblem, what: str, mend: str) -> None:
        super().__init__(f"{what}\n{mend}")
        self.problem = problem
        self.what = what
        self.mend = mend


class LoggedError(StackError):
    """A program failed; what it said last is in its log, and repeated."""

    def __init__(self, problem: StackProblem, what: str, log: Path, said: str) -> None:
        super().__init__(problem, what, f"Its log is {log}; its last lines:\n{said}")
        self.said = said

    def without_log(self) -> StackError:
        """The same where the log goes with everything else that was made: its lines have to do."""
        said = self.said if self.said.strip() else "(it said nothing)"
        return StackError(self.problem, self.what, f"Nothing was kept. Its last lines:\n{said}")
