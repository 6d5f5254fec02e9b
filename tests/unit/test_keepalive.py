"""A network that says nothing any more ends a connection to the database, where no timeout of the database can."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import PGconn

from host import database
from host.commands import stopped
from host.engine import seal, wake
from host.store import audit
from host.store.pool import bounded
from tool_server.store.pool import Pool

WAYS: dict[str, Callable[[str], str]] = {
    "host": bounded,
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


@pytest.mark.parametrize("module", [database, seal, wake, audit, stopped], ids=lambda one: one.__name__)
def test_whoever_of_the_host_waits_for_answers_of_its_database_is_bounded(module: ModuleType) -> None:
    assert "bounded(" in Path(str(module.__file__)).read_text("utf-8")


def test_the_bounds_of_a_session_stand_behind_what_the_string_says_itself() -> None:
    said = conninfo_to_dict(bounded("host=h options='-c search_path=x'", "-c lock_timeout=1", connect_timeout=3))
    assert (said["options"], said["connect_timeout"]) == ("-c search_path=x -c lock_timeout=1", "3")
    assert "options" not in conninfo_to_dict(bounded("host=h"))
