"""Who keeps a stack up, as written down, and whether anything of it lives.

A record without a living process is history: after a reboot nothing is up.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from host.stack.assembly import TOOL_SERVER, WORKER
from host.stack.files import read_json, write_json
from host.stack.home import Home
from host.stack.locks import Hold
from host.stack.place import remembered_place
from host.stack.postmaster import running_postmaster
from host.stack.processes import find


class Mode(StrEnum):
    """`TEMPORARY` lasts as long as somebody holds it, `UP` until `down`."""

    DOWN = "down"
    TEMPORARY = "temporary"
    UP = "up"


def stack_lock(home: Home) -> Path:
    """Held while the stack is changed."""
    return home.run / "stack.lock"


def holders_lock(home: Home) -> Path:
    """Shared by everybody who uses the stack."""
    return home.run / "holders.lock"


def recorded_mode(home: Home) -> Mode:
    """`DOWN` where nothing was written."""
    record = read_json(home.run / "stack.json")
    found = None if record is None else record.get("mode")
    return Mode(found) if found in set(Mode) else Mode.DOWN


def write_mode(home: Home, mode: Mode) -> None:
    """For the next start, and for `status`."""
    write_json(home.run / "stack.json", {"mode": mode})


def in_use(home: Home) -> bool:
    """Tell whether anybody holds it. Only under the stack's lock: our own probe would refuse whoever wants to."""
    probe = Hold(holders_lock(home))
    try:
        return not probe.exclusive()
    finally:
        probe.close()


def anything_runs(home: Home) -> bool:
    """Any process of this home's stack."""
    place = remembered_place(home)
    if place is not None and running_postmaster(place / "data") is not None:
        return True
    return any(find(home, name) is not None for name in (WORKER, TOOL_SERVER))
