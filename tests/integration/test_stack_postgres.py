"""The embedded server: closed to strangers, durable, adopted, and back after anything that kills it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from host.stack import postgres
from host.stack.errors import StackError, StackProblem
from host.stack.pids import Identity, born
from host.stack.ports import LOOPBACK, is_free
from host.stack.postgres import Cluster, Server
from host.stack.postmaster import read_pid_file
from host.stack.serving import ADMIN, NotServingError, wait_ready
from tests.support.embedded import admin, embedded, one, started, stopped

pytestmark = pytest.mark.xdist_group("stack-postgres")

STARTER = """
import asyncio, sys
from pathlib import Path
from host.stack import postgres
from host.stack.home import open_home

async def main():
    cluster = postgres.cluster_of(open_home(Path(sys.argv[1])), postgres.PostgresChoice(None, None))
    server = await postgres.start(cluster)
    print(server.process.pid, server.started_here, flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with embedded(tmp_path_factory.mktemp("postgres") / "home") as cluster:
        yield cluster


@pytest.fixture
def cluster(made_once: Cluster) -> Iterator[Cluster]:
    """One for all tests that leave its settings alone."""
    yield made_once
    stopped(made_once)


def starter(root: Path) -> subprocess.Popen[str]:
    """Another process that starts the same home's server, says so, and lives until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", STARTER, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def said(process: subprocess.Popen[str]) -> tuple[int, bool]:
    assert process.stdout is not None
    pid, here = process.stdout.readline().split()
    return int(pid), here == "True"


def closed(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        process.communicate(timeout=30)


def started_empty(cluster: Cluster) -> Server:
    server = started(cluster)
    with admin(cluster, server) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept (value int)")
    return server


def remember(cluster: Cluster, server: Server, value: int) -> None:
    with admin(cluster, server) as connection:
        connection.execute("INSERT INTO kept VALUES (%s)", (value,))


def remembered(cluster: Cluster, server: Server) -> list[int]:
    with admin(cluster, server) as connection:
        return [int(str(row[0])) for row in connection.execute("SELECT value FROM kept ORDER BY value")]


def test_it_runs_as_an_unprivileged_user_and_every_commit_is_durable(tmp_path: Path) -> None:
    with embedded(tmp_path / "home") as cluster:
        server = started(cluster)
        owner = Path(f"/proc/{server.process.pid}").stat().st_uid if sys.platform == "linux" else os.geteuid()
        assert owner != 0
        with admin(cluster, server) as connection:
            for name in ("fsync", "synchronous_commit", "full_page_writes", "data_checksums"):
                assert one(connection, f"SHOW {name}") == "on"
            with pytest.raises(psycopg.errors.CantChangeRuntimeParam):
                connection.execute("SET fsync = off")
            connection.execute("ALTER SYSTEM SET fsync = off")
        stopped(cluster)
        with admin(cluster, started(cluster)) as connection:
            assert one(connection, "SHOW fsync") == "on"


def test_nobody_gets_in_without_the_password_neither_over_the_socket_nor_over_tcp(cluster: Cluster) -> None:
    server = started(cluster)
    for host in (str(server.socket_directory), LOOPBACK):
        target = make_conninfo(host=host, port=server.port, dbname="postgres", user=ADMIN, passfile="/dev/null")
        psycopg.connect(target, password=cluster.admin_password()).close()
        for password in ("wrong", "", None):
            with pytest.raises(psycopg.OperationalError, match=r"authentication failed|no password supplied"):
                psycopg.connect(target, password=password)
    assert "trust" not in (cluster.data / "pg_hba.conf").read_text().replace('"trust"', "").split()


def test_it_listens_on_loopback_alone_and_its_socket_is_closed_to_others(cluster: Cluster) -> None:
    server = started(cluster)
    with admin(cluster, server) as connection:
        assert one(connection, "SHOW listen_addresses") == LOOPBACK
    assert stat.S_IMODE(server.socket_directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((server.socket_directory / f".s.PGSQL.{server.port}").stat().st_mode) == 0o700


def test_a_second_start_adopts_the_running_server(cluster: Cluster) -> None:
    first, second = started(cluster), started(cluster)
    assert (first.started_here, second.started_here) == (True, False)
    assert (first.process, first.port, first.system_identifier) == (
        second.process, second.port, second.system_identifier,
    )  # fmt: skip
    assert asyncio.run(postgres.find(cluster)) == second


def test_it_keeps_its_port_and_takes_another_when_that_one_is_taken(cluster: Cluster) -> None:
    port = started(cluster).port
    stopped(cluster)
    assert started(cluster).port == port
    stopped(cluster)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((LOOPBACK, port))
        other.listen()
        assert not is_free(port)
        assert started(cluster).port != port


def test_stopping_ends_it_and_stopping_again_is_no_error(cluster: Cluster) -> None:
    assert stopped(cluster) is False
    server = started(cluster)
    assert stopped(cluster) is True
    assert not server.process.alive()
    assert is_free(server.port)
    assert stopped(cluster) is False


def test_a_killed_server_comes_back_with_everything_that_was_committed(cluster: Cluster) -> None:
    server = started_empty(cluster)
    for round_number in range(3):
        remember(cluster, server, round_number)
        with closing(admin(cluster, server)) as busy:
            busy.execute("BEGIN; INSERT INTO kept VALUES (99)")  # an open transaction, lost with its server
            server.process.signal(signal.SIGKILL)
            again = started(cluster)
        assert again.started_here
        assert again.process != server.process
        assert remembered(cluster, again) == list(range(round_number + 1))
        server = again


def test_a_pid_file_that_names_somebody_else_is_taken_away_and_nobody_else_is_touched(cluster: Cluster) -> None:
    server = started_empty(cluster)
    remember(cluster, server, 1)
    file = cluster.data / "postmaster.pid"
    claim = file.read_text().splitlines()
    stopped(cluster)
    stranger = subprocess.Popen(["/bin/sh", "-c", "read _"], stdin=subprocess.PIPE)
    try:
        file.write_text("\n".join([str(stranger.pid), *claim[1:]]) + "\n")
        (server.socket_directory / f".s.PGSQL.{server.port}.lock").write_text(file.read_text())
        assert asyncio.run(postgres.find(cluster)) is None
        assert asyncio.run(postgres.stop(cluster.home)) is False
        assert remembered(cluster, started(cluster)) == [1]
        assert stranger.poll() is None
    finally:
        stranger.communicate(b"\n")


def test_a_dead_server_that_nobody_reaped_does_not_pass_for_a_living_one(cluster: Cluster) -> None:
    server = started_empty(cluster)
    remember(cluster, server, 1)
    file = cluster.data / "postmaster.pid"
    claim = file.read_text().splitlines()
    stopped(cluster)
    zombie = subprocess.Popen(["/bin/true"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    file.write_text("\n".join([str(zombie.pid), *claim[1:]]) + "\n")
    (server.socket_directory / f".s.PGSQL.{server.port}.lock").write_text(file.read_text())
    assert remembered(cluster, started(cluster)) == [1]
    zombie.wait()


def test_a_pid_file_of_rubbish_does_not_keep_it_from_starting(cluster: Cluster) -> None:
    started(cluster)
    for content in ("", "\n", "x\n", "1\n", "-5\n", "99999999999\n", "12\n/somewhere\n"):
        stopped(cluster)
        (cluster.data / "postmaster.pid").write_text(content)
        assert started(cluster).started_here


def test_what_a_killed_starter_left_running_is_adopted(cluster: Cluster) -> None:
    process = starter(cluster.home.root)
    pid, _ = said(process)
    process.kill()
    closed(process)
    server = started(cluster)
    assert (server.process.pid, server.started_here) == (pid, False)
    assert stopped(cluster) is True
    assert born(pid) is None


def test_a_long_recovery_is_waited_for(tmp_path: Path) -> None:
    """A standby that accepts nobody says what a recovering server says, for as long as we like."""
    with embedded(tmp_path / "home") as cluster:
        started(cluster)
        stopped(cluster)
        (cluster.data / "standby.signal").touch()
        with (cluster.data / "postgresql.conf").open("a") as file:
            file.write("hot_standby = off\n")
        server = asyncio.run(_promoted(cluster))
        with admin(cluster, server) as connection:
            assert one(connection, "SELECT pg_is_in_recovery()") is False


async def _promoted(cluster: Cluster) -> Server:
    starting = asyncio.create_task(postgres.start(cluster))
    claim, deadline = None, time.monotonic() + 30
    while (claim is None or not claim.status.startswith("standby")) and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
        claim = read_pid_file(cluster.data)
    assert claim is not None
    process, directory = Identity(claim.pid, born(claim.pid) or ""), Path(claim.socket_directory)
    with pytest.raises(NotServingError, match="not ready after"):
        await wait_ready(process, directory, claim.port, silent_seconds=0, recovering_seconds=0.2)
    silent_would_have_failed = asyncio.create_task(
        wait_ready(process, directory, claim.port, silent_seconds=0, recovering_seconds=60)
    )
    done, _ = await asyncio.wait([starting, silent_would_have_failed], timeout=0.5)
    assert not done
    (cluster.data / "promote").touch()
    os.kill(claim.pid, signal.SIGUSR1)
    await asyncio.wait_for(silent_would_have_failed, 30)
    return await asyncio.wait_for(starting, 30)


def test_a_process_that_never_listens_is_given_up(tmp_path: Path) -> None:
    mute = subprocess.Popen(["/bin/sh", "-c", "read _"], stdin=subprocess.PIPE)
    try:
        process = Identity(mute.pid, born(mute.pid) or "")
        with pytest.raises(NotServingError, match="not ready after"):
            asyncio.run(wait_ready(process, tmp_path, 1, silent_seconds=0.1, recovering_seconds=60))
    finally:
        mute.communicate(b"\n")
    with pytest.raises(NotServingError, match="ended while it started"):
        asyncio.run(wait_ready(process, tmp_path, 1))


def test_a_server_that_cannot_start_says_why_and_leaves_nothing_running(tmp_path: Path) -> None:
    with embedded(tmp_path / "home") as cluster:
        started(cluster)
        stopped(cluster)
        with (cluster.data / "postgresql.conf").open("a") as file:
            file.write("no_such_setting = 1\n")
        with pytest.raises(StackError, match="no_such_setting") as caught:
            started(cluster)
        assert caught.value.problem is StackProblem.POSTGRES_FAILED
        assert asyncio.run(postgres.find(cluster)) is None


def test_an_interrupted_first_start_begins_anew(tmp_path: Path) -> None:
    with embedded(tmp_path / "home") as cluster:
        unfinished = cluster.place / "data.new"
        unfinished.mkdir()
        (unfinished / "PG_VERSION").write_text("18\n")
        assert started(cluster).started_here
        assert not unfinished.exists()
        assert not (cluster.place / ".password").exists()


def test_the_password_is_in_no_log_and_on_no_command_line(cluster: Cluster) -> None:
    server = started(cluster)
    secret = cluster.admin_password()
    assert secret not in cluster.log.read_text()
    listing = subprocess.run(["ps", "-axww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    assert str(server.port) in listing
    assert secret not in listing
