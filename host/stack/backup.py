"""A backup of both databases of this machine's stack, taken while it works or while it is down.

    DIR/host.dump   DIR/tools.dump   DIR/manifest.json        (pg_dump's custom format, one snapshot each)

The host's database is dumped first, so that its ledger is never ahead of the effects: an intent in it whose effect came
later is in the tool server's dump, and is found there by its key after a restore. In the other order the ledger could
say of a return that it was made, and the tool server know nothing of it.

DIR comes to be whole or not at all: everything is written beside it and renamed. Keys, role passwords and the Maildir
are not part of it.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import LiteralString, cast

from psycopg import AsyncConnection

from host.stack import assembly
from host.stack.assembly import StackChoice, StackParts
from host.stack.binaries import find_program
from host.stack.errors import StackError, StackProblem
from host.stack.files import write_json
from host.stack.home import PRIVATE, Home, existing_home, unfinished
from host.stack.locks import Hold
from host.stack.manifest import FORMAT, NAME, Backup, Dump, Manifest, dump_file, dump_of
from host.stack.place import remembered_place
from host.stack.processes import run_to_end
from host.stack.roles import Side
from host.stack.stack import temporary_parts
from shared_contracts.base import dump as document
from shared_contracts.named_file import unnameable

DUMP_SECONDS_MAX = 6 * 3600.0
FILE_MODE = 0o600
PATH_BYTES = 128  # of what is written beside it, and of a file in it
SERVER: LiteralString = "SELECT current_setting('server_version'), current_setting('server_version_num')::int / 10000"
SCHEMA = "SELECT name FROM schema_version ORDER BY name"
# Read after the dumps: no transaction that is in them has a greater number.
EPOCH: LiteralString = "SELECT (pg_snapshot_xmax(pg_current_snapshot())::text::numeric / 4294967296)::bigint"


async def back_up(root: Path, choice: StackChoice, directory: Path) -> Backup:
    """Write a backup; a `StackError` says why there is none, and then nothing is left of it."""
    home = _filled(root)
    target = _new_place(directory, home)
    async with temporary_parts(root, choice) as parts:
        hold = Hold(home.run / "backup.lock")
        try:
            if not hold.exclusive():
                raise StackError(StackProblem.HOME_BUSY, "Another backup of this home is under way.", "Wait for it.")
            return await _write(parts, target)
        except OSError as error:
            raise place_unusable(target, f"{error.strerror} ({error.filename})") from error
        finally:
            hold.close()


async def _write(parts: StackParts, target: Path) -> Backup:
    beside = target.with_name(f".kessai-{parts.home.id}.unfinished")  # as long as any name may be
    _remove(beside)  # of a backup that was killed; the lock says that nobody writes it any more
    beside.mkdir(mode=PRIVATE)
    try:
        beside.chmod(PRIVATE)  # whatever the umask was
        manifest = await _fill(parts, beside)
        write_json(beside / NAME, document(manifest))
        _to_disk(beside)
        beside.rename(target)  # in the place of an empty directory too, and of nothing else
        _to_disk(target.parent)
    except BaseException:  # an interruption too: it goes on from here, and no customer's data is left lying about
        _remove(beside)
        raise
    return Backup(target, manifest)


async def _fill(parts: StackParts, directory: Path) -> Manifest:
    version, major = await _ask(parts, Side.HOST, SERVER)
    program = find_program("pg_dump", parts.choice.postgres.bin, cast("int", major))
    dumps = {side: await _dump(parts, program, side, directory) for side in (Side.HOST, Side.TOOLS)}
    (epoch,) = await _ask(parts, Side.HOST, EPOCH)
    return Manifest(
        format=FORMAT, made_at=datetime.now(UTC).replace(microsecond=0), kessai=importlib.metadata.version("kessai"),
        postgresql=cast("str", version), postgresql_major=cast("int", major), epoch=cast("int", epoch),
        host=dumps[Side.HOST], tools=dumps[Side.TOOLS],
    )  # fmt: skip


async def _dump(parts: StackParts, program: Path, side: Side, directory: Path) -> Dump:
    async with await AsyncConnection.connect(assembly.owner_dsn(parts, side)) as connection:
        rows = await (await connection.execute(SCHEMA)).fetchall()
    file = dump_file(directory, side)
    await run_to_end(parts.home, assembly.dump(parts, side, program, file), DUMP_SECONDS_MAX)
    file.chmod(FILE_MODE)
    return await asyncio.to_thread(dump_of, file, tuple(str(name) for (name,) in rows))


async def _ask(parts: StackParts, side: Side, query: LiteralString) -> tuple[object, ...]:
    async with await AsyncConnection.connect(assembly.owner_dsn(parts, side)) as connection:
        row = await (await connection.execute(query)).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM
    return row


def _filled(root: Path) -> Home:
    half_made = unfinished(root)
    if half_made is not None:
        raise half_made
    home = existing_home(root)
    place = None if home is None else remembered_place(home)
    if home is None or place is None or not (place / "data" / "PG_VERSION").exists():
        raise StackError(
            StackProblem.HOME_EMPTY,
            f"There is no database in {root}, so nothing to back up.",
            "Set KESSAI_HOME to the home that you mean; kessai status says which one is looked at.",
        )
    return home


def _new_place(directory: Path, home: Home) -> Path:
    """The real path, after a look that tells most mistakes before anything is started."""
    why = unnameable(directory, PATH_BYTES)
    if why is not None:
        raise place_unusable(directory, why)
    target = Path(os.path.realpath(directory))
    if target.is_relative_to(home.root):
        raise place_unusable(target, f"it lies in the home {home.root}, and would be lost with it")
    try:
        if target.exists() and not target.is_dir():
            raise place_unusable(target, "it is a file")
        if target.exists() and (target.is_mount() or any(target.iterdir())):
            raise place_unusable(target, "there is something in it, or it is a disk's own directory")
    except OSError as error:
        raise place_unusable(target, f"we cannot look into it ({error.strerror})") from error
    if not target.parent.is_dir():
        raise place_unusable(target, f"there is no directory {target.parent}")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise place_unusable(target, f"we may not write to {target.parent}, where it is to be made")
    return target


def place_unusable(target: Path, why: str) -> StackError:
    """The error for a place that no backup can be written to."""
    return StackError(
        StackProblem.BACKUP_PLACE_UNUSABLE,
        f"No backup can be written to {target}: {why}.",
        "Name a directory that is new, or empty, in one of your own on a disk with room. Nothing was written.",
    )


def _to_disk(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(directory: Path) -> None:
    if directory.exists():
        shutil.rmtree(directory)
