"""`kessai stop` and `resume`, killed before each of their commits: nothing half done, and the next one does it."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cli import Cli, case, written

pytestmark = [pytest.mark.long, pytest.mark.timeout(300), pytest.mark.xdist_group("cli_stop")]
STOP = ("stop", "--as", "sato", "--reason", "a test")
RESUME = ("resume", "--as", "sato", "--reason", "a test")
LOCKED = "SELECT pg_advisory_lock(stop_lock_key())"
COUNTED = "LOCK TABLE reconciliation IN EXCLUSIVE MODE"
WAITS = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = 'host'"
ENGAGED = "SELECT array_agg(scope ORDER BY scope) FROM stop WHERE engaged"
ACTS = "SELECT array_agg(act ORDER BY stop_id) FROM stop_log"


@pytest.fixture(scope="module")
def kessai(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A stack that is up, with one case that a stop of updates has halted."""
    cli = Cli(tmp_path_factory.mktemp("kessai") / "home", {})
    assert cli("up").code == 0
    with cli.owner("host") as host:
        host.execute("UPDATE stop SET engaged = true WHERE scope = 'updates'")
        file = written(tmp_path_factory.mktemp("case"), case("normal", request_id="halted-by-a-kill"))
        assert cli("run", file).code == 14
        host.execute("UPDATE stop SET engaged = false")
        host.execute("UPDATE workflow SET wake_at = 'infinity'")
    yield cli
    assert cli("empty", "--yes").code == 0


def one(cli: Cli, query: str) -> Any:
    with cli.owner("host") as host:
        return host.execute(query.encode()).fetchall()[0][0]


def killed(cli: Cli, *command: str, holding: str = LOCKED, by: signal.Signals = signal.SIGKILL) -> tuple[int, str]:
    """Start it, let it wait for what its commit needs, and end it there; gives its code and what it said."""
    with cli.owner("host") as host:
        host.autocommit = False
        host.execute(holding.encode())
        process = cli.start(*command)
        _until(cli, lambda: one(cli, WAITS) > 0)
        process.send_signal(by)
        _, said = process.communicate(timeout=10)
        host.execute("SELECT pg_advisory_unlock_all()")
        host.rollback()
    _until(cli, lambda: one(cli, WAITS) == 0)
    return process.returncode, said


def _until(cli: Cli, true: Any) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError(cli("status").out)


def done(cli: Cli, *command: str) -> None:
    said = cli(*command)
    assert said.code == 0, said.err + said.out


def test_a_stop_that_is_broken_off_with_ctrl_c_says_that_nothing_is_known_to_be_stopped(kessai: Cli):
    code, said = killed(kessai, *STOP, by=signal.SIGINT)
    assert code == 130
    assert "NOT known to be stopped" in said
    assert one(kessai, ENGAGED) is None


def test_killed_before_each_of_their_commits_they_leave_what_was_and_the_next_one_does_it(kessai: Cli):
    killed(kessai, *STOP)
    assert (one(kessai, ENGAGED), one(kessai, ACTS)) == (None, None)
    done(kessai, *STOP)
    stopped = ["new_work", "parallel", "updates"]
    assert one(kessai, ENGAGED) == stopped

    killed(kessai, *RESUME, holding=COUNTED)
    records = one(kessai, "SELECT count(*) FROM reconciliation")
    assert records in {0, 1}  # one statement, which the database may still carry out when nobody hears of it
    assert one(kessai, ENGAGED) == stopped
    killed(kessai, *RESUME)  # the record is committed, the lift is not
    assert one(kessai, "SELECT count(*) FROM reconciliation") == records + 1
    assert one(kessai, ENGAGED) == stopped
    assert one(kessai, ACTS) == ["stop"]
    done(kessai, *RESUME)
    assert one(kessai, ENGAGED) == ["parallel"]

    part = (*RESUME, "--state", "ELIGIBLE", "--limit", "1")
    killed(kessai, *part)
    assert one(kessai, "SELECT wake_reason FROM workflow") == "stopped"
    done(kessai, *part)
    assert one(kessai, "SELECT wake_reason IS DISTINCT FROM 'stopped' FROM workflow") is True
    killed(kessai, *RESUME, "--full")
    assert one(kessai, ENGAGED) == ["parallel"]
    done(kessai, *RESUME, "--full")
    assert one(kessai, ENGAGED) is None
    assert one(kessai, ACTS) == ["stop", "resume", "release", "full"]
