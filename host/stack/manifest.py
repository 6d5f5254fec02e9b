"""What a backup's directory says of itself: manifest.json beside host.dump and tools.dump.

A backup is used only where every byte of its dumps is what was written; nothing of it is a secret of a home, so that
it gives nobody who reads it a key or a password. What customers said and ordered is in it all the same.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from host.stack.errors import StackError, StackProblem
from host.stack.roles import Side
from shared_contracts.base import Contract, Moment
from shared_contracts.named_file import Unread, read_text

NAME = "manifest.json"
FORMAT: Final = 1


class Dump(Contract):
    """One database: its file's length and SHA-256, and the migrations that it had seen."""

    bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    schema_versions: tuple[str, ...]


class Manifest(Contract):
    """`epoch` counts how often the cluster's transaction numbers have wrapped; a restored one begins above it."""

    format: Literal[1]
    made_at: Moment
    kessai: str
    postgresql: str
    postgresql_major: Annotated[int, Field(ge=1)]
    epoch: Annotated[int, Field(ge=0, lt=2**31)]
    host: Dump
    tools: Dump

    def of(self, side: Side) -> Dump:
        """The dump of one side."""
        return self.host if side is Side.HOST else self.tools


@dataclass(frozen=True, slots=True)
class Backup:
    """A whole one."""

    directory: Path
    manifest: Manifest


def dump_file(directory: Path, side: Side) -> Path:
    """Where a side's dump lies."""
    return directory / f"{side}.dump"


def dump_of(file: Path, schema_versions: tuple[str, ...]) -> Dump:
    """What is written down of a file that is complete."""
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
        return Dump(bytes=content.tell(), sha256=digest, schema_versions=schema_versions)


def read_backup(directory: Path) -> Backup:
    """Read the manifest and every byte that it speaks of; a `StackError` says what is not as it was written."""
    if not directory.is_dir():
        raise unusable(directory, "there is no such directory")
    try:
        manifest = _manifest(directory)
        for side in Side:
            _compare(directory, side, manifest.of(side))
    except OSError as error:
        raise unusable(directory, f"{error.filename}: {error.strerror}") from error
    return Backup(directory, manifest)


def unusable(directory: Path, why: str) -> StackError:
    """The error for a directory that cannot be restored from."""
    return StackError(
        StackProblem.BACKUP_UNUSABLE,
        f"{directory} cannot be restored from: {why}.",
        "Nothing was made. Name a directory that kessai backup has written, as it was written.",
    )


def _manifest(directory: Path) -> Manifest:
    file = directory / NAME
    text = read_text(file)
    if isinstance(text, Unread):
        no_backup = f"it has no {NAME}, so it is no backup, or not a whole one"
        raise unusable(directory, no_backup if text.missing else f"its {NAME} cannot be read: {text.why}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise unusable(directory, f"its {NAME} is no JSON") from None
    if not isinstance(found, dict):
        raise unusable(directory, f"its {NAME} is no JSON object")
    if isinstance(found.get("format"), int) and found["format"] > FORMAT:
        raise unusable(directory, f"a newer program wrote it (format {found['format']}, this one reads {FORMAT})")
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise unusable(directory, f"its {NAME} does not hold what it should: {where}: {first['msg']}") from None


def _compare(directory: Path, side: Side, wanted: Dump) -> None:
    file = dump_file(directory, side)
    if not file.is_file():
        raise unusable(directory, f"{file.name} is not there")
    length = file.stat().st_size
    if length != wanted.bytes:
        raise unusable(directory, f"{file.name} has {length} bytes, and {wanted.bytes} were written")
    if dump_of(file, wanted.schema_versions) != wanted:
        raise unusable(directory, f"{file.name} has another content than the one that was written")
