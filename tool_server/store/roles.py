"""The database roles of the tool server: one per tool family, one that seals the log, and an auditor who only reads.

Passwords come from a directory with one file per role, and reach the server as SCRAM verifiers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from psycopg import AsyncConnection, errors, sql

from shared_contracts.contract import FAMILIES
from shared_contracts.named_file import Unread, read_text
from tool_server.errors import ToolServerError

ROLES = (*(f"tools_{family}" for family in FAMILIES), "tools_sealer", "tools_auditor")
_RIGHTS = sql.SQL("LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT NOREPLICATION NOBYPASSRLS")
_CONNECTIONS_MAX = 100  # per role, over all replicas: one family that runs wild leaves room for the others


class RolesError(ToolServerError):
    """A role is missing and may not be made, or a password file cannot be read."""


@dataclass(frozen=True, slots=True)
class Roles:
    """What was done to roles. `left` are roles whose password this owner may not set."""

    created: tuple[str, ...]
    passwords_set: tuple[str, ...]
    left: tuple[str, ...]


async def ensure_roles(connection: AsyncConnection, passwords: Path | None) -> Roles:
    """Create the roles that are missing and set the passwords that are given."""
    found = await (
        await connection.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", (list(ROLES),))
    ).fetchall()
    existing = {str(name) for (name,) in found}
    created = tuple(role for role in ROLES if role not in existing)
    for role in created:
        await _create(connection, role)
    given = (
        {} if passwords is None else {role: text for role in ROLES if (text := _password(passwords, role)) is not None}
    )
    settled = {role: await _set_password(connection, role, text) for role, text in given.items()}
    return Roles(
        created,
        tuple(role for role, done in settled.items() if done),
        tuple(role for role, done in settled.items() if not done),
    )


async def close_database(connection: AsyncConnection) -> None:
    """Let nobody but our roles connect, and none of them make temporary tables; let all ask for the schema."""
    database = sql.Identifier(connection.info.dbname)
    roles = sql.SQL(", ").join(sql.Identifier(role) for role in ROLES)
    await connection.execute(sql.SQL("REVOKE CONNECT, TEMPORARY ON DATABASE {} FROM PUBLIC").format(database))
    await connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, roles))
    # anew, so that a role that a later release brought stands in the same place as where it was there from the start:
    # a restore holds the rights against those of a fresh database word by word
    await connection.execute(sql.SQL("REVOKE ALL ON public.schema_version FROM {}").format(roles))
    await connection.execute(sql.SQL("GRANT SELECT ON public.schema_version TO {}").format(roles))


async def _create(connection: AsyncConnection, role: str) -> None:
    try:
        async with connection.transaction():
            await connection.execute(
                sql.SQL("CREATE ROLE {} {} CONNECTION LIMIT {}").format(
                    sql.Identifier(role), _RIGHTS, sql.Literal(_CONNECTIONS_MAX)
                )
            )
    except errors.InsufficientPrivilege as error:
        raise RolesError(
            f"the role {role} is missing and this owner may not make it; give the owner CREATEROLE, or make the role"
        ) from error
    except (errors.DuplicateObject, errors.UniqueViolation):
        return  # another database of this server was migrated at the same time


async def _set_password(connection: AsyncConnection, role: str, password: str) -> bool:
    verifier = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    try:
        async with connection.transaction():
            await connection.execute(
                sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(verifier))
            )
    except errors.InsufficientPrivilege:
        return False
    return True


def _password(directory: Path, role: str) -> str | None:
    if not directory.is_dir():
        raise RolesError(f"{directory}: there is no such directory; see KESSAI_TOOLS_ROLE_PASSWORDS")
    text = read_text(directory / role, secret=True)
    if isinstance(text, Unread):
        if text.missing:
            return None
        raise RolesError(f"{directory / role}: the password cannot be read: {text.why}")
    if text.strip() == "":
        raise RolesError(f"{directory / role}: the file is empty; write the password of the role into it")
    return text.strip()
