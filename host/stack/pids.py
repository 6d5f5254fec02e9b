"""Which process is meant: a pid together with its birth, so that a reused number is never mistaken.

A zombie is dead. What is not provably the process that was written down is never sent a signal.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.02
_children: dict[int, subprocess.Popen[bytes]] = {}  # ours to reap; they may outlive us


@dataclass(frozen=True, slots=True)
class Identity:
    """`born` is the kernel's word: boot and start time, equal for no two processes of one machine."""

    pid: int
    born: str

    def alive(self) -> bool:
        """Whether this very process still lives."""
        return born(self.pid) == self.born

    def signal(self, number: signal.Signals) -> bool:
        """False where it is gone already."""
        if not self.alive():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    async def gone(self, within_seconds: float) -> bool:
        """Wait for its end; False where it outlives the bound."""
        deadline = time.monotonic() + within_seconds
        while self.alive():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(POLL_SECONDS)
        return True

    def to_json(self) -> dict[str, Any]:
        """For a state file; read back by `identity_from`."""
        return {"pid": self.pid, "born": self.born}


def identity_from(value: Mapping[str, Any]) -> Identity | None:
    """What `to_json` wrote; None where somebody else wrote it."""
    pid, birth = value.get("pid"), value.get("born")
    if not isinstance(pid, int) or not isinstance(birth, str) or pid <= 1:
        return None
    return Identity(pid, birth)


def spawn(
    argv: list[str], *, log: Path, env: Mapping[str, str], stdin: int = subprocess.DEVNULL, **drop: Any
) -> Identity:
    """Start a program of our own in a session of its own: a terminal's Ctrl-C does not reach it.

    `drop` is `user`, `group` and `extra_groups` of `subprocess.Popen`. Output is appended to `log`.
    """
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        child = subprocess.Popen(
            argv, stdin=stdin, stdout=descriptor, stderr=descriptor,
            env=dict(env), cwd="/", umask=0o077, start_new_session=True, **drop,
        )  # fmt: skip
    finally:
        os.close(descriptor)
    _children[child.pid] = child
    # A child that is dead already has no birth to read; an empty one never matches a living process.
    return Identity(child.pid, born(child.pid) or "")


def exit_code(pid: int) -> int | None:
    """Of a child of ours that ended; None for one that lives or that another process started."""
    child = _children.get(pid)
    return None if child is None else child.poll()


def boot() -> str:
    """Changes with each boot of the machine; a container's own restart does not change it."""
    if sys.platform == "linux":
        try:
            return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        except OSError:  # some sandboxes have none; the start time alone must do there
            return "boot"
    return _output("sysctl", "-n", "kern.boottime")


def born(pid: int) -> str | None:
    """The birth of the living process with this number."""
    if exit_code(pid) is not None:  # reaps it
        return None
    if sys.platform == "linux":
        return _born_linux(pid)
    fields = _output("ps", "-o", "stat=,lstart=", "-p", str(pid)).split(None, 1)
    return f"{boot()}/{fields[1].strip()}" if len(fields) == 2 and not fields[0].startswith("Z") else None


def _born_linux(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the name before it may hold spaces and brackets
    state, started = fields[0], fields[19]
    return None if state in "ZXx" else f"{boot()}/{started}"


def _output(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=10)
    return done.stdout.strip()
