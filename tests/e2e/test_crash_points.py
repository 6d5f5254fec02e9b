"""What this proves: no commit passes beside what the crash matrix counts, and what a kill at one costs a case.

The database's own log of commits shows that none is missing. That every one of them is survived is what
`kessai crash-matrix` shows, on either side of each.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter

import pytest

from host.evaluation.crash.names import AT, LINK, SEALS, TRACE
from host.stack.binaries import wheel_directory
from host.stack.roles import Side
from tests.crash.stage import Stage

pytest_plugins = ["tests.crash.fixtures"]
pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("crash-stage")]

DONE = ("COMPLETED", "notice_verified")
FLUSHED = "SELECT pg_current_wal_flush_lsn()::text"
# Inside which request the cut was: a commit had announced it, and none had recorded its answer.
WORKER_POINTS = {"before commit_steps 1": [], "before commit_steps 4": ["create_return"], "after commit_steps 7": []}
ASKED = "SELECT count(*) FROM calls.log WHERE task_id = %s AND tool = 'create_return'"


@pytest.mark.parametrize("point", WORKER_POINTS)
def test_a_worker_that_dies_at_a_commit_is_taken_over_from(stage: Stage, point: str) -> None:
    stage.keep("server")
    stage.drop("worker")
    workflow = stage.take()

    stage.gone(stage.start(stage.stand.worker("worker"), **{AT: point}))
    stage.keep("worker")

    assert stage.ended(workflow) == [DONE]
    assert stage.effects(workflow) == (1, 1)
    cut_off = [outcome.split()[0] for outcome in stage.outcomes(workflow) if "cut_off" in outcome]
    assert (stage.recoveries(workflow), cut_off) == (len(WORKER_POINTS[point]), WORKER_POINTS[point])
    # what had been made when its answer was lost is looked up by its key and adopted, and not asked for again
    assert stage.stand.rows(Side.TOOLS, "tools_auditor", ASKED, str(workflow)) == [(1,)]
    assert stage.outcomes(workflow).count("find_return success") == len(cut_off)


@pytest.mark.parametrize("point", ["after returns.issue 1", f"after {LINK} 1"])
def test_a_tool_server_that_dies_at_a_commit_costs_a_recovery_and_no_attempt(stage: Stage, point: str) -> None:
    stage.keep("server")
    stage.keep("worker")
    stage.drop("server")
    server = stage.server(**{AT: point})
    workflow = stage.take()

    stage.gone(server)
    stage.keep("server")

    assert stage.ended(workflow) == [DONE]
    assert stage.effects(workflow) == (1, 1)
    spent = Counter(outcome.split()[1] for outcome in stage.outcomes(workflow))
    # one request was lost; where the next server listens before the host has knocked, its death cannot be proved
    lost = spent.total() - spent["success"] - spent["unreachable"]
    assert lost == 1
    assert stage.recoveries(workflow) == spent["cut_off"] + spent["unreachable"]


def commits_in_log(stage: Stage, since: str, until: str) -> set[int]:
    """The numbers of all transactions that were committed between two places of the database's own log."""
    log = stage.stand.cluster.data / "pg_wal"
    argv = [wheel_directory() / "pg_waldump", "--path", log, "--start", since, "--end", until, "--rmgr", "Transaction"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    return {int(number) for number in re.findall(r"tx: *(\d+),.*desc: COMMIT ", said)}


def test_every_commit_of_a_return_is_counted_with_its_place(stage: Stage) -> None:
    stage.drop("worker")
    stage.drop("server")
    files = {name: stage.stand.within / f"{name}.trace" for name in ("worker", "server")}
    workflow = stage.take()
    since = stage.rows(FLUSHED)[0][0]
    server = stage.server(**{TRACE: str(files["server"])})
    patient = stage.stand.worker("worker", KESSAI_LEASE_SECONDS="60")  # which renews none in so short a time
    worker = stage.started(patient, **{TRACE: str(files["worker"])})
    assert stage.ended(workflow) == [DONE]
    stage.until("SELECT count(*) = 0 FROM procrastinate_jobs")
    until = stage.rows(FLUSHED)[0][0]
    stage.kill(worker, server)

    traced = {name: [json.loads(line) for line in file.read_text().splitlines()] for name, file in files.items()}
    numbers = [one["xid"] for commits in traced.values() for one in commits if one["xid"] is not None]
    assert commits_in_log(stage, since, until) <= set(numbers), "a transaction of the database passed no hook"
    assert len(set(numbers)) == len(numbers)
    for commits in traced.values():
        for name in {one["name"] for one in commits} - {"procrastinate_fetch_job", *SEALS}:  # which also ask in vain
            places = [one["n"] for one in commits if one["name"] == name]
            assert (name, places) == (name, list(range(1, len(places) + 1)))
    assert Counter(one["name"] for one in traced["worker"])["commit_steps"] == 7
    assert [one["name"] for one in traced["server"] if one["xid"] is None] == [LINK]
