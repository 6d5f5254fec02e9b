"""Is that running server ours? A pid in a file is a claim; the process and its directory decide.

PostgreSQL removes a stale postmaster.pid by itself, except where the number now belongs to some other
process. We remove that one, and only when no server process works in the data directory any more: a
backend that outlived its postmaster still writes.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from host.stack.errors import StackError, StackProblem
from host.stack.pids import Identity, boot, born

POLL_SECONDS = 0.05
PID = re.compile(r"[1-9]\d{0,8}")
ORPHANS_SECONDS = 5.0  # a backend sees the death of its postmaster when it next waits for anything


@dataclass(frozen=True, slots=True)
class PidFile:
    """What postmaster.pid says; PostgreSQL writes it line by line while it starts."""

    pid: int
    port: int
    socket_directory: str
    status: str


def read_pid_file(data: Path) -> PidFile | None:
    """None where there is none, or where it is not written far enough to be used."""
    lines = _lines(data)
    if len(lines) < 8 or not lines[0].isdigit() or not lines[3].isdigit():
        return None
    return PidFile(int(lines[0]), int(lines[3]), lines[4], lines[7])


def running_postmaster(data: Path) -> Identity | None:
    """The living process that owns this data directory."""
    pid = _claimed_pid(data)
    birth = None if pid is None else born(pid)
    return Identity(pid, birth) if pid is not None and birth is not None and _serves(pid, data) else None


async def clear_left_behind(data: Path, last_boot: object) -> None:
    """Called when no postmaster of ours is known: end its orphans, take away a pid file of a reused number.

    A postmaster that is just starting looks like an orphan until it has written its pid; then it is left alone.
    """
    if not await _left(data):
        for orphan in _orphans(data):
            orphan.signal(signal.SIGQUIT)  # what a postmaster itself sends its own to give up at once
        await _left(data)
    if running_postmaster(data) is not None:
        return
    file, pid = data / "postmaster.pid", _claimed_pid(data)
    if not file.exists() or (pid is not None and not _number_taken(pid)):
        return  # PostgreSQL sees that itself, and checks the dead server's shared memory too
    if _orphans(data) or (sys.platform != "linux" and last_boot == boot()):
        raise StackError(
            StackProblem.POSTGRES_FOREIGN,
            f"{file} names process {pid}, which is not our server; others may still work in {data}.",
            f"Make sure that no postgres runs there, remove {file}, and start again.",
        )
    file.unlink()


async def _left(data: Path) -> bool:
    """Wait until no orphan works there any more, or until they turn out to have a living postmaster."""
    deadline = time.monotonic() + ORPHANS_SECONDS
    while time.monotonic() < deadline:
        if running_postmaster(data) is not None or not _orphans(data):
            return True
        await asyncio.sleep(POLL_SECONDS)
    return False


def system_identifier(data: Path) -> int:
    """The cluster's own number, as its control file holds it."""
    with (data / "global" / "pg_control").open("rb") as file:
        return int(struct.unpack("=Q", file.read(8))[0])


def _lines(data: Path) -> list[str]:
    try:
        text = (data / "postmaster.pid").read_text("utf-8", "replace")
    except FileNotFoundError:
        return []
    return [line.strip() for line in text.splitlines()]


def _claimed_pid(data: Path) -> int | None:
    """None where there is no file, or no number of a process in it."""
    lines = _lines(data)
    return int(lines[0]) if lines and PID.fullmatch(lines[0]) else None


def _number_taken(pid: int) -> bool:
    """As PostgreSQL asks: a zombie counts, and so does a process of somebody else's."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _serves(pid: int, data: Path) -> bool:
    """A server's processes work in its data directory. Without /proc the connection must tell."""
    if sys.platform != "linux":
        return True
    try:
        program, directory = (Path(f"/proc/{pid}/{name}").readlink() for name in ("exe", "cwd"))
    except OSError:  # gone, or not ours to look at
        return False
    return program.name.startswith("postgres") and directory == Path(os.path.realpath(data))


def _orphans(data: Path) -> list[Identity]:
    if sys.platform != "linux":
        return []
    found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    births = [(pid, born(pid)) for pid in found if _serves(pid, data)]
    return [Identity(pid, birth) for pid, birth in births if birth is not None]
