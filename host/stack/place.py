"""Where the cluster's directory lies: in the home, or beside the machine's other data when it must.

Root's cluster belongs to another user. Where that user cannot pass into the home (such as below
/root), the cluster gets a directory of its own, which the home remembers. No mode on the way changes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from host.stack.errors import StackError, StackProblem
from host.stack.files import read_json, write_json
from host.stack.home import Home
from host.stack.osuser import OsUser, give, reaches

BESIDE = Path("/var/lib/kessai")
MARKER = ".kessai-cluster"
SHORT, SHORT_PREFIX = Path("/tmp"), "kessai-"  # noqa: S108 - only for directories of mkdtemp
SOCKET_NAME_BYTES = len("/.s.PGSQL.65535")
SOCKET_PATH_BYTES_MAX = 103  # macOS allows 103 and Linux 107 before the closing NUL


def place_of(home: Home, user: OsUser | None) -> Path:
    """The directory of `data` and `socket`; the first answer for a home is kept."""
    remembered = remembered_place(home)
    if remembered is not None:
        return remembered
    place = home.postgres if reaches(user, home.postgres) else _beside(home)
    if not reaches(user, place):
        raise StackError(
            StackProblem.OS_USER_UNUSABLE,
            f"The user that PostgreSQL runs as reaches neither {home.postgres} nor {place}.",
            "Set KESSAI_HOME to a directory that every user can pass into, such as one in /srv.",
        )
    write_json(home.postgres / "place.json", {"place": str(place)})
    return place


def remembered_place(home: Home) -> Path | None:
    """What was decided for this home; None before its first start."""
    record = read_json(home.postgres / "place.json")
    return None if record is None else Path(str(record["place"]))


def abandoned_places(home: Home) -> list[Path]:
    """Left by an earlier home of the same path that somebody removed by hand."""
    own = remembered_place(home)
    found = BESIDE.glob(f"{_digest(home)}-*")
    return [path for path in found if path != own and _home_of(path) == str(home.root)]


def remove_place(home: Home, place: Path) -> None:
    """Only what lies beside the home needs this; the rest goes with the home."""
    if place.parent == BESIDE and _home_of(place) == str(home.root):
        shutil.rmtree(place)


def socket_directory(place: Path, remembered: str | None, user: OsUser | None) -> Path:
    """One that only the cluster's user (and root) can enter, with a path that fits into a socket address.

    It is this cluster's alone. Called when no server of ours runs, so what lies in it is stale.
    """
    found = _socket_directory(place, remembered, user)
    for left in found.glob(".s.PGSQL.*"):
        left.unlink()  # of a killed server; its lock may name a number that now is somebody else's
    return found


def remove_short_directory(remembered: str) -> None:
    """The one that was made outside of the home for the length of its path, if there was one."""
    path = Path(remembered)
    if path.parent == SHORT and path.name.startswith(SHORT_PREFIX) and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)


def _socket_directory(place: Path, remembered: str | None, user: OsUser | None) -> Path:
    wanted = place / "socket"
    if _fits(wanted):
        if not wanted.exists():
            wanted.mkdir(mode=0o700)
            give(user, wanted)
        return wanted
    if remembered is not None and _private(Path(remembered), user):
        return Path(remembered)
    made = Path(tempfile.mkdtemp(prefix=SHORT_PREFIX, dir=SHORT))  # 0700, and the name cannot be guessed
    give(user, made)
    return made


def _fits(path: Path) -> bool:
    text = str(path)
    return len(os.fsencode(text)) + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES_MAX and not set(text) & set(',"\n')


def _private(path: Path, user: OsUser | None) -> bool:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    owner = os.geteuid() if user is None else user.uid
    return path.is_dir() and not path.is_symlink() and status.st_uid == owner and status.st_mode & 0o077 == 0


def _beside(home: Home) -> Path:
    place = BESIDE / f"{_digest(home)}-{home.id[:8]}"
    try:
        BESIDE.mkdir(mode=0o755, exist_ok=True)
        if not place.exists():
            place.mkdir(mode=0o711)
            place.chmod(0o711)
        write_json(place / MARKER, {"home": str(home.root), "id": home.id})
    except OSError as error:
        raise StackError(
            StackProblem.HOME_NOT_WRITABLE,
            f"The user that PostgreSQL runs as cannot reach {home.root}, and {place} cannot be made: {error.strerror}.",
            "Set KESSAI_HOME to a directory that every user can pass into, such as one in /srv.",
        ) from error
    return place


def _digest(home: Home) -> str:
    return hashlib.sha256(os.fsencode(home.root)).hexdigest()[:16]


def _home_of(place: Path) -> str | None:
    marker = read_json(place / MARKER)
    return None if marker is None else str(marker.get("home"))
