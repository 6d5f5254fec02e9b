"""A network that says nothing any more ends a connection to the database, where no timeout of the database can."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
from psycopg.pq import PGconn

from host.database import pooled
from host.engine.seal import sealers
from host.engine.wake import queued
from tool_server.store.pool import Pool

WAYS: dict[str, Callable[[str], str]] = {
    "host": pooled,
    "host's sealer": sealers,
    "queue": queued,
    "tool server": lambda dsn: Pool("orders", dsn)._conninfo,
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@pytest.fixture
def dsn() -> Iterator[str]:
    """Somebody who takes a connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield f"host=127.0.0.1 port={silent.getsockname()[1]} dbname=d user=u sslmode=disable"


def bounds(dsn: str) -> tuple[int, ...]:
    """What the kernel holds of a connection: seconds idle and between probes, how many probes, milliseconds."""
    connection = PGconn.connect_start(dsn.encode())
    try:
        connection.connect_poll()
        with socket.socket(fileno=connection.socket) as one:
            assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            asked = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
            told = tuple(one.getsockopt(socket.IPPROTO_TCP, option) for option in asked)
            one.detach()
            return told
    finally:
        connection.finish()


@ways
def test_a_connection_is_given_up_after_twenty_seconds_of_silence(way: Callable[[str], str], dsn: str) -> None:
    assert bounds(way(dsn)) == (10, 5, 2, 20_000)


@ways
def test_a_connection_string_that_says_otherwise_goes_first(way: Callable[[str], str], dsn: str) -> None:
    said = bounds(way(f"{dsn} keepalives_idle=30 tcp_user_timeout=5000"))
    assert said == (30, 5, 2, 5_000)
