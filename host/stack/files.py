"""Files of a home: replaced whole or not at all, and a secret is read by its owner alone.

A secret that others can read is refused, not mended: whoever read it before has it still.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any

from host.stack.errors import StackError, StackProblem
from shared_contracts.named_file import OTHERS, Unread, exposed, open_file, read_file, read_open

SECRET_MODE = 0o600
BYTES_MAX = 1_000_000  # of a secret, and of a state file
LOG_BYTES_MAX = 10_000_000
TAIL_LINES = 12


def write_whole(path: Path, content: str, mode: int) -> None:
    """A reader sees the old content or the new, also after a crash in between."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)  # whatever the umask was
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:  # whatever it is, it goes on from here; half a file does not stay
        beside.unlink(missing_ok=True)
        raise


def write_new(path: Path, content: str, mode: int) -> None:
    """Whole or not at all; raises FileExistsError rather than write over what is there."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    write_whole(beside, content, mode)
    try:
        os.link(beside, path, follow_symlinks=False)  # unlike a rename it never replaces
    finally:
        beside.unlink()


def write_secret(path: Path, content: str) -> None:
    """For our eyes alone."""
    write_whole(path, content, SECRET_MODE)


def read_secret(path: Path) -> str:
    """The text of a file that is a secret and not `exposed`; anything else is a `StackError`. Links are followed."""
    descriptor = open_file(path)
    if isinstance(descriptor, Unread):
        raise _unopened(path, descriptor)
    try:
        found = exposed(os.fstat(descriptor))  # of what is open, whatever the name leads to by now
        if found is not None:
            what, mend = found
            raise StackError(StackProblem.SECRET_READABLE, f"The secret file {path}: {what}.", f"{mend} '{path}'")
        content = read_open(descriptor, BYTES_MAX)
    finally:
        os.close(descriptor)
    if isinstance(content, Unread):
        raise malformed(path, content.why)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise malformed(path, "it is no text") from error


def _unopened(path: Path, why: Unread) -> StackError:
    if why.missing:
        return StackError(
            StackProblem.SECRET_MISSING,
            f"The secret file {path} does not exist.",
            "Put it back, or point the setting at the file that you mean.",
        )
    if why.errno is None:
        return malformed(path, f"it is no plain file: {why.why}")
    return StackError(
        StackProblem.SECRET_READABLE,
        f"The secret file {path} cannot be opened: {why.why}.",
        "It must be a plain file that the user who runs this may read.",
    )


def malformed(path: Path, why: str) -> StackError:
    """The error for a file whose content cannot be used."""
    return StackError(
        StackProblem.SECRET_MALFORMED,
        f"The file {path} is not what it should be: {why}.",
        "Restore it from a copy; a home's own file is made anew when it is removed and the stack is down.",
    )


def read_json(path: Path) -> dict[str, Any] | None:
    """A state file's object; None where there is none, or none that a crash left whole."""
    content = read_file(path, BYTES_MAX)
    if isinstance(content, Unread):
        if content.errno is not None and not content.missing:
            raise OSError(content.errno, content.why, str(path))
        return None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def write_json(path: Path, value: dict[str, Any]) -> None:
    """State of ours; nobody else needs to read it."""
    write_whole(path, json.dumps(value, indent=1) + "\n", SECRET_MODE)


def refuse_shared(directory: Path) -> None:
    """Who can write there could put other files in the place of ours; who can read, learns what runs and as whom."""
    status = directory.stat()
    if status.st_uid != os.geteuid() or status.st_mode & OTHERS:
        raise StackError(
            StackProblem.SECRET_READABLE,
            f"The directory {directory} is not ours alone (user id {status.st_uid}, "
            f"mode {stat.S_IMODE(status.st_mode):04o}).",
            f"If others may have been in it, begin anew in another; otherwise: chmod 700 '{directory}'",
        )


def rotate(log: Path) -> int:
    """Put a long log aside; give the length of the one that goes on."""
    if log.exists() and log.stat().st_size > LOG_BYTES_MAX:
        log.replace(log.with_suffix(".log.1"))
    return log.stat().st_size if log.exists() else 0


def tail(path: Path, *, since: int = 0) -> str:
    """The last lines of a log, of what was written after byte `since`."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(since, end - 8192))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-TAIL_LINES:])
