"""Where everything of one machine's stack lies, and with which rights.

Only directories that we made get a mode from us; a parent's mode, owner and content are left alone.
Nothing is taken for a home that does not carry our marker, and one whose marker says that it is unfinished
is opened by nobody: what is in it may be half of something.

    postgres/   the cluster, unless its user cannot get here: see `place.py`
    passwords/  host/ tools/ owner/: one file per role, each side sees its own directory
    passfiles/  the same for libpq, one per role, so that no connection string carries a password
    keys/       signing.jwk (private), jwks.json (public), issuers.json
    mail/       a Maildir      run/  pids, ports, locks      logs/
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from host.stack.errors import StackError, StackProblem
from host.stack.files import read_json, refuse_shared, write_json

MARKER = ".kessai-home"
UNFINISHED = "unfinished"  # in the marker: what makes the home has not come to its end
PRIVATE, PASSABLE = 0o700, 0o711
# Everything that we ever make in a home, beside the marker.
ENTRIES = ("postgres", "passwords", "passfiles", "keys", "mail", "run", "logs")
SECRET_DIRECTORIES = (
    "passwords", "passwords/host", "passwords/tools", "passwords/owner", "passfiles", "keys", "run",
)  # fmt: skip


def default_root(xdg_data_home: str | None) -> Path:
    """The user's data directory; a relative XDG_DATA_HOME is ignored, as its specification says."""
    if xdg_data_home is not None and Path(xdg_data_home).is_absolute():
        return Path(xdg_data_home) / "kessai"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "kessai"
    return Path.home() / ".local" / "share" / "kessai"


@dataclass(frozen=True, slots=True)
class Home:
    """A prepared home: it exists, is ours and is writable. Made by `open_home` and `begin_home` alone."""

    root: Path
    id: str

    @property
    def postgres(self) -> Path:
        """The cluster, or the note of where it lies."""
        return self.root / "postgres"

    @property
    def passwords(self) -> Path:
        """One directory per side, one file per role."""
        return self.root / "passwords"

    @property
    def passfiles(self) -> Path:
        """One file per role, as libpq reads it."""
        return self.root / "passfiles"

    @property
    def keys(self) -> Path:
        """Signing key, public keys, trusted issuers."""
        return self.root / "keys"

    @property
    def mail(self) -> Path:
        """A Maildir."""
        return self.root / "mail"

    @property
    def run(self) -> Path:
        """What runs: pids, ports, locks."""
        return self.root / "run"

    @property
    def logs(self) -> Path:
        """One log per program."""
        return self.root / "logs"


def open_home(root: Path) -> Home:
    """Make or check the home; a `StackError` says what is wrong with it, and then nothing was changed."""
    return _prepared(root, _found_or_new)


def begin_home(root: Path) -> Home:
    """Make one where there is none. Until `finish_home` nothing works in it, also where its maker was killed."""
    return _prepared(root, _new)


def finish_home(home: Home) -> None:
    """Everything is in it: from here on it is a home as any other."""
    write_json(home.root / MARKER, {"id": home.id, "layout": 1})


def _prepared(root: Path, marked: Callable[[Path], str]) -> Home:
    root = Path(os.path.realpath(root))
    try:
        _make_root(root)
        with _alone(root):
            home = Home(root, marked(root))
        _refuse_foreign_owner(root)
        for name in SECRET_DIRECTORIES:
            _make_directory(root / name, PRIVATE)
            refuse_shared(root / name)
        _make_directory(home.postgres, PASSABLE if os.geteuid() == 0 else PRIVATE)
        for name in ("logs", "mail", "mail/tmp", "mail/new", "mail/cur"):  # which an owner may open to others
            _make_directory(root / name, PRIVATE)
        with tempfile.TemporaryFile(dir=home.run):
            return home
    except OSError as error:
        raise StackError(
            StackProblem.HOME_NOT_WRITABLE,
            f"The home {root} cannot be written: {error.strerror} ({error.filename}).",
            "Set KESSAI_HOME to a directory of your own on a disk with room.",
        ) from error


def existing_home(root: Path) -> Home | None:
    """The home that is there already; nothing is made or changed."""
    root = Path(os.path.realpath(root))
    found = _marked_id(root)
    return None if found is None else Home(root, found)


def unfinished(root: Path) -> StackError | None:
    """The error for a home that was begun and not finished; None for any other, and for none."""
    marker = read_json(root / MARKER) if root.is_dir() else None
    if marker is None or UNFINISHED not in marker:
        return None
    return StackError(
        StackProblem.HOME_UNFINISHED,
        f"A restore into {root} is under way, or did not come to its end: what is in it may be half of a system.",
        "Where kessai restore runs no more: kessai empty, then kessai restore again. The backup is as it was.",
    )


def taken(root: Path) -> StackError | None:
    """What keeps a restore from making a home here; nothing is changed."""
    root = Path(os.path.realpath(root))
    if existing_home(root) is None:
        return obstacle(root)
    half_made = unfinished(root)
    if half_made is not None:
        return half_made
    return StackError(
        StackProblem.HOME_TAKEN,
        f"{root} is a home already, and a restore mixes with nothing.",
        "Set KESSAI_HOME to another directory; or, if nothing in it is needed any more: kessai empty",
    )


def obstacle(root: Path) -> StackError | None:
    """What keeps a home from being made where there is none; nothing is changed."""
    nearest = next((path for path in (root, *root.absolute().parents) if path.exists()), root)
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        return StackError(
            StackProblem.HOME_NOT_WRITABLE,
            f"The home {root} cannot be made: {nearest} is no directory that we can write.",
            "Set KESSAI_HOME to a directory of your own on a disk with room.",
        )
    return foreign(root) if nearest == root and any(root.iterdir()) else None


def foreign(root: Path) -> StackError:
    """The error for a directory that belongs to something else."""
    return StackError(
        StackProblem.HOME_FOREIGN,
        f"{root} is no home of ours: it holds other things and no marker file {MARKER}.",
        "Set KESSAI_HOME to a new or an empty directory.",
    )


def _marked_id(root: Path) -> str | None:
    try:
        marker = read_json(root / MARKER)
    except NotADirectoryError:
        return None
    found = marker.get("id") if marker is not None else None
    return found if isinstance(found, str) else None


def _make_root(root: Path) -> None:
    """As root the cluster's user must pass through; the secrets lie in directories that it cannot enter."""
    if not root.exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        _make_directory(root, PASSABLE if os.geteuid() == 0 else PRIVATE)
    _refuse_foreign_owner(root)


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Two that make the same home at once must agree on whose marker it carries."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # held for one small write
        yield
    finally:
        os.close(descriptor)


def _found_or_new(root: Path) -> str:
    half_made = unfinished(root)
    if half_made is not None:
        raise half_made
    found = _marked_id(root)
    return _mark(root, {}) if found is None else found


def _new(root: Path) -> str:
    found = taken(root)
    if found is not None:
        raise found
    return _mark(root, {UNFINISHED: True})


def _mark(root: Path, more: dict[str, bool]) -> str:
    for entry in root.iterdir():
        if not entry.name.startswith(f".{MARKER}."):  # a marker whose writer was killed
            raise foreign(root)
        entry.unlink()
    new = uuid.uuid4().hex
    write_json(root / MARKER, {"id": new, "layout": 1} | more)
    return new


def _make_directory(path: Path, mode: int) -> None:
    try:
        path.mkdir(mode=mode)
    except FileExistsError:
        if path.is_symlink() or not path.is_dir():
            raise
        return
    path.chmod(mode)  # whatever the umask was; only ever on what we have just made


def _refuse_foreign_owner(root: Path) -> None:
    owner = root.stat().st_uid
    if owner != os.geteuid():
        raise StackError(
            StackProblem.HOME_NOT_OURS,
            f"The home {root} belongs to user id {owner}, and we run as {os.geteuid()}.",
            "Run as its owner, or set KESSAI_HOME to a directory of your own.",
        )
