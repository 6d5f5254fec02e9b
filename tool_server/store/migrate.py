"""Brings a database to this release's schema: forward only, each file once, all of it in one transaction.

Invariant: a database that is newer, or whose applied files differ from ours, is left untouched.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import AsyncConnection

from tool_server.errors import ToolServerError
from tool_server.store.roles import Roles, close_database, ensure_roles

_FILE = re.compile(r"^(\d{4})_[a-z_]+\.sql$")
_LOCK = 7_265_637_401  # any number that nobody else locks in this database


class NotMigratableError(ToolServerError):
    """The database cannot be brought to this release's schema."""


class NewerSchemaError(NotMigratableError):
    """The database belongs to a newer release."""

    def __init__(self, found: int, newest: int) -> None:
        self.found, self.newest = found, newest
        super().__init__(
            f"the database has schema {found}, this release knows {newest}; "
            "run the newer release, or name another database"
        )


class AppliedFileChangedError(NotMigratableError):
    """A migration that was applied is not the file that we have."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} was applied in another form: this database was made by another version of the program; "
            "run that version, or name another database in KESSAI_TOOLS_MIGRATE_DSN"
        )


@dataclass(frozen=True, slots=True)
class Migration:
    """One file."""

    version: int
    name: str
    sql: LiteralString
    sha256: str


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a run did."""

    version: int
    applied: tuple[str, ...]
    roles: Roles


def _read() -> tuple[Migration, ...]:
    found = []
    for file in sorted(Path(__file__).with_name("migrations").glob("*.sql")):
        match = _FILE.match(file.name)
        assert match is not None, f"{file.name} is no name of a migration"  # noqa: S101 — our own files
        text = file.read_text(encoding="utf-8")
        digest = hashlib.sha256(text.encode()).hexdigest()
        found.append(Migration(int(match[1]), file.name, text, digest))
    return tuple(found)


MIGRATIONS = _read()
NEWEST = MIGRATIONS[-1].version


async def migrate(dsn: str, passwords: Path | None) -> Migrated:
    """Apply what is missing, as the owner; raises NotMigratableError, RolesError, psycopg.OperationalError."""
    async with await AsyncConnection.connect(dsn, autocommit=False) as connection:
        try:
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            known = await _known(connection)
            _compare(known)
            roles = await ensure_roles(connection, passwords)
            await close_database(connection)
            missing = [migration for migration in MIGRATIONS if migration.version not in known]
            for migration in missing:
                await _apply(connection, migration)
        except psycopg.errors.InsufficientPrivilege as error:
            raise NotMigratableError(f"{error.diag.message_primary}; migrate as the owner of the database") from error
    return Migrated(NEWEST, tuple(migration.name for migration in missing), roles)


async def make_roles(dsn: str, passwords: Path | None) -> Roles:
    """Make the roles and their passwords alone: a restored dump grants to them, so it wants them first."""
    async with await AsyncConnection.connect(dsn, autocommit=False) as connection:
        return await ensure_roles(connection, passwords)


async def _known(connection: AsyncConnection) -> dict[int, str]:
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS public.schema_version (version integer PRIMARY KEY, name text NOT NULL,"
        " sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
    )
    cursor = await connection.execute("SELECT version, sha256 FROM public.schema_version ORDER BY version")
    return dict(await cursor.fetchall())


def _compare(known: dict[int, str]) -> None:
    found = max(known, default=0)
    if found > NEWEST:
        raise NewerSchemaError(found, NEWEST)
    for migration in MIGRATIONS:
        if known.get(migration.version, migration.sha256) != migration.sha256:
            raise AppliedFileChangedError(migration.name)


async def _apply(connection: AsyncConnection, migration: Migration) -> None:
    await connection.execute(migration.sql)
    await connection.execute(
        "INSERT INTO public.schema_version (version, name, sha256) VALUES (%s, %s, %s)",
        (migration.version, migration.name, migration.sha256),
    )
