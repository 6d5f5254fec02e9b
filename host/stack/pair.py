"""The two databases made anew from a template of them, in a home where nothing real lies: an evaluation's.

    host, tools ──keep_template──► host_template, tools_template ──fresh_pair──► host, tools

Invariant: a template is renamed and never connected to again, so each pair begins as the migrations and the packaged
data left it. What is dropped is a copy.
"""

from __future__ import annotations

from psycopg import AsyncConnection, sql

from host.stack.postgres import Cluster, Server
from host.stack.provision import provision
from host.stack.roles import LIMITED, OWNER, Side
from host.stack.serving import ADMIN


async def keep_template(cluster: Cluster, server: Server) -> None:
    """Put the pair that was just made aside; nobody may be connected to it."""
    async with await _admin(cluster, server) as admin:
        for side in Side:
            await admin.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(side), _template(side)))


async def fresh_pair(cluster: Cluster, server: Server) -> None:
    """Copy the template; whoever is still connected to an earlier copy is cut off, and the copy goes."""
    async with await _admin(cluster, server) as admin:
        for side in Side:
            await admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(side)))
            await admin.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy OWNER {}").format(
                    sql.Identifier(side), _template(side), sql.Identifier(OWNER[side])
                )
            )
    await provision(cluster, server)  # rights and bounds belong to a database's name, and are not copied
    async with await _admin(cluster, server) as admin:
        for side in Side:
            roles = sql.SQL(", ").join(map(sql.Identifier, LIMITED[side]))
            await admin.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(sql.Identifier(side), roles))


async def _admin(cluster: Cluster, server: Server) -> AsyncConnection[tuple[object, ...]]:
    target = server.conninfo("postgres", ADMIN, password=cluster.admin_password())
    return await AsyncConnection.connect(target, autocommit=True)


def _template(side: Side) -> sql.Identifier:
    return sql.Identifier(f"{side}_template")
