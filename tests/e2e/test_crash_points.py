"""What this proves: wherever worker, tool server or submitter dies, a normal return still ends with its effects once.

The boundaries are counted, not chosen: traced processes write down each transaction that wrote, the database's own log
of commits shows that none is missing, and each of them is here killed before it and after it.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from uuid import UUID

import pytest

from host.stack.binaries import wheel_directory
from tests.crash.boundary import AT, LINK, TRACE
from tests.crash.stage import Stage

pytest_plugins = ["tests.crash.fixtures"]
pytestmark = pytest.mark.timeout(180)

# What a normal return commits, by process and by the function that the commit's last statement calls.
ENGINE_COMMITS, SERVER_COMMITS = 7, 7
COMMITS: dict[str, dict[str, int]] = {
    "submit": {"procrastinate_defer_jobs": 1},
    "worker": {
        "commit_steps": ENGINE_COMMITS,
        "procrastinate_register_worker": 1,
        "procrastinate_fetch_job": 1,
        "procrastinate_finish_job": 1,
        "procrastinate_update_heartbeat": 1,
        "procrastinate_prune_stalled_workers": 1,
    },
    "server": {
        "calls.answer": 3,
        "returns.issue": 1,
        "notices.begin_sending": 1,
        "notices.conclude": 1,
        "notices.look_up": 1,
    },
}
# One of these is like another, and how many there are is a matter of time.
BEATS = {"procrastinate_update_heartbeat", "procrastinate_prune_stalled_workers"}
DONE = ("COMPLETED", "notice_verified")
FLUSHED = "SELECT pg_current_wal_flush_lsn()::text"


def both_sides(commits: dict[str, int]) -> list[str]:
    return [
        f"{when} {name} {number}"
        for name, count in commits.items()
        for number in range(1, count + 1)
        for when in ("before", "after")
    ]


def _recoveries_expected(point: str) -> set[int]:
    """A request was under way if a commit had announced it and none had recorded its answer."""
    when, name, number = point.split()
    commits = int(number) - (when == "before")
    return {0, 1} if name in BEATS else {int(name == "commit_steps" and 0 < commits < ENGINE_COMMITS)}


@pytest.mark.parametrize("point", both_sides(COMMITS["worker"]))
def test_a_worker_that_dies_at_a_commit_is_taken_over_from(stage: Stage, point: str) -> None:
    stage.keep("server")
    stage.drop("worker")
    workflow = stage.take()

    stage.gone(stage.start(stage.stand.worker("worker"), **{AT: point}))
    stage.keep("worker")

    assert stage.ended(workflow) == [DONE]
    assert stage.effects(workflow) == (1, 1)
    cut_off = sum("cut_off" in outcome for outcome in stage.outcomes(workflow))
    assert stage.recoveries(workflow) == cut_off
    assert cut_off in _recoveries_expected(point)


@pytest.mark.parametrize("point", [*both_sides(COMMITS["server"]), *both_sides({LINK: 1})])
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


@pytest.mark.parametrize("point", both_sides(COMMITS["submit"]))
def test_a_case_whose_submitter_dies_is_there_whole_or_not_at_all(stage: Stage, point: str) -> None:
    stage.keep("server")
    stage.keep("worker")
    number = stage.new_order()
    before = stage.rows("SELECT count(*) FROM workflow")[0][0]

    stage.gone(stage.submit(number, **{AT: point}))

    stood = stage.rows("SELECT count(*) FROM workflow")[0][0] - before
    assert stood == int(point.startswith("after"))
    workflow = stage.run(stage.desk.take(number))  # the same case again
    stage.accepted.append(workflow)
    assert stage.ended(workflow) == [DONE]
    assert stage.effects(workflow) == (1, 1)
    assert stage.rows("SELECT count(*) FROM workflow")[0][0] == before + 1


def commits_in_log(stage: Stage, since: str, until: str) -> set[int]:
    """The numbers of all transactions that were committed between two places of the database's own log."""
    log = stage.stand.cluster.data / "pg_wal"
    argv = [wheel_directory() / "pg_waldump", "--path", log, "--start", since, "--end", until, "--rmgr", "Transaction"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    return {int(number) for number in re.findall(r"tx: *(\d+),.*desc: COMMIT ", said)}


def test_every_commit_of_a_return_has_a_crash_point_on_either_side(stage: Stage) -> None:
    stage.drop("worker")
    stage.drop("server")
    files = {name: stage.stand.within / f"{name}.trace" for name in COMMITS}
    since = stage.rows(FLUSHED)[0][0]
    server = stage.server(**{TRACE: str(files["server"])})
    patient = stage.stand.worker("worker", KESSAI_LEASE_SECONDS="60")  # which renews none in so short a time
    worker = stage.started(patient, **{TRACE: str(files["worker"])})
    begun = len(stage.stand.said("submit"))
    stage.gone(stage.submit(stage.new_order(), **{TRACE: str(files["submit"])}))
    workflow = UUID(stage.stand.said("submit")[begun:].strip())
    stage.accepted.append(workflow)
    assert stage.ended(workflow) == [DONE]
    stage.until("SELECT count(*) = 0 FROM procrastinate_jobs")
    until = stage.rows(FLUSHED)[0][0]
    stage.kill(worker, server)

    traced = {name: [json.loads(line) for line in file.read_text().splitlines()] for name, file in files.items()}
    numbers = [commit["xid"] for commits in traced.values() for commit in commits]
    assert commits_in_log(stage, since, until) <= set(numbers), "a transaction of the database passed no hook"
    assert len(set(numbers)) == len(numbers)
    found = {name: Counter(commit["name"] for commit in commits) for name, commits in traced.items()}
    found["worker"].update(dict.fromkeys(BEATS, 0))
    assert found == {name: Counter(commits) for name, commits in COMMITS.items()} | {"worker": found["worker"]}
    assert {name: 1 if name in BEATS else count for name, count in found["worker"].items()} == COMMITS["worker"]
    assert sum(found["server"].values()) == SERVER_COMMITS
