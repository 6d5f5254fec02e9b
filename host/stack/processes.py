"""The other programs of the stack, each a process of its own with its own settings and nobody else's.

What runs is written down with its birth, so that a later start can tell its own from a reused number.
A program is adopted only while it is the very one that we would start: same code, arguments, settings.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from host.pulse import fresh
from host.stack.errors import LoggedError, StackError, StackProblem
from host.stack.files import read_json, rotate, tail, write_json
from host.stack.home import Home
from host.stack.pids import Identity, exit_code, identity_from, spawn
from host.stack.ports import LOOPBACK

READY_PATH = "/readyz"
POLL_SECONDS = 0.02
ANSWER_SECONDS = 2.0  # for one question whether it is ready
DEAD_SECONDS = 5.0  # after SIGKILL
# It becomes the program when it is told so; if we die before we wrote its pid down, it ends instead.
GATE = ("/bin/sh", "-c", 'read -r _ && exec "$@"', "sh")
# The operating system's variables, passed on unread: a program finds its libraries, its home and its clock.
PASSED_ON = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
    "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Program:
    """`settings` is everything of ours that its environment holds. `build` names the code it would run.

    It is ready when it answers so on its `port`, or while it touches its `pulse`; else as soon as it lives.
    """

    name: str
    arguments: tuple[str, ...]
    settings: Mapping[str, str]
    build: str
    port: int | None
    pulse: Path | None
    drain_seconds: float

    def fingerprint(self) -> str:
        """Equal for two that would behave alike."""
        parts = (self.build, self.arguments, sorted(self.settings.items()))
        return hashlib.sha256(repr(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Running:
    """A living process that we wrote down."""

    name: str
    process: Identity
    port: int | None
    pulse: Path | None
    build: str
    fingerprint: str
    drain_seconds: float
    started_here: bool


def python_module(module: str, *arguments: str) -> tuple[str, ...]:
    """The command of one of our own modules: this interpreter, and no module from a working directory."""
    return (sys.executable, "-P", "-m", module, *arguments)


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """No variable of ours, of libpq's or of a vendor's comes along from whoever started us."""
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    code = str(Path(__file__).parents[2])  # the same code as ours, installed or not
    return kept | {"PYTHONPATH": code, "PYTHONUNBUFFERED": "1"} | dict(settings)


def start(home: Home, program: Program) -> Running:
    """Start it and write it down; it is not yet ready."""
    log = log_of(home, program.name)
    rotate(log)
    if program.pulse is not None:
        program.pulse.unlink(missing_ok=True)  # of an earlier one
    reading, writing = os.pipe()
    try:
        process = spawn([*GATE, *program.arguments], log=log, env=environment(program.settings), stdin=reading)
        record = {
            "port": program.port,
            "pulse": None if program.pulse is None else str(program.pulse),
            "build": program.build,
            "fingerprint": program.fingerprint(),
            "drain_seconds": program.drain_seconds,
        }
        write_json(_state(home, program.name), process.to_json() | record)
        os.write(writing, b"\n")
    finally:
        os.close(reading)
        os.close(writing)
    return _running(program.name, process, record, started_here=True)


def find(home: Home, name: str) -> Running | None:
    """The process that was written down under this name, if that very one still lives."""
    state = read_json(_state(home, name))
    process = None if state is None else identity_from(state)
    if state is None or process is None or not process.alive():
        return None
    return _running(name, process, state, started_here=False)


def _running(name: str, process: Identity, record: Mapping[str, Any], *, started_here: bool) -> Running:
    port, pulse = record.get("port"), record.get("pulse")
    return Running(
        name, process, port if isinstance(port, int) else None, None if pulse is None else Path(str(pulse)),
        str(record.get("build")), str(record.get("fingerprint")), float(record.get("drain_seconds", 0)), started_here,
    )  # fmt: skip


def remembered_port(home: Home, name: str) -> int | None:
    """The port of its last start."""
    state = read_json(_state(home, name))
    port = None if state is None else state.get("port")
    return port if isinstance(port, int) else None


async def is_ready(running: Running) -> bool:
    """What it says of itself at this moment."""
    if running.port is not None:
        return await answers_ready(running.port)
    return running.pulse is None or fresh(running.pulse)


async def wait_ready(home: Home, running: Running, within_seconds: float) -> None:
    """Until it is ready; a `StackError` with the end of its log when it dies or never is."""
    since, deadline = time.monotonic(), time.monotonic() + within_seconds
    while running.process.alive():
        if await is_ready(running):
            return
        if time.monotonic() > deadline:
            raise failed(home, running, f"is not ready after {time.monotonic() - since:.0f} s")
        await asyncio.sleep(POLL_SECONDS)
    raise failed(home, running, f"ended while it started (exit code {exit_code(running.process.pid)})")


async def stop(home: Home, running: Running) -> None:
    """SIGTERM, so that it finishes what it has in hand; SIGKILL when it takes longer than it may."""
    running.process.signal(signal.SIGTERM)
    if not await running.process.gone(running.drain_seconds):
        running.process.signal(signal.SIGKILL)
        if not await running.process.gone(DEAD_SECONDS):
            raise failed(home, running, "cannot be ended")
    state = read_json(_state(home, running.name))
    if state is not None and identity_from(state) == running.process:
        write_json(_state(home, running.name), {"port": running.port})  # the port is worth remembering


async def run_to_end(home: Home, program: Program, within_seconds: float) -> None:
    """For a command that does one thing, such as a migration; it does not outlive us or its bound."""
    log = log_of(home, program.name)
    since = rotate(log)
    process = spawn(list(program.arguments), log=log, env=environment(program.settings))
    try:
        ended = await process.gone(within_seconds)
    finally:
        process.signal(signal.SIGKILL)  # only where it still runs
    code = exit_code(process.pid)
    if not ended or code != 0:
        why = f"ended with exit code {code}" if ended else f"did not end within {within_seconds:.0f} s"
        raise _problem(program.name, why, tail(log, since=since), log)


def log_of(home: Home, name: str) -> Path:
    """Where its output goes."""
    return home.logs / f"{name}.log"


def failed(home: Home, running: Running, why: str) -> StackError:
    """With the last lines of its log, which mostly say it better."""
    log = log_of(home, running.name)
    return _problem(running.name, why, tail(log), log)


def _problem(name: str, why: str, said: str, log: Path) -> StackError:
    return LoggedError(StackProblem.PROGRAM_FAILED, f"{name.replace('_', ' ')} {why}.", log, said)


def _state(home: Home, name: str) -> Path:
    return home.run / f"{name}.json"


async def answers_ready(port: int) -> bool:
    """One GET over loopback; only the status line is read."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(
                    f"GET {READY_PATH} HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nConnection: close\r\n\r\n".encode()
                )
                await writer.drain()
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError, ValueError):  # ValueError: a line without an end, from something else
        return False
    return status.split(b" ")[1:2] == [b"200"]
