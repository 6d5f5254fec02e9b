"""From an error that somebody can mend to an exit code and its lines; anything else is a bug and shows itself."""

from __future__ import annotations

import psycopg
from psycopg_pool import PoolTimeout

from host.commands.exits import CommandError, Exit
from host.commands.output import say
from host.database import NotReadyError
from host.engine.accept import CaseError, RequestConflictError
from host.engine.approve import ApprovalRefusedError
from host.engine.reapply import NotPossibleError
from host.settings import SettingsError
from host.stack.errors import StackError
from host.store.asked import ApprovalChangedError
from host.store.errors import (
    ActRefusedError,
    ApproverKeyError,
    NotAdmittedError,
    ReleaseMovedError,
    StaleWorkflowError,
    StoppedError,
)
from host.store.migrate import NewerSchemaError, PasswordError
from shared_contracts.told import unconnected

EXPECTED = (
    CommandError, CaseError, RequestConflictError, ApprovalRefusedError, ApproverKeyError, NotPossibleError,
    SettingsError, NotReadyError, StackError, StoppedError, NotAdmittedError, ReleaseMovedError, ActRefusedError,
    StaleWorkflowError, NewerSchemaError, ApprovalChangedError, PasswordError, PoolTimeout, psycopg.OperationalError,
    psycopg.InterfaceError, psycopg.errors.TransactionTimeout, psycopg.errors.InsufficientPrivilege,
    psycopg.errors.UndefinedTable,
)  # fmt: skip
_CODES: dict[type[Exception], Exit] = {
    CaseError: Exit.BAD_INPUT,
    RequestConflictError: Exit.BAD_INPUT,
    ApprovalRefusedError: Exit.BAD_INPUT,
    ApproverKeyError: Exit.BAD_INPUT,
    NotPossibleError: Exit.BAD_INPUT,
    SettingsError: Exit.BAD_INPUT,
    StoppedError: Exit.STOPPED,
    NotAdmittedError: Exit.NOT_ADMITTED,
    ActRefusedError: Exit.BAD_INPUT,
}

# what the database says no with, in its first line: what stands before it, and what mends it
_REFUSED: dict[type[Exception], tuple[str, str]] = {
    ApproverKeyError: ("", "Nothing was changed. kessai approver list shows the keys."),
    NotAdmittedError: (
        "not taken in: ",
        "Nothing was written. See kessai rollout status, and RUNBOOK.md, “Roll a release out”.",
    ),
    ReleaseMovedError: ("", "Nothing was written. Try again; kessai release list shows what is recorded."),
    ActRefusedError: ("not done: ", "Nothing was changed. See kessai rollout status and kessai release list."),
}


def tell(error: Exception) -> Exit:
    """Say on standard error what is wrong and what mends it; give the exit code."""
    what, mend = _lines(error)
    say(f"kessai: {what}")
    for line in mend.splitlines():
        say(f"  {line}")
    return error.code if isinstance(error, CommandError) else _CODES.get(type(error), Exit.NOT_READY)


def _lines(error: Exception) -> tuple[str, str]:
    match error:
        case CommandError() | StackError():
            return error.what, error.mend
        case ApprovalRefusedError() | NotPossibleError():
            return f"not taken: {error}", "Nothing was changed."
        case ApproverKeyError() | NotAdmittedError() | ReleaseMovedError() | ActRefusedError():
            said, mend = _REFUSED[type(error)]
            return f"{said}{str(error).splitlines()[0]}", mend
        case StoppedError():
            return "new work is stopped", "Nothing was written. Try again when the stop is lifted."
        case psycopg.errors.InsufficientPrivilege():
            return f"the database refuses: {error.diag.message_primary}", "Use the role that owns the database."
        case psycopg.OperationalError(sqlstate=None):
            asks = error.pgconn is not None and error.pgconn.needs_password
            setting = "KESSAI_DSN (for migrate: KESSAI_MIGRATE_DSN)"
            what, mend = unconnected(str(error), wants_password=asks, setting=setting)
            return what, mend
        case psycopg.Error():
            return f"the host's database gave up: {error.diag.message_primary}", "Nothing was lost; try again."
        case _:
            what, _, mend = str(error).partition("\n")
            return what, mend
