"""A cluster of a test's own, with the product's own settings, gone with everything of it afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from host.stack import postgres
from host.stack.home import open_home
from host.stack.postgres import Cluster, PostgresChoice, Server
from host.stack.removal import empty_home
from host.stack.serving import ADMIN

PLAIN = PostgresChoice(bin=None, os_user=None)


@contextmanager
def embedded(root: Path, choice: PostgresChoice = PLAIN) -> Iterator[Cluster]:
    """Not yet started."""
    home = open_home(root)
    try:
        yield postgres.cluster_of(home, choice)
    finally:
        asyncio.run(empty_home(root))


def started(cluster: Cluster) -> Server:
    return asyncio.run(postgres.start(cluster))


def stopped(cluster: Cluster) -> bool:
    return asyncio.run(postgres.stop(cluster.home))


def admin(cluster: Cluster, server: Server, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
    """The superuser's connection, over the socket."""
    dsn = server.conninfo(database, ADMIN, password=cluster.admin_password())
    return psycopg.connect(dsn, autocommit=True)


def one(connection: psycopg.Connection[tuple[object, ...]], query: str) -> object:
    """The first column of the first row."""
    row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]
