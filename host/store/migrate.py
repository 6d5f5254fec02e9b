"""Bring a database to this program's schema: forward only, one transaction, one migrator at a time.

Every file is remembered with its digest; a database that a newer program has migrated is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
from procrastinate.schema import SchemaManager
from psycopg import sql

from host.domain.workflow import Workflow, legal_moves
from host.store import rollout
from host.store.asked import keep_asked
from host.store.packaged import QUEUE, packaged
from shared_contracts.contract import Tool
from shared_contracts.named_file import Unread, read_text
from shared_contracts.tools import TOOLS

ROLES = ("host_rt", "host_sealer", "host_auditor")
WAIVED = "for trying out and for tests: said when the database was made"
_LOCK = 118058463519594  # beside stop_lock_key() of the first migrations


class NewerSchemaError(Exception):
    """The database was migrated by another program, a newer one as a rule; run that one, or restore a backup."""


def migrate(
    dsn: str,
    workflows: tuple[Workflow, ...],
    passwords: Path | None = None,
    waived_by: str | None = None,
    tools: Mapping[str, Tool] = TOOLS,
) -> tuple[str, ...]:
    """Apply what is missing and give the names of what was applied; needs the owner's DSN.

    `waived_by` says, in a database where nobody has said anything of a rollout, that none runs.
    """
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        _close(connection)
        _make_roles(connection, passwords)
        applied = _apply(connection)
        for workflow in workflows:
            _register(connection, workflow)
        keep_asked(connection, workflows, tools.values())
        if waived_by is not None:
            rollout.waive_anew(connection, waived_by, WAIVED)
        return applied


def make_roles(dsn: str, passwords: Path | None = None) -> None:
    """Make the roles and their passwords alone: a restored dump grants to them, so it wants them first."""
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        _close(connection)
        _make_roles(connection, passwords)


def _close(connection: psycopg.Connection[Any]) -> None:
    """Let nobody but our roles connect, and nobody make temporary tables: one could stand before a table of ours."""
    database = sql.Identifier(connection.info.dbname)
    connection.execute(sql.SQL("REVOKE CONNECT, TEMPORARY ON DATABASE {} FROM PUBLIC").format(database))


def _make_roles(connection: psycopg.Connection[Any], passwords: Path | None) -> None:
    for role in ROLES:
        known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
        name = sql.Identifier(role)
        if known is None:
            connection.execute(
                sql.SQL(
                    "CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT CONNECTION LIMIT 100"
                ).format(name)
            )
        database = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, name))
        secret = None if passwords is None else _password(passwords, role)
        if secret is not None:
            verifier = connection.pgconn.encrypt_password(secret.encode(), role.encode(), b"scram-sha-256").decode()
            connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(name, sql.Literal(verifier)))


class PasswordError(Exception):
    """A role's password is not there, or cannot be read; see KESSAI_ROLE_PASSWORDS."""


def _password(directory: Path, role: str) -> str | None:
    """Read a role's password; a role without a file keeps what it has, a directory that is not there is a mistake."""
    file = directory / role
    if not directory.is_dir():
        raise PasswordError(f"{directory}: there is no such directory; see KESSAI_ROLE_PASSWORDS")
    secret = read_text(file, secret=True)
    if isinstance(secret, Unread):
        if secret.missing:
            return None
        raise PasswordError(f"{file}: the role's password cannot be read: {secret.why}")
    if secret.strip() == "":
        raise PasswordError(f"{file}: the file is empty; write the role's password into it")
    return secret.strip()


def _apply(connection: psycopg.Connection[Any]) -> tuple[str, ...]:
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_version (name text PRIMARY KEY, sha256 text NOT NULL, "
        "at timestamptz NOT NULL DEFAULT now())"
    )
    done: dict[str, str] = dict(connection.execute("SELECT name, sha256 FROM schema_version").fetchall())
    files = packaged()
    if unknown := set(done) - {file.name for file in files} - {QUEUE}:
        raise NewerSchemaError(f"the database knows {sorted(unknown)}, which this program does not")
    if QUEUE not in done:
        connection.execute(SchemaManager.get_schema())
        connection.execute("INSERT INTO schema_version (name, sha256) VALUES (%s, '-')", (QUEUE,))
    applied = []
    for file in files:
        if file.name in done:
            if done[file.name] != file.sha256:
                raise NewerSchemaError(
                    f"{file.name} was applied with another content: this database was made by another version of the "
                    "program. Run that version, or name another database in KESSAI_MIGRATE_DSN; of this machine's own "
                    "stack, kessai empty makes a new one (and deletes what is in it)."
                )
            continue
        connection.execute(file.text)
        connection.execute("INSERT INTO schema_version (name, sha256) VALUES (%s, %s)", (file.name, file.sha256))
        applied.append(file.name)
    return tuple(applied)


def _register(connection: psycopg.Connection[Any], workflow: Workflow) -> None:
    """Write the kind's legal moves; a release never loses one, so histories keep what they refer to."""
    rows = [(workflow.kind, workflow.release, *move) for move in sorted(legal_moves(workflow))]
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO legal_transition (kind, release, control_from, control_to, business_from, business_to, "
            "event, actor) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            rows,
        )
        cursor.executemany(
            "INSERT INTO expected_effect (kind, release, success, name) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [(workflow.kind, workflow.release, workflow.success, name) for name in workflow.effects],
        )
