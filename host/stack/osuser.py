"""The operating system's user that PostgreSQL runs as: ourselves, unless we are root.

PostgreSQL refuses root, so root's cluster belongs to an unprivileged user; what that user can reach
is found out by trying as that user, never by changing the mode of a directory on the way.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from host.stack.errors import StackError, StackProblem

FALLBACKS = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class OsUser:
    """Whom to become; `None` in place of one means that we stay who we are."""

    name: str
    uid: int
    gid: int

    def drop(self) -> dict[str, Any]:
        """Arguments of `subprocess.Popen`; no group of root's is kept."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def choose_os_user(name: str | None) -> OsUser | None:
    """`name` is the setting; it counts only for root, for nobody else can become another."""
    if os.geteuid() != 0:
        return None
    for candidate in FALLBACKS if name is None else (name,):
        try:
            found = pwd.getpwnam(candidate)
        except KeyError:
            continue
        if found.pw_uid == 0:
            raise _unusable(f"{candidate} is root, and PostgreSQL refuses to run as root")
        return OsUser(candidate, found.pw_uid, found.pw_gid)
    raise _unusable(f"none of these users exists: {FALLBACKS if name is None else name}")


def reaches(user: OsUser | None, path: Path) -> bool:
    """Whether that user can enter the directory, or run the program, at `path`."""
    if user is None:
        return os.access(path, os.X_OK)
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", 'test -x "$1"', "sh", path], cwd="/", check=False, env={}, **user.drop()
        )
    except PermissionError as error:
        raise _unusable(f"this process may not become {user.name} ({error.strerror})") from error
    return done.returncode == 0


def give(user: OsUser | None, path: Path) -> None:
    """Hand over something that we have just made."""
    if user is not None:
        os.chown(path, user.uid, user.gid, follow_symlinks=False)


def _unusable(why: str) -> StackError:
    return StackError(
        StackProblem.OS_USER_UNUSABLE,
        f"No operating system user for PostgreSQL: {why}.",
        "Set KESSAI_POSTGRES_OS_USER to an existing unprivileged user, or do not run as root.",
    )
