"""What this proves: two workers share one queue, however often they are woken, and one may leave in the middle.

Each case is woken several times over, so that both workers meet the same rows; the rows decide. A worker that is asked
to end finishes or hands over what it has, and nothing is lost or done twice.
"""

from __future__ import annotations

import signal
from collections import Counter
from uuid import UUID

import pytest

from tests.crash.inflight import owner_of
from tests.crash.stage import Stage

pytest_plugins = ["tests.crash.fixtures"]
pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("crash-stage")]

DONE = ("COMPLETED", "notice_verified")
CASES, WAKE_UPS = 40, 4
SECONDS = 90.0


@pytest.fixture(autouse=True)
def alone(stage: Stage) -> None:
    """The tool server is there, and no worker but those that the test starts."""
    stage.keep("server")
    stage.drop("worker")


async def _wake(stage: Stage, workflow: UUID) -> None:
    async with stage.desk.pool.connection() as connection, connection.transaction():
        await stage.desk.wake(connection, workflow)


def woken_often(stage: Stage) -> list[UUID]:
    """Forty cases, and for each several wake-ups, in turn."""
    cases = [stage.take() for _ in range(CASES)]
    for _ in range(WAKE_UPS - 1):
        for case in cases:
            stage.run(_wake(stage, case))
    return cases


def owners(stage: Stage) -> set[str]:
    return {row[0] for row in stage.rows("SELECT DISTINCT lease_owner FROM workflow WHERE lease_owner IS NOT NULL")}


def requests(stage: Stage, cases: list[UUID]) -> Counter[str]:
    """How many requests of each kind left for all of them."""
    query = "SELECT tool, count(*) FROM attempt WHERE workflow_id = ANY (%(ids)s) GROUP BY tool"
    return Counter(dict(stage.rows(query, ids=cases)))


def test_cases_that_are_woken_many_times_are_done_once(stage: Stage) -> None:
    workers = [stage.worker("first"), stage.worker("second")]
    for worker in workers:
        worker.signal(signal.SIGSTOP)  # so that both find all the work, however slowly it was handed in
    cases = woken_often(stage)
    for worker in workers:
        worker.signal(signal.SIGCONT)
    open_cases = "SELECT count(*) > 0 FROM workflow WHERE workflow_id = ANY (%(ids)s) AND control_state <> 'completed'"
    seen = owners(stage)
    while stage.rows(open_cases, ids=cases) == [(True,)]:
        seen |= owners(stage)

    assert seen == {owner_of(worker) for worker in workers}
    assert stage.ended(*cases, within_seconds=SECONDS) == [DONE] * CASES
    assert [stage.effects(case) for case in cases] == [(1, 1)] * CASES
    tools = ("get_order", "check_return_policy", "create_return", "get_return", "send_return_notice", "find_notice")
    assert requests(stage, cases) == dict.fromkeys(tools, CASES)
    assert {stage.recoveries(case) for case in cases} == {0}
    stage.until("SELECT count(*) = 0 FROM procrastinate_jobs")


def test_a_worker_that_is_asked_to_end_hands_over_without_loss(stage: Stage) -> None:
    cases = woken_often(stage)
    first, second = stage.worker("first"), stage.worker("second")
    held = "SELECT count(*) > 0 FROM workflow WHERE lease_owner = %(owner)s AND lease_until > clock_now()"
    stage.until(held, owner=owner_of(first))

    first.signal(signal.SIGTERM)
    stage.gone(first)

    assert stage.stand.said("first").endswith("drained\n")
    assert stage.rows("SELECT count(*) FROM workflow WHERE lease_owner = %(owner)s", owner=owner_of(first)) == [(0,)]
    assert stage.ended(*cases, within_seconds=SECONDS) == [DONE] * CASES
    assert [stage.effects(case) for case in cases] == [(1, 1)] * CASES
    assert {outcome.split()[1] for case in cases for outcome in stage.outcomes(case)} == {"success"}
    assert second.alive()


def test_a_worker_that_ends_alone_leaves_the_rest_to_the_next(stage: Stage) -> None:
    cases = woken_often(stage)
    first = stage.worker("first")
    stage.until("SELECT count(*) > 0 FROM workflow WHERE lease_owner = %(owner)s", owner=owner_of(first))
    first.signal(signal.SIGTERM)
    stage.gone(first)
    open_cases = "SELECT count(*) > 0 FROM workflow WHERE workflow_id = ANY (%(ids)s) AND control_state <> 'completed'"
    assert stage.rows(open_cases, ids=cases) == [(True,)], "it ended in the middle"

    stage.worker("second")
    assert stage.ended(*cases, within_seconds=SECONDS) == [DONE] * CASES
    assert [stage.effects(case) for case in cases] == [(1, 1)] * CASES
    assert {stage.recoveries(case) for case in cases} == {0}
