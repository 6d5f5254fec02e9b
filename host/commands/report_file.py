"""The file that a report is kept in: found fit before anything is run, and written once.

Invariant: a report that is there is evidence, and stays, also one that somebody else has put there meanwhile. Where
none is written nothing is left, whatever ended what was run: the directory stands from the writing on.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from host.commands.exits import CommandError, Exit
from host.commands.output import say
from host.stack.files import write_new

OURS, ANYBODYS = 0o600, 0o644  # who reads it


def place(directory: Path, name: str, mode: int) -> Path:
    """Name the report's file, and try that its directory can be made and written to; raises CommandError."""
    file = directory / name
    try:
        made = [one for one in (directory, *directory.parents) if not one.exists()]
        _make(directory, mode)
        there = file.exists()
        tempfile.TemporaryFile(dir=directory).close()
        for one in made:
            with suppress(OSError):  # somebody put something into it
                one.rmdir()
    except OSError as error:
        raise _unwritable(directory, error) from error
    if there:
        raise _there(file, "Nothing was run.")
    return file


def write(file: Path, document: dict[str, Any], mode: int) -> None:
    """Write it whole, as `--json` prints it; raises CommandError."""
    try:
        _make(file.parent, mode)
    except OSError as error:
        raise _unwritable(file, error) from error
    try:
        write_new(file, json.dumps(document, ensure_ascii=False, indent=2) + "\n", mode)
    except FileExistsError as error:
        raise _there(file, "It came while this ran, and was left as it is.") from error
    except OSError as error:
        raise _unwritable(file, error) from error


@contextmanager
def written(file: Path | None, document: dict[str, Any], mode: int) -> Iterator[None]:
    """Write it where one is wanted, then show it in the block: what cannot be kept any more is not lost too.

    Raises CommandError, after the block.
    """
    unkept: CommandError | None = None
    try:
        if file is not None:
            write(file, document, mode)
    except CommandError as error:
        unkept = error
    yield
    if unkept is not None:
        raise unkept
    if file is not None:
        say(f"report  {file}")


def _make(directory: Path, mode: int) -> None:
    directory.mkdir(mode=0o700 if mode == OURS else 0o755, parents=True, exist_ok=True)


def _there(file: Path, so: str) -> CommandError:
    return CommandError(Exit.BAD_INPUT, f"{file} is there already", f"{so} Name another directory with --report.")


def _unwritable(path: Path, error: OSError) -> CommandError:
    what = f"no report can be written to {path}: {error.strerror}"
    return CommandError(Exit.BAD_INPUT, what, "Name a directory of your own with --report.")
