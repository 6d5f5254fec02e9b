"""Two databases, each with an owner that can make its own limited roles, and nothing for PUBLIC.

May be run again at any time. Passwords reach the server as verifiers, so no log of its can hold one.
"""

from __future__ import annotations

from typing import LiteralString

from psycopg import AsyncConnection, sql

from host.stack.files import read_secret
from host.stack.postgres import Cluster, Server
from host.stack.roles import OWNER, Side
from host.stack.serving import ADMIN

Connection = AsyncConnection[tuple[object, ...]]

# An owner makes and alters the roles of its side; everything else that a superuser could do it cannot.
OWNER_RIGHTS: LiteralString = "LOGIN CREATEROLE NOSUPERUSER NOCREATEDB NOREPLICATION NOBYPASSRLS"

# For whoever connects; a migration may take longer than a step.
DATABASE_TIMEOUTS = {
    "statement_timeout": "5s",
    "lock_timeout": "2s",
    "idle_in_transaction_session_timeout": "10s",
    "transaction_timeout": "15s",
}
OWNER_TIMEOUTS = {"statement_timeout": "5min", "lock_timeout": "30s", "transaction_timeout": "15min"}
SINCE_17 = ("transaction_timeout",)

# What was killed while it did this may have left a statement that still runs; the session holds the lock until then.
ONE_AT_A_TIME: LiteralString = "SELECT pg_advisory_lock(hashtext('provision'))"


async def provision(cluster: Cluster, server: Server) -> None:
    """Databases and owner roles; the limited roles are made by each side's own migrations."""
    password = cluster.admin_password()
    target = server.conninfo("postgres", ADMIN, password=password)
    async with await AsyncConnection.connect(target, autocommit=True) as admin:
        await admin.execute(ONE_AT_A_TIME)
        for side in Side:
            await _owner(admin, OWNER[side], read_secret(cluster.home.passwords / "owner" / OWNER[side]))
            await _database(admin, side)
            await _timeouts(admin, side)
        for name in ("postgres", "template1"):
            await _close(admin, name)
        for side in Side:
            target = server.conninfo(side, ADMIN, password=password)
            async with await AsyncConnection.connect(target, autocommit=True) as inside:
                await inside.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")


async def provision_to_fill(cluster: Cluster, server: Server) -> None:
    """Both databases anew and empty. Until `provision` is called again their owners make no role and alter none: what
    a dump brings along runs as an owner.
    """
    target = server.conninfo("postgres", ADMIN, password=cluster.admin_password())
    async with await AsyncConnection.connect(target, autocommit=True) as admin:
        for side in Side:
            await admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(side)))
        await provision(cluster, server)
        for side in Side:
            await admin.execute(sql.SQL("ALTER ROLE {} NOCREATEROLE").format(sql.Identifier(OWNER[side])))


async def _owner(admin: Connection, role: str, password: str) -> None:
    known = await _exists(admin, "SELECT 1 FROM pg_roles WHERE rolname = %s", role)
    verifier = admin.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    verb: LiteralString = "ALTER" if known else "CREATE"
    await admin.execute(
        sql.SQL("{} ROLE {} {} PASSWORD {}").format(
            sql.SQL(verb), sql.Identifier(role), sql.SQL(OWNER_RIGHTS), sql.Literal(verifier)
        )
    )


async def _database(admin: Connection, side: Side) -> None:
    if not await _exists(admin, "SELECT 1 FROM pg_database WHERE datname = %s", side):
        await admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE template0 OWNER {}").format(
                sql.Identifier(side), sql.Identifier(OWNER[side])
            )
        )
    await _close(admin, side)


async def _close(admin: Connection, database: str) -> None:
    await admin.execute(
        sql.SQL("REVOKE CONNECT, TEMPORARY ON DATABASE {} FROM PUBLIC").format(sql.Identifier(database))
    )


async def _timeouts(admin: Connection, side: Side) -> None:
    database, owner = sql.Identifier(side), sql.Identifier(OWNER[side])
    scopes = (
        (sql.SQL("ALTER DATABASE {}").format(database), DATABASE_TIMEOUTS),
        (sql.SQL("ALTER ROLE {} IN DATABASE {}").format(owner, database), OWNER_TIMEOUTS),
    )
    for scope, timeouts in scopes:
        for name, value in timeouts.items():
            if admin.info.server_version >= 170_000 or name not in SINCE_17:
                await admin.execute(sql.SQL("{} SET {} = {}").format(scope, sql.Identifier(name), sql.Literal(value)))


async def _exists(admin: Connection, query: LiteralString, name: str) -> bool:
    return await (await admin.execute(query, (str(name),))).fetchone() is not None
