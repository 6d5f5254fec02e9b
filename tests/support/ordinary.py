"""Do something as an ordinary user, also where the tests run as root."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - loaded now: a dropped process may not reach the library
import encodings.ascii
import encodings.idna
import encodings.latin_1  # noqa: F401
import os
import pwd
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = "nobody"


@contextmanager
def public_directory() -> Iterator[Path]:
    """One that everybody can pass into, which pytest's own are not."""
    made = Path(tempfile.mkdtemp(prefix="kessai-public-"))
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made)


@contextmanager
def ordinary_directory() -> Iterator[Path]:
    """One of the user that `as_ordinary_user` becomes."""
    with public_directory() as public:
        made = public / "own"
        made.mkdir(mode=0o700)
        if os.geteuid() == 0:
            user = pwd.getpwnam(NOBODY)
            os.chown(made, user.pw_uid, user.pw_gid)
        yield made


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
