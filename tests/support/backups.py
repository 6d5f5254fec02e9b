"""Homes with something in them, backups of them, and what a dump says."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import AsyncConnection

from host.domain.acting import By
from host.stack.assembly import StackChoice, StackParts, owner_dsn
from host.stack.backup import back_up
from host.stack.binaries import wheel_directory
from host.stack.manifest import Backup
from host.stack.restore import restore
from host.stack.roles import Side
from host.stack.stack import temporary_parts
from host.store.stops import EVERYTHING, engage
from tests.support.embedded import PLAIN

CHOICE = StackChoice(PLAIN, tool_server_port=None, tool_server_settings={}, worker_settings={})
OF_EACH_DUMP = ("\\restrict", "\\unrestrict")  # a key that pg_dump makes up each time


def backed_up(root: Path, directory: Path) -> Backup:
    return asyncio.run(back_up(root, CHOICE, directory))


def restored(root: Path, directory: Path) -> Backup:
    return asyncio.run(restore(root, CHOICE, directory, seal))


async def seal(dsn: str, found: Backup) -> None:
    """As the command does it."""
    async with await AsyncConnection.connect(dsn) as connection:
        await engage(connection, EVERYTHING, By("test", "test", None), str(found.directory), "restore")


def with_parts(root: Path, work: Callable[[StackParts], Any]) -> Any:
    """Do something while the databases run."""

    async def run() -> Any:
        async with temporary_parts(root, CHOICE) as parts:
            return work(parts)

    return asyncio.run(run())


def told(parts: StackParts, side: Side, query: LiteralString) -> list[tuple[Any, ...]]:
    """What the side's owner is told."""
    with psycopg.connect(owner_dsn(parts, side), autocommit=True) as connection:
        cursor = connection.execute(query)
        return cursor.fetchall() if cursor.description is not None else []


def text_of(dump: Path, part: str) -> list[str]:
    """The part `schema`, with owners and grants, or the part `data`, as SQL, line by line."""
    argv = [wheel_directory() / "pg_restore", f"--{part}-only", "--file=-", dump]
    lines = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line for line in lines if not line.startswith(OF_EACH_DUMP)]


def rewritten(directory: Path, **changes: Any) -> None:
    """Another manifest, by somebody who knows how."""
    file = directory / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")


def replaced(directory: Path, side: Side, content: bytes) -> None:
    """Another dump, and a manifest that agrees with it."""
    (directory / f"{side}.dump").write_bytes(content)
    manifest = json.loads((directory / "manifest.json").read_text("utf-8"))
    agreed = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    rewritten(directory, **{side: manifest[side] | agreed})
