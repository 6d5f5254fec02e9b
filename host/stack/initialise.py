"""The cluster's first life: initdb with passwords from the first moment on, whole or not at all.

It is made beside its place and renamed into it, so that a crash never leaves half a cluster there.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import subprocess
from pathlib import Path

from host.stack.binaries import Binaries
from host.stack.errors import LoggedError, StackProblem
from host.stack.files import read_secret, write_secret
from host.stack.osuser import OsUser, give
from host.stack.serving import ADMIN

PLAIN_ENVIRONMENT = {"LC_ALL": "C", "PATH": os.defpath}  # PG* variables of a user's shell must not reach it


def password_in(file: Path) -> str:
    """Made at first use. 43 characters of base64url, so it needs no quoting anywhere."""
    if not file.exists():
        write_secret(file, secrets.token_urlsafe(32))
    return read_secret(file)


async def initialise(binaries: Binaries, place: Path, password: str, user: OsUser | None, log: Path) -> None:
    """Make `place/data`, with `password` for its superuser."""
    unfinished, password_file = place / "data.new", place / ".password"
    await asyncio.to_thread(shutil.rmtree, unfinished, ignore_errors=True)
    password_file.unlink(missing_ok=True)
    unfinished.mkdir(mode=0o700)
    give(user, unfinished)
    try:
        write_secret(password_file, password + "\n")
        give(user, password_file)
        await asyncio.to_thread(_initdb, binaries, unfinished, password_file, user, log)
    finally:
        password_file.unlink(missing_ok=True)
    unfinished.rename(place / "data")


def _initdb(binaries: Binaries, data: Path, password_file: Path, user: OsUser | None, log: Path) -> None:
    argv = [
        str(binaries.initdb), "-D", str(data), "-U", ADMIN, f"--pwfile={password_file}",
        "--auth-local=scram-sha-256", "--auth-host=scram-sha-256",
        "--encoding=UTF8", "--locale=C", "--data-checksums",
    ]  # fmt: skip
    if binaries.major >= 17:  # the same order of text on every operating system, with Unicode's case rules
        argv += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    drop = {} if user is None else user.drop()
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, cwd="/", env=PLAIN_ENVIRONMENT, umask=0o077, **drop
    )
    if done.returncode != 0:
        with log.open("a", encoding="utf-8") as file:
            file.write(done.stdout + done.stderr)
        what = f"initdb of {data} failed with {done.returncode}."
        raise LoggedError(StackProblem.POSTGRES_FAILED, what, log, done.stderr.strip()[-600:])
