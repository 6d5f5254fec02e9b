"""What a backup's directory says of itself: manifest.json beside host.dump and tools.dump.

A backup is used only where every byte of its dumps is what was written; nothing of it is a secret of a home, so that
it gives nobody who reads it a key or a password. What customers said and ordered is in it all the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from host.stack.errors import StackError, StackProblem
from host.stack.roles import Side
from shared_contracts.base import Contract, Moment
from shared_contracts.named_file import Unread, open_file, read_text, unnameable
from shared_contracts.told import place

NAME = "manifest.json"
FORMAT: Final = 1
PART_BYTES = 4 * 2**20  # copied at a time; in between it can be interrupted


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
    """Read the manifest and look at the dumps' lengths; a `StackError` says what is not as it was written."""
    why = unnameable(directory)
    if why is not None:
        raise unusable(directory, why)
    if not os.path.isdir(directory):  # noqa: PTH112 - where we may not look it says no, and raises nothing
        raise unusable(directory, "there is no such directory")
    backup = Backup(directory, _manifest(directory))
    for side in Side:
        os.close(_opened(backup, side))
    return backup


async def copy_dump(backup: Backup, side: Side, to: Path) -> None:
    """Copy a dump and check every byte of the copy on its way: what is restored is what was checked, whoever writes to
    the backup meanwhile. A `StackError` where it is not the one that was written, an `OSError` of the new file.
    """
    wanted, digest, length = backup.manifest.of(side), hashlib.sha256(), 0
    new = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(new, "wb") as target, os.fdopen(_opened(backup, side), "rb") as source:

        def copy_part() -> int:
            part = source.read(PART_BYTES)
            digest.update(part)
            return target.write(part)

        while length <= wanted.bytes and (copied := await asyncio.to_thread(copy_part)):
            length += copied
    if (length, digest.hexdigest()) != (wanted.bytes, wanted.sha256):
        name = dump_file(backup.directory, side).name
        raise unusable(backup.directory, f"{name} has another content than the one that was written")


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
        where = place(first["loc"])
        raise unusable(directory, f"its {NAME} does not hold what it should: {where}: {first['msg']}") from None


def _opened(backup: Backup, side: Side) -> int:
    file, wanted = dump_file(backup.directory, side), backup.manifest.of(side)
    descriptor = open_file(file)
    if isinstance(descriptor, Unread):
        why = "is not there" if descriptor.missing else f"cannot be read: {descriptor.why}"
        raise unusable(backup.directory, f"{file.name} {why}")
    length = os.fstat(descriptor).st_size
    if length == wanted.bytes:
        return descriptor
    os.close(descriptor)
    raise unusable(backup.directory, f"{file.name} has {length} bytes, and {wanted.bytes} were written")
