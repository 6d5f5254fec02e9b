"""What this proves: what everybody depends on may go away or be wrong under way, and cases still end as they should.

The database is stopped, killed and started again, its notifications are cut, the tool server is replaced between two
calls, and one worker's clock is wrong: no case is lost, doubled or stuck, and no worker has to be started again.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import pytest

from host.evaluation.crash.names import AT, BY
from host.stack import postgres
from host.stack.pids import Identity
from host.stack.processes import python_module
from tests.crash.clocked import CLOCK
from tests.crash.stage import LOOK_SECONDS, Stage
from tests.crash.stand import kill

pytest_plugins = ["tests.crash.fixtures"]
pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

DONE = ("COMPLETED", "notice_verified")
POLL_SECONDS = 2.0  # what a worker's queue falls back to where a notification is lost
FIVE_MINUTES = 300
WOKEN_SECONDS = 30.0
IDLE_SHARE = 0.3  # of one core, at most, for a worker that has nothing to do


@pytest.fixture(autouse=True)
def alone(stage: Stage) -> None:
    """The tool server is there, and no worker but those that the test starts."""
    stage.keep("server")
    stage.drop("worker")


# -- the database -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_cases_go_on_by_themselves_when_the_database_is_back(stage: Stage, number: signal.Signals) -> None:
    worker, server = stage.worker(), stage.kept["server"]
    cases = [stage.take() for _ in range(10)]
    stage.until("SELECT count(*) > 0 FROM attempt WHERE workflow_id = ANY (%(ids)s) AND outcome IS NULL", ids=cases)

    before = stage.stand.parts.server.process
    if number is signal.SIGINT:
        stage.run(_stop(stage))
    else:
        stage.run(kill(before))
    stage.run(_start(stage))

    assert stage.stand.parts.server.process != before
    assert stage.ended(*cases) == [DONE] * 10
    assert [stage.effects(case) for case in cases] == [(1, 1)] * 10
    assert worker.alive()
    assert server.alive()
    assert stage.shown(cases[0])["state"] == "COMPLETED"


async def _stop(stage: Stage) -> None:
    assert await postgres.stop(stage.stand.parts.home)


async def _start(stage: Stage) -> None:
    """At the same port and socket, as a service's own restart is."""
    was, cluster = stage.stand.parts.server, stage.stand.cluster
    now = await postgres.start(cluster)
    assert (now.port, now.socket_directory) == (was.port, was.socket_directory)
    stage.stand.moved(now)


def test_a_case_is_found_though_the_connection_that_listens_for_it_was_cut(stage: Stage) -> None:
    worker = stage.worker()
    listening = "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN%%'"
    stage.until(listening)
    with psycopg.connect(stage.stand.admin("host"), autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
    begun = time.monotonic()
    workflow = stage.take()

    assert stage.ended(workflow) == [DONE]
    assert time.monotonic() - begun < 5 * POLL_SECONDS
    assert worker.alive()
    stage.until(listening)
    spent, since = _cpu_seconds(worker), time.monotonic()
    stage.until("SELECT clock_now() > %(until)s", until=stage.rows("SELECT clock_now() + interval '2 s'")[0][0])
    assert _cpu_seconds(worker) - spent < IDLE_SHARE * (time.monotonic() - since), "it spins"


def _cpu_seconds(process: Identity) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- the tool server --------------------------------------------------------------------------------------------


def test_a_worker_says_once_that_its_tool_server_is_gone_and_once_that_it_is_back(stage: Stage) -> None:
    stage.worker()
    since = len(stage.stand.said("worker"))
    stage.drop("server")
    stage.hears("worker", "not ready: The tool server cannot be asked", since)
    _asked_again(urlsplit(stage.stand.url).port, rounds=3)
    stage.keep("server")
    stage.hears("worker", "ready again", since)
    said = stage.stand.said("worker")[since:]
    assert (said.count("not ready"), said.count("ready again"), said.count("the link")) == (1, 1, 0), said


def _asked_again(port: int | None, *, rounds: int) -> None:
    """Stand in the place of the tool server, and hang up, until a worker has come that often after a pause.

    Its sealer, which hands a head in that nobody has taken yet, comes without one.
    """
    with socket.create_server(("127.0.0.1", port or 0)) as listener:
        listener.settimeout(WOKEN_SECONDS)
        last = 0.0
        while rounds > 0:
            with listener.accept()[0] as caller:
                caller.settimeout(WOKEN_SECONDS)
                sealer = caller.recv(len(b"POST /heads")) == b"POST /heads"
            now = time.monotonic()
            rounds -= not sealer and now - last > POLL_SECONDS
            last = last if sealer else now


@pytest.mark.parametrize("commits", [2, 3, 5])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_tool_server_that_is_replaced_between_two_calls_is_not_noticed(
    stage: Stage, commits: int, number: signal.Signals
) -> None:
    long_lease = stage.stand.worker("worker", KESSAI_LEASE_SECONDS="60")
    worker = stage.started(long_lease, **{AT: f"after commit_steps {commits}", BY: "SIGSTOP"})
    workflow = stage.take()
    query = "SELECT version >= %(version)s FROM workflow WHERE workflow_id = %(id)s"
    stage.until(query, id=workflow, version=commits + 1)

    stage.kept["server"].signal(number)
    stage.gone(stage.kept["server"])
    stage.keep("server")
    worker.signal(signal.SIGCONT)

    assert stage.ended(workflow) == [DONE]
    assert stage.effects(workflow) == (1, 1)
    assert len([outcome for outcome in stage.outcomes(workflow) if "success" in outcome]) == 6


# -- the time ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [FIVE_MINUTES, -FIVE_MINUTES])
def test_a_worker_with_a_wrong_clock_does_not_begin_and_says_so(stage: Stage, seconds: int) -> None:
    wrong = stage.stand.worker("wrong")
    process = stage.stand.spawn(wrong, python_module("tests.crash.clocked", str(seconds), "host.cli", "worker"), {})
    workflow = stage.take()
    stage.gone(process)

    assert "check both clocks" in stage.stand.said("wrong")
    assert stage.version(workflow) == 1
    stage.worker()
    assert stage.ended(workflow) == [DONE]


@pytest.mark.parametrize("seconds", [FIVE_MINUTES, -FIVE_MINUTES])
def test_a_step_of_a_workers_clock_moves_no_lease_and_no_timer(stage: Stage, seconds: int) -> None:
    """Only tokens are made by the process's own clock; all that is compared in the database is the database's."""
    step = stage.stand.within / f"clock-{seconds}"
    wrong = stage.stand.worker("wrong")
    since = len(stage.stand.said("wrong"))
    process = stage.stand.spawn(
        wrong, python_module("tests.crash.clocked", "0", "host.cli", "worker"), {CLOCK: str(step)}
    )
    stage.run(stage.stand.ready(wrong, process, since))
    assert stage.ended(stage.take()) == [DONE]

    step.write_text(str(seconds))
    met = stage.take()
    assert stage.ended(met) == [("NEEDS_REVIEW", "token_invalid")]  # nothing was executed, and the reason is told
    assert stage.effects(met) == (0, 0)
    assert stage.recoveries(met) == 0

    left = stage.take()
    woken_again(stage, left)
    assert stage.version(left) == 1  # the worker has had it twice, and leaves it to one that the server trusts
    stage.hears("wrong", "check both clocks", since)
    timers = (
        "SELECT coalesce(max(abs(extract(epoch FROM coalesce(lease_until, wake_at) - clock_now()))), 0) FROM workflow"
        " WHERE workflow_id = ANY(%(ids)s)"
    )
    assert stage.rows(timers, ids=[met, left])[0][0] < FIVE_MINUTES / 5
    stage.worker()
    stage.kill(process)
    assert stage.ended(left) == [DONE]


def woken_again(stage: Stage, workflow: UUID) -> None:
    """Wait until the wake-up of an untouched case was consumed, and the sweeper has made a second and a third one."""
    with psycopg.connect(stage.stand.admin("host"), autocommit=True) as admin:
        newest = "SELECT last_value FROM procrastinate_jobs_id_seq"
        first = admin.execute(newest).fetchone()
        assert first is not None
        stage.until("SELECT wake_at < clock_now() FROM workflow WHERE workflow_id = %(id)s", id=workflow)
        deadline = time.monotonic() + WOKEN_SECONDS
        while (now := admin.execute(newest).fetchone()) is not None and now[0] < first[0] + 2:
            assert time.monotonic() < deadline, "nobody woke it"
            time.sleep(LOOK_SECONDS)
