"""Connections to the host's database: how each is bounded, and their pool, which `host.database` opens."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool

from shared_contracts.keepalive import KEEPALIVE

Pool = AsyncConnectionPool[AsyncConnection[Any]]


def bounded(dsn: str, session: str = "", **more: int) -> str:
    """Give a connection string the bounds of its session, as PostgreSQL's options, and of a silent network."""
    given = conninfo_to_dict(dsn)
    options = f"{given.get('options') or ''} {session}".strip()
    return make_conninfo("", **{**KEEPALIVE, **given, "options": options or None, **more})
