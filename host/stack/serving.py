"""Does a server answer, and is it the one that we mean? Waiting is bounded by what the server says.

Silence of a living process is given up soon; one that says it is starting up recovers, and is waited for.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

from host.stack.pids import Identity
from host.stack.postmaster import system_identifier

ADMIN = "postgres"
POLL_SECONDS = 0.02
SILENT_SECONDS_MAX = 60.0
RECOVERING_SECONDS_MAX = 900.0  # it reads again what was written since the last checkpoint, at most some GB


class NotServingError(Exception):
    """The process ended, or it did not get ready within its bound."""


class ForeignServerError(Exception):
    """Something answers there, and it is another cluster than ours."""


async def wait_ready(
    process: Identity,
    directory: Path,
    port: int,
    silent_seconds: float = SILENT_SECONDS_MAX,
    recovering_seconds: float = RECOVERING_SECONDS_MAX,
) -> None:
    """Return when the server takes connections; `NotServingError` says why it never will."""
    target = make_conninfo(host=str(directory), port=port, dbname="postgres", user=ADMIN, connect_timeout=5)
    began = time.monotonic()
    while True:
        answer = PGconn.ping(target.encode())
        if answer == Ping.OK:
            return
        waited = time.monotonic() - began
        if not process.alive():
            raise NotServingError("it ended while it started")
        if waited > (recovering_seconds if answer == Ping.REJECT else silent_seconds):
            raise NotServingError(f"it is not ready after {waited:.0f} s")
        await asyncio.sleep(POLL_SECONDS)


async def prove(data: Path, directory: Path, port: int, password: str) -> int:
    """The system identifier of a server that knows our password's verifier and serves our data."""
    target = make_conninfo(
        host=str(directory), port=port, dbname="postgres", user=ADMIN, password=password,
        connect_timeout=10, options="", require_auth="scram-sha-256",
    )  # fmt: skip
    async with await psycopg.AsyncConnection.connect(target, autocommit=True) as connection:
        row = await (
            await connection.execute(
                "SELECT system_identifier, current_setting('data_directory') FROM pg_control_system()"
            )
        ).fetchone()
    own = system_identifier(data)
    # The control file holds 64 bits without a sign, the function shows them with one.
    if row is None or int(row[0]) % 2**64 != own or not _same(row[1], data):
        raise ForeignServerError(f"port {port} in {directory} serves {row}, not {data} ({own})")
    return own


def _same(served: str, data: Path) -> bool:
    return os.path.realpath(served) == os.path.realpath(data)
