"""Wake-ups: made with the case, lost, doubled, due by a timer, left by the dead; taken in by many at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from host.engine.accept import Origin, RequestConflictError, accept, read_case
from host.engine.drive import drive
from host.engine.sweep import end_late, requeue_stalled, run_once
from host.engine.wake import queue_app, waker
from host.engine.worker import run_once as attend
from tests.support.approvals import APPROVERS, decide, trust
from tests.support.engine import (
    CASE,
    DESK,
    KINDS,
    PINS,
    advance_clock,
    asynchronous,
    engine,
    no_wake,
    owners,
    rows,
    take,
)
from tests.support.fake_tools import FakeTools, rejected


@asynchronous
async def test_a_lost_wake_up_is_brought_back_by_the_sweeper():
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)  # nobody was woken
        queue = queue_app(parts.pool.conninfo)
        async with queue.open_async():
            assert await run_once(parts, waker(queue)) == 1
            assert await run_once(parts, waker(queue)) == 0  # its wake-up is pending
            jobs = await rows(parts, "SELECT args, lock, queueing_lock, status::text FROM procrastinate_jobs")
        assert jobs == [({"workflow_id": str(workflow_id)}, None, None, "todo")]


@asynchronous
async def test_a_timer_that_is_due_becomes_a_wake_up_and_one_that_is_not_does_not():
    tools = FakeTools(script={"get_order": [rejected("rate_limited")]})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        woken: list[UUID] = []

        async def wake(connection: Any, due: UUID) -> None:
            woken.append(due)

        assert await run_once(parts, wake) == 0
        advance_clock(parts, 2)
        assert await run_once(parts, wake) == 1
        assert woken == [workflow_id]


@asynchronous
async def test_a_job_in_hand_of_a_worker_that_may_be_dead_is_no_excuse():
    async with engine(FakeTools()) as parts:
        await take(parts)
        queue = queue_app(parts.pool.conninfo)
        async with queue.open_async():
            await run_once(parts, waker(queue))
            with owners(parts) as connection:
                connection.execute("UPDATE procrastinate_jobs SET status = 'doing'")
            assert await run_once(parts, waker(queue)) == 1


@asynchronous
async def test_two_sweepers_at_once_wake_everybody_once_between_them():
    async with engine(FakeTools()) as parts:
        for n in range(30):
            await take(parts, request_id=f"due-{n}")
        queue = queue_app(parts.pool.conninfo)
        async with queue.open_async():
            found = await asyncio.gather(*(run_once(parts, waker(queue)) for _ in range(4)))
            ((jobs, workflows),) = await rows(
                parts, "SELECT count(*), count(DISTINCT args ->> 'workflow_id') FROM procrastinate_jobs"
            )
    assert sum(found) == jobs == workflows == 30


@asynchronous
async def test_a_pass_of_the_sweeper_is_bounded_and_takes_the_oldest_first():
    woken: list[UUID] = []

    async def wake(connection: Any, due: UUID) -> None:
        woken.append(due)

    async with engine(FakeTools()) as parts:
        ids = [await take(parts, request_id=f"due-{n}") for n in range(120)]
        with owners(parts) as connection:
            connection.execute(
                "UPDATE workflow SET wake_at = clock_now() - interval '1 h' WHERE workflow_id = %s", (ids[-1],)
            )
        assert await run_once(parts, wake) == 100
    assert woken[0] == ids[-1]


@asynchronous
async def test_a_dead_workers_job_goes_back_to_the_queue_also_where_two_processes_find_it():
    async with engine(FakeTools()) as parts:
        queue = queue_app(parts.pool.conninfo)
        async with queue.open_async():
            await take(parts)
            await run_once(parts, waker(queue))
            with owners(parts) as connection:
                connection.execute("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 h')")
                connection.execute(
                    "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT id FROM procrastinate_workers)"
                )
            await asyncio.gather(*(requeue_stalled(queue, 15.0) for _ in range(3)))
            jobs = await rows(parts, "SELECT status::text FROM procrastinate_jobs")
    assert jobs == [("todo",)]


@asynchronous
async def test_a_wake_up_is_made_in_the_very_transaction_that_takes_the_case_in():
    """Either both are there or neither is."""
    async with engine(FakeTools()) as parts:
        queue = queue_app(parts.pool.conninfo)
        workflow, case = read_case(CASE, KINDS)
        kind = parts.kinds[workflow.kind, workflow.release]

        async def failing(connection: Any, workflow_id: UUID) -> None:
            await waker(queue)(connection, workflow_id)
            raise ZeroDivisionError

        async with queue.open_async():
            with pytest.raises(ZeroDivisionError):
                await accept(parts.pool, kind, case, Origin(DESK), PINS, failing)
            assert await rows(
                parts, "SELECT (SELECT count(*) FROM workflow), (SELECT count(*) FROM procrastinate_jobs)"
            ) == [(0, 0)]
            await accept(parts.pool, kind, case, Origin(DESK), PINS, waker(queue))
            assert await rows(
                parts, "SELECT (SELECT count(*) FROM workflow), (SELECT count(*) FROM procrastinate_jobs)"
            ) == [(1, 1)]


@asynchronous
async def test_twenty_first_submissions_at_once_make_one_workflow():
    async with engine(FakeTools()) as parts:
        workflow, case = read_case(CASE, KINDS)
        kind = parts.kinds[workflow.kind, workflow.release]
        taken = await asyncio.gather(*(accept(parts.pool, kind, case, Origin(DESK), PINS, no_wake) for _ in range(20)))
        counted = await rows(parts, "SELECT count(*), max(seq) FROM workflow")
    assert len({one.workflow_id for one in taken}) == 1
    assert sum(one.created for one in taken) == 1
    assert counted == [(1, 1)]


@asynchronous
async def test_twenty_different_bodies_under_one_request_make_one_workflow_and_nineteen_conflicts():
    async with engine(FakeTools()) as parts:
        workflow, _ = read_case(CASE, KINDS)
        kind = parts.kinds[workflow.kind, workflow.release]
        cases = [read_case({**CASE, "request_id": "q", "message": str(n)}, KINDS)[1] for n in range(20)]
        taken = await asyncio.gather(
            *(accept(parts.pool, kind, case, Origin(DESK), PINS, no_wake) for case in cases), return_exceptions=True
        )
    conflicts = [one for one in taken if isinstance(one, RequestConflictError)]
    assert len(conflicts) == 19
    assert {one.workflow_id for one in conflicts} == {
        one.workflow_id for one in taken if not isinstance(one, BaseException)
    }


@asynchronous
async def test_an_approvals_time_is_up_also_while_the_tool_server_offers_nothing_and_other_work_is_left():
    tools = FakeTools(refund=80_000)
    async with engine(tools) as parts:
        expiring = await take(parts)
        await drive(parts, expiring)
        tools.script["get_order"] = [rejected("rate_limited")]
        retrying = await take(parts, order_id="A-2")
        await drive(parts, retrying)
        advance_clock(parts, 24 * 3600)
        due: list[UUID] = []

        async def wake(connection: Any, workflow_id: UUID) -> None:
            due.append(workflow_id)

        assert await run_once(parts, wake) == 1
        assert due == [retrying]
        await attend(parts, retrying, reached=False)
        assert [await end_late(parts) for _ in range(2)] == [1, 0]
        states = dict(await rows(parts, "SELECT workflow_id, state FROM workflow"))
        moved_by = await rows(
            parts,
            "SELECT m.event, m.actor FROM checkpoint JOIN legal_transition m USING (move_id) "
            "WHERE workflow_id = %(id)s ORDER BY seq DESC LIMIT 1",
            id=expiring,
        )
    assert states == {expiring: "EXPIRED", retrying: "RETRY_WAIT"}
    assert moved_by == [("expired", "timer")]
    assert tools.sent("get_order") == 2


@asynchronous
async def test_many_that_nobody_approved_end_in_bounded_groups_the_oldest_first_and_no_approved_one_among_them():
    async with engine(FakeTools(refund=80_000), approvers=APPROVERS) as parts:
        trust(parts, "tanaka")
        ids = [await take(parts, request_id=f"r-{n}", order_id=f"A-{n}") for n in range(130)]
        for workflow_id in ids:
            await drive(parts, workflow_id)
        approved = ids.pop()
        await decide(parts, approved)
        with owners(parts) as sql:
            advance_clock(parts, 24 * 3600)
            counted = sql.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone() or (0,)
            assert await end_late(parts) == 100
            after = sql.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone() or (0,)
            assert after[0] - counted[0] < 10  # commits
        first = await rows(parts, "SELECT workflow_id FROM workflow WHERE state = 'EXPIRED' ORDER BY workflow_id")
        assert [one for (one,) in first] == sorted(ids[:100])
        assert await end_late(parts) == 29
        states = dict(await rows(parts, "SELECT workflow_id, state FROM workflow"))
    assert states == {**dict.fromkeys(ids, "EXPIRED"), approved: "APPROVED"}


@asynchronous
async def test_two_sweepers_that_meet_end_each_case_once():
    async with engine(FakeTools(refund=80_000)) as parts:
        for n in range(20):
            await drive(parts, await take(parts, request_id=f"r-{n}", order_id=f"A-{n}"))
        advance_clock(parts, 24 * 3600)
        await asyncio.gather(end_late(parts), end_late(replace(parts, owner="another")))
        ended = await rows(
            parts, "SELECT count(*), count(DISTINCT workflow_id) FROM checkpoint JOIN legal_transition m "
            "USING (move_id) WHERE m.event = 'expired'",
        )  # fmt: skip
        assert ended == [(20, 20)]
