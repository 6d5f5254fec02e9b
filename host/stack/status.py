"""What runs, where, and why: read from state files and processes, changing nothing and waiting for nobody."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from host.stack import processes
from host.stack.assembly import TOOL_SERVER, WORKER
from host.stack.files import read_json
from host.stack.home import Home, existing_home, obstacle, unfinished
from host.stack.locks import Hold
from host.stack.mode import Mode, anything_runs, in_use, recorded_mode, stack_lock
from host.stack.place import remembered_place
from host.stack.postmaster import read_pid_file, running_postmaster

POSTGRES = "postgres"


class PartState(StrEnum):
    """`DIED` is one that is gone although nobody stopped it or the whole stack."""

    RUNNING = "running"
    NOT_READY = "not_ready"
    DIED = "died"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One process of the stack."""

    name: str
    state: PartState
    pid: int | None
    port: int | None
    log: Path


@dataclass(frozen=True, slots=True)
class StackStatus:
    """`why` is a sentence for a person."""

    home: Path
    mode: Mode
    why: str
    parts: tuple[PartStatus, ...]
    well: bool = True  # False where something that should run does not


async def status(root: Path) -> StackStatus:
    """Also of a directory that is no home, or none yet: then nothing runs."""
    home = existing_home(root)
    if home is None:
        hindered = obstacle(root)
        made = f"there is no home at {root} yet; kessai run or kessai up makes one"
        return StackStatus(root, Mode.DOWN, made if hindered is None else hindered.what, ())
    mode, why = _mode(home)
    found = [_postgres(home), *[await _program(home, name) for name in (TOOL_SERVER, WORKER)]]
    if recorded_mode(home) is Mode.DOWN:  # what had died before it was all stopped is no news any more
        found = [replace(part, state=PartState.STOPPED) if part.state is PartState.DIED else part for part in found]
    half_made = unfinished(home.root)
    if half_made is not None:
        return StackStatus(home.root, mode, f"{half_made.what} {half_made.mend}", tuple(found), well=False)
    return StackStatus(home.root, mode, why, tuple(found), well=_well(recorded_mode(home), found))


def _well(recorded: Mode, parts: list[PartStatus]) -> bool:
    """What is up has all its parts running; what anybody else has begun has none that died or cannot work."""
    fine = {PartState.RUNNING} if recorded is Mode.UP else {PartState.RUNNING, PartState.STOPPED}
    return all(part.state in fine for part in parts)


def _mode(home: Home) -> tuple[Mode, str]:
    recorded = recorded_mode(home)
    lock = Hold(stack_lock(home))
    try:
        if not lock.exclusive():
            return recorded, "another process is starting or stopping it just now"
        if not anything_runs(home):
            return Mode.DOWN, "nothing runs" + _unless_stopped(recorded)
        if recorded is Mode.UP:
            return recorded, "kessai up started it; kessai down stops it"
        if in_use(home):
            return recorded, "a command uses it and stops it when it ends"
        return recorded, "a command that started it was killed; the next one takes it over, kessai down stops it"
    finally:
        lock.close()


def _unless_stopped(recorded: Mode) -> str:
    return "" if recorded is Mode.DOWN else " any more, though nobody stopped it (a reboot, or it was killed)"


def _postgres(home: Home) -> PartStatus:
    place, log = remembered_place(home), home.logs / "postgres.log"
    if place is None:
        return PartStatus(POSTGRES, PartState.STOPPED, None, None, log)
    process, claim = running_postmaster(place / "data"), read_pid_file(place / "data")
    port = None if claim is None else claim.port
    if process is not None:
        ready = claim is not None and claim.status.startswith("ready")
        return PartStatus(POSTGRES, PartState.RUNNING if ready else PartState.NOT_READY, process.pid, port, log)
    return PartStatus(POSTGRES, PartState.STOPPED if claim is None else PartState.DIED, None, port, log)


async def _program(home: Home, name: str) -> PartStatus:
    log, running = processes.log_of(home, name), processes.find(home, name)
    if running is None:
        record = read_json(home.run / f"{name}.json")
        left = record is not None and "pid" in record
        return PartStatus(name, PartState.DIED if left else PartState.STOPPED, None, None, log)
    state = PartState.RUNNING if await processes.is_ready(running) else PartState.NOT_READY
    return PartStatus(name, state, running.process.pid, running.port, log)
