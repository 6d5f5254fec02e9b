"""Public keys to believe signatures by: files that the operator names, or what a home of this machine has published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from host.commands.exits import CommandError, Exit
from host.evaluation.place import home_of
from host.sealing import merged, read_keys
from host.settings import Settings, home_root
from host.stack.home import existing_home
from host.stack.keys import key_files
from shared_contracts.evaluation_report import EvaluationReport
from shared_contracts.evaluation_signature import unsigned
from shared_contracts.seal import SealKeys, UnsealedError


def read_key_files(files: Sequence[Path]) -> SealKeys:
    """Read them all; raises CommandError."""
    return merged([_read(file) for file in files])


def unsigned_here(settings: Settings, report: EvaluationReport, files: Sequence[Path]) -> str | None:
    """Say why a report is not one that was signed by a key of these files, or of this machine's evaluations."""
    if not files:
        root = home_of(home_root(settings))
        home = existing_home(root)
        if home is None:
            return f"{root} is gone, and its seal-keys.json was not named with --keys"
        files = [key_files(home).seal_keys]
    return unsigned(report, read_key_files(files))


def _read(file: Path) -> SealKeys:
    try:
        return read_keys(file)
    except UnsealedError as error:
        mend = "Name a seal-keys.json: it lies in keys/ of a home, or in the directory that kessai secrets made."
        raise CommandError(Exit.BAD_INPUT, f"{file} cannot be used: {error}", mend) from error
