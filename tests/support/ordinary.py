"""Do something as an ordinary user, also where the tests run as root."""

from __future__ import annotations

import os
import pwd
import traceback
from collections.abc import Callable
from pathlib import Path

NOBODY = "nobody"


def directory_for(path: Path) -> Path:
    """A new directory at `path` that belongs to the user of `as_ordinary_user`, who can get there."""
    path.mkdir(mode=0o700)
    for parent in path.parents:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/") and "pytest" in parent.name:
            parent.chmod(0o711)
    if os.geteuid() == 0:
        user = pwd.getpwnam(NOBODY)
        os.chown(path, user.pw_uid, user.pw_gid)
    return path


def as_ordinary_user(work: Callable[[], str]) -> str:
    """What `work` answers in a child process without root's rights; its exception's text where it raises."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _drop()
            answer = work()
        except BaseException:  # noqa: BLE001 - a forked child must not return; its parent shows what happened
            answer = traceback.format_exc()
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def _drop() -> None:
    if os.geteuid() == 0:
        user = pwd.getpwnam(NOBODY)
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
