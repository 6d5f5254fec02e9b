"""While one client floods the tool server with what has no right to anything, another loses no call."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles

import pytest

from shared_contracts.log_limit import MANY
from tests.support.flood import flooding
from tests.support.server import ServerProcess, running_process

GROWN_BYTES_MAX = 32 * 1024 * 1024  # 32 connections with eight requests each, their answers, and what Python keeps
LINES_MAX = 30 * MANY  # of the log in each minute, of thirty kinds


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def timed(server: ServerProcess) -> float:
    """A right call's milliseconds."""
    began = time.perf_counter()
    assert server.call().status_code == 200
    return (time.perf_counter() - began) * 1000


def p95(walls: list[float]) -> float:
    return quantiles(walls, n=20)[-1]


def until_it_ends(server: ServerProcess, flood: subprocess.Popen[str]) -> list[float]:
    walls = []
    while flood.poll() is None:
        walls.append(timed(server))
    return walls


@pytest.mark.parametrize(
    ("seconds", "idle"), [(1.0, 100), pytest.param(40.0, 500, marks=pytest.mark.long)], ids=["a while", "long"]
)
def test_a_flood_costs_a_right_client_no_call_the_server_no_memory_and_the_log_no_room(tmp_path, seconds, idle, capsys):
    with running_process(tmp_path) as server, ExitStack() as held:
        quiet = [timed(server) for _ in range(60)]
        before = resident_bytes(server.process.pid)
        for _ in range(idle):
            half = held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            half.sendall(b"POST /mcp HTTP/1.1\r\nHost: ")
        with flooding(server.port, seconds, server.issuer.kid) as flood:
            walls = until_it_ends(server, flood)
            assert flood.stdout is not None
            told = json.loads(flood.stdout.read())
        grown = resident_bytes(server.process.pid) - before
        code, said = server.end()
    with capsys.disabled():
        print(f"\n  p95 {p95(quiet):.1f} ms, flooded {p95(walls):.1f} ms; {told}; grown by {grown >> 10} KiB")  # noqa: T201
    assert told["sent"] > 200 * seconds
    assert told["met"].keys() <= {"400", "401", "421", "429", "closed"}
    assert told["met"]["429"] > told["met"].get("401", 0)
    assert len(walls) >= 20
    assert grown < GROWN_BYTES_MAX
    assert code == 0
    assert len(said.splitlines()) < LINES_MAX * (1 + seconds / 60)
    assert "many_alike" in said
