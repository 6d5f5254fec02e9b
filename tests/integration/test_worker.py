"""The worker over the real queue, in processes of its own: woken, drained, killed, and cut off from its database."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg_pool import AsyncConnectionPool

from host.engine.accept import Origin, accept, read_case
from host.engine.parts import Parts
from host.engine.wake import Wake, queue_app, waker
from host.settings import Settings
from tests.support.cluster import KEPT
from tests.support.engine import CASE, DESK, KINDS, PINS, asynchronous, engine, no_wake, owners
from tests.support.fake_tools import FakeTools
from tests.support.worker_process import Worker, until, worker

pytestmark = pytest.mark.xdist_group("worker")

BY_DEFAULT: int = Settings.model_fields["concurrency"].default
EVERY_SESSION = "pid <> pg_backend_pid()"
THE_ONE_THAT_LISTENS = "query LIKE 'LISTEN%%'"


@dataclass
class Stage:
    """A database and a directory of effects; the pool that made the database is closed, the processes have theirs."""

    parts: Parts
    directory: Path

    @property
    def dsn(self) -> str:
        return str(self.parts.pool.conninfo)

    def ask(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with owners(self.parts) as sql:
            return sql.execute(query.encode(), parameters).fetchall()

    def completed(self, ids: list[UUID], seconds: float = 30) -> float:
        """Wait until they are; gives how long it took."""
        started = time.monotonic()
        query = "SELECT count(*) FROM workflow WHERE state = 'COMPLETED' AND workflow_id = ANY (%s)"
        until(lambda: self.ask(query, ids) == [(len(ids),)], seconds)
        return time.monotonic() - started

    def effects(self, one: UUID | None = None) -> list[str]:
        """Which effects there are, of one workflow or of all."""
        return sorted(path.name.rsplit("-", 1)[-1] for path in self.directory.glob(f"effect-{one or ''}*"))

    def holder(self, tool: str) -> str | None:
        """Who has the lease while a request of this tool is under way."""
        query = "SELECT lease_owner FROM workflow JOIN attempt USING (workflow_id) WHERE tool = %s AND outcome IS NULL"
        found = self.ask(query, tool)
        return found[0][0] if found else None


@contextmanager
def stage_in(directory: Path) -> Iterator[Stage]:
    runner = asyncio.Runner()
    context = engine(FakeTools())
    parts = runner.run(context.__aenter__())
    runner.run(parts.pool.close())
    yield Stage(parts, directory)
    runner.run(context.__aexit__(None, None, None))
    runner.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with stage_in(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Worker]]:
    """One worker for the tests that do not end it, with as many cases at a time as nobody has said."""
    with (
        stage_in(tmp_path_factory.mktemp("effects")) as found,
        worker(found.dsn, found.directory, concurrency=BY_DEFAULT) as process,
    ):
        yield found, process


@asynccontextmanager
async def submitting(stage: Stage) -> AsyncIterator[tuple[Parts, Wake]]:
    """The engine's parts over a pool of this event loop, with a waker."""
    queue = queue_app(stage.dsn)
    pool: Any = AsyncConnectionPool(stage.dsn, min_size=1, open=False, kwargs={"autocommit": True})
    async with pool, queue.open_async():
        yield replace(stage.parts, pool=pool), waker(queue)


def submit(stage: Stage, count: int = 1, *, woken: bool = True) -> list[UUID]:
    """Take cases in as a command does: each with its wake-up in one transaction."""
    found: list[UUID] = []

    @asynchronous
    async def run() -> None:
        async with submitting(stage) as (parts, wake):
            for _ in range(count):
                name = uuid4().hex
                workflow, case = read_case({**CASE, "request_id": name, "order_id": name}, KINDS)
                kind = parts.kinds[workflow.kind, workflow.release]
                taken = await accept(parts.pool, kind, case, Origin(DESK), PINS, wake if woken else no_wake)
                found.append(taken.workflow_id)

    run()
    return found


def test_a_wake_up_drives_its_workflow_and_leaves_no_job_behind(running):
    stage, _ = running
    ids = submit(stage, 5)
    stage.completed(ids)
    query = "SELECT 1 FROM procrastinate_jobs WHERE args ->> 'workflow_id' = ANY (%s)"
    until(lambda: stage.ask(query, [str(one) for one in ids]) == [])
    assert [stage.effects(one) for one in ids] == [["create_return", "send_return_notice"]] * 5
    assert (stage.directory / "refreshed").exists()


def test_by_default_one_case_is_driven_at_a_time(running):
    stage, _ = running
    assert BY_DEFAULT == 1
    hold = stage.directory / "hold-create_return"
    hold.touch()
    ids = submit(stage, 3)
    held = until(lambda: [one for one in ids if stage.effects(one)])
    time.sleep(0.3)  # long enough for a worker that takes a second one to have taken it
    leased = stage.ask("SELECT workflow_id FROM workflow WHERE lease_owner IS NOT NULL AND workflow_id = ANY (%s)", ids)
    hold.unlink()
    stage.completed(ids)
    assert leased == [(held[0],)]
    spans = stage.ask(
        "SELECT min(started_at), max(ended_at) FROM attempt WHERE workflow_id = ANY (%s) GROUP BY workflow_id"
        " ORDER BY 1", ids
    )  # fmt: skip
    assert len(spans) == 3
    assert all(ended <= begun for (_, ended), (begun, _) in pairwise(spans))


def test_a_case_whose_wake_up_was_lost_is_brought_by_the_sweeper(running):
    stage, _ = running
    assert stage.completed(submit(stage, woken=False)) < 10


def test_a_retry_that_is_due_is_woken_by_its_timer(running):
    stage, _ = running
    (stage.directory / "busy-get_order").touch()
    ids = submit(stage)
    assert 1.0 <= stage.completed(ids) < 12
    assert stage.ask("SELECT count(*) FROM attempt WHERE workflow_id = %s AND outcome = 'rate_limited'", ids[0]) == [
        (1,)
    ]


@pytest.mark.parametrize("which", [EVERY_SESSION, THE_ONE_THAT_LISTENS])
def test_a_worker_whose_sessions_are_cut_goes_on(running, which):
    stage, process = running
    stage.completed(submit(stage))
    sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND "
    cut = stage.ask(sessions + which)
    assert len(cut) >= 1
    assert stage.completed(submit(stage, 3)) < 20
    assert process.poll() is None


def test_sigterm_finishes_what_is_in_hand_and_takes_no_further_wake_up(stage):
    hold = stage.directory / "hold-create_return"
    hold.touch()
    with worker(stage.dsn, stage.directory) as process:
        (one,) = submit(stage)
        until(lambda: stage.effects() == ["create_return"])
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)  # long enough for a worker that does not drain to be gone
        (other,) = submit(stage)
        assert process.poll() is None
        hold.unlink()
        assert process.wait(20) == 0
    states = dict(stage.ask("SELECT workflow_id, state FROM workflow"))
    assert states == {one: "COMPLETED", other: "RECEIVED"}
    assert ("todo", str(other)) in stage.ask("SELECT status::text, args ->> 'workflow_id' FROM procrastinate_jobs")
    assert stage.ask("SELECT 1 FROM workflow WHERE lease_owner IS NOT NULL") == []


@pytest.mark.parametrize("tool", ["get_order", "create_return", "find_notice"])
def test_kill_9_is_taken_over_within_seconds_with_no_second_effect_and_no_job_left(stage, tool):
    hold = stage.directory / f"hold-{tool}"
    hold.touch()
    with worker(stage.dsn, stage.directory, 1.0) as first, worker(stage.dsn, stage.directory, 1.0) as second:
        ids = submit(stage)
        owner = until(lambda: stage.holder(tool))
        dead, alive = (first, second) if owner == str(first.pid) else (second, first)
        assert owner == str(dead.pid)
        os.kill(dead.pid, signal.SIGKILL)
        dead.wait(10)
        hold.unlink()
        took = stage.completed(ids, 20)
        until(lambda: stage.ask("SELECT 1 FROM procrastinate_jobs") == [], 20)
        assert alive.poll() is None
    assert stage.ask("SELECT recoveries, fence FROM workflow") == [(1, 2)]
    assert stage.effects() == ["create_return", "send_return_notice"]
    assert took < 10


def test_two_workers_share_the_work_and_make_each_effect_once(stage):
    with worker(stage.dsn, stage.directory), worker(stage.dsn, stage.directory):
        stage.completed(submit(stage, 30), 40)
    assert stage.effects() == ["create_return"] * 30 + ["send_return_notice"] * 30
    assert len({path.name.rsplit("-", 1)[-1] for path in stage.directory.glob("request-*")}) == 2


def test_the_workers_own_role_is_no_superuser(running):
    stage, _ = running
    users = stage.ask(
        "SELECT DISTINCT usename::text FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> %s",
        KEPT,
    )
    assert users == [("host_rt",)]
    assert stage.ask("SELECT rolsuper OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname = 'host_rt'") == [
        (False,)
    ]
