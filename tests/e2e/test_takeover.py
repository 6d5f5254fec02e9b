"""What this proves: whoever is late, cut off, paused or wrong about the time does no harm, and the case goes on.

Workers are paused past their lease, requests are held on the wire and arrive late, answers are lost, and a case is
always driven to its end by whoever holds the newest fence, with one return and one notice.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from uuid import UUID

import pytest

from host.evaluation.crash.names import AT, BY
from host.stack.pids import Identity
from host.stack.roles import Side
from shared_contracts.tools import TOOLS
from tests.crash.proxy import Act, Proxy, proxy
from tests.crash.stage import Stage

pytest_plugins = ["tests.crash.fixtures"]
pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

DONE = ("COMPLETED", "notice_verified")
RETURN, NOTICE, READ, RULES = "create_return", "send_return_notice", "get_order", "check_return_policy"
LIST = "tools/list"
LOOK_UPS = {RETURN: "find_return", NOTICE: "find_notice"}


@pytest.fixture
def way(stage: Stage) -> Iterator[Proxy]:
    with proxy(stage.stand.port) as made:
        yield made


@pytest.fixture(autouse=True)
def alone(stage: Stage) -> None:
    """The tool server is there, and no worker but those that the test starts."""
    stage.keep("server")
    stage.drop("worker")


def logged(stage: Stage, workflow: UUID, tool: str) -> list[str]:
    """What the tool server says of its calls of one tool for one case."""
    query = "SELECT outcome FROM calls.log WHERE task_id = %s AND tool = %s AND outcome <> 'begun' ORDER BY seq"
    return [row[0] for row in stage.stand.rows(Side.TOOLS, "tools_auditor", query, str(workflow), tool)]


def lease_is_out(stage: Stage, workflow: UUID) -> None:
    stage.until("SELECT lease_until < clock_now() FROM workflow WHERE workflow_id = %(id)s", id=workflow)


def goes_on(stage: Stage, worker: Identity) -> None:
    """Wake a stopped worker, and let it do another case: what it had in hand lies behind it then."""
    worker.signal(signal.SIGCONT)
    assert stage.ended(stage.take()) == [DONE]


# -- a worker that is paused past its lease ---------------------------------------------------------------------


def test_a_paused_worker_whose_call_is_on_the_wire_loses_its_case_and_its_late_call_is_refused(
    stage: Stage, way: Proxy
) -> None:
    way.next(RETURN, Act.HOLD)
    first = stage.started(stage.behind(way, "first"))
    workflow = stage.take()
    way.wait_held(RETURN)
    first.signal(signal.SIGSTOP)
    lease_is_out(stage, workflow)

    second = stage.worker("second")
    assert stage.ended(workflow) == [DONE]
    version = stage.version(workflow)
    way.release(RETURN)

    assert logged(stage, workflow, RETURN) == ["ok", "attempt_superseded"]
    stage.kill(second)
    goes_on(stage, first)
    assert stage.version(workflow) == version
    assert stage.effects(workflow) == (1, 1)
    assert stage.shown(workflow)["status"] == "completed"


def test_a_paused_worker_that_hears_late_of_its_own_success_writes_nothing_more(stage: Stage, way: Proxy) -> None:
    way.next(RETURN, Act.HOLD_ANSWER)
    first = stage.started(stage.behind(way, "first"))
    workflow = stage.take()
    way.wait_held(RETURN)
    first.signal(signal.SIGSTOP)
    lease_is_out(stage, workflow)

    second = stage.worker("second")
    assert stage.ended(workflow) == [DONE]
    version = stage.version(workflow)
    way.release(RETURN)
    stage.kill(second)
    goes_on(stage, first)

    assert logged(stage, workflow, RETURN) == ["ok"]
    assert stage.version(workflow) == version
    assert stage.effects(workflow) == (1, 1)
    adopted = [call for call in stage.shown(workflow)["calls"] if call["tool"] == RETURN]
    assert [attempt["outcome"] for attempt in adopted[0]["attempts"]] == ["cut_off"]


@pytest.mark.parametrize("commits", [1, 2, 3, 4, 5, 6])
def test_a_worker_that_was_paused_before_it_sent_sends_nothing_after_its_lease(stage: Stage, commits: int) -> None:
    first = stage.started(stage.stand.worker("first"), **{AT: f"after commit_steps {commits}", BY: "SIGSTOP"})
    workflow = stage.take()
    stage.until("SELECT count(*) > 0 FROM attempt WHERE workflow_id = %(id)s AND outcome IS NULL", id=workflow)
    lease_is_out(stage, workflow)
    ((announced,),) = stage.rows("SELECT jti FROM attempt WHERE workflow_id = %(id)s AND outcome IS NULL", id=workflow)

    second = stage.worker("second")
    assert stage.ended(workflow) == [DONE]
    stage.kill(second)
    goes_on(stage, first)

    sent = "SELECT count(*) FROM calls.log WHERE jti = %s"
    assert stage.stand.rows(Side.TOOLS, "tools_auditor", sent, announced) == [(0,)]
    assert stage.effects(workflow) == (1, 1)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_that_dies_while_it_keeps_its_lease_is_taken_over_from(stage: Stage, way: Proxy, when: str) -> None:
    way.next(RETURN, Act.HOLD_ANSWER)
    first = stage.started(stage.behind(way, "first"), **{AT: f"{when} renew_lease 1"})
    workflow = stage.take()
    way.wait_held(RETURN)  # the call lasts, so that the lease is renewed
    stage.gone(first)

    stage.worker("second")
    assert stage.ended(workflow) == [DONE]
    assert logged(stage, workflow, RETURN) == ["ok"]
    assert stage.effects(workflow) == (1, 1)


# -- requests and answers that are lost, held or late -----------------------------------------------------------


@pytest.mark.parametrize("tool", [RETURN, NOTICE])
def test_a_request_that_arrives_after_its_key_was_looked_up_is_refused(stage: Stage, way: Proxy, tool: str) -> None:
    way.next(tool, Act.LEAVE_BEHIND, Act.HOLD)
    stage.started(stage.behind(way))
    workflow = stage.take()
    way.wait_held(tool, 2)  # the first was left behind, its key was looked up, and the resend waits here too
    assert logged(stage, workflow, LOOK_UPS[tool]) == ["ok"]

    way.release(tool)
    assert logged(stage, workflow, tool) == ["attempt_superseded"]
    assert stage.effects(workflow) == (int(tool == NOTICE), 0)
    way.release(tool)

    assert stage.ended(workflow) == [DONE]
    assert logged(stage, workflow, tool) == ["attempt_superseded", "ok"]
    assert stage.effects(workflow) == (1, 1)
    assert stage.shown(workflow)["state"] == "COMPLETED"


@pytest.mark.parametrize("tool", [RETURN, NOTICE])
@pytest.mark.parametrize("act", [Act.LOSE_ANSWER, Act.LATE_GATEWAY_TIMEOUT])
def test_a_write_whose_answer_was_lost_is_found_and_not_repeated(stage: Stage, way: Proxy, tool: str, act: Act) -> None:
    way.next(tool, act)
    stage.started(stage.behind(way))
    workflow = stage.take()

    assert stage.ended(workflow) == [DONE]
    assert logged(stage, workflow, tool) == ["ok"]
    assert stage.effects(workflow) == (1, 1)
    lost = next(call for call in stage.shown(workflow)["calls"] if call["tool"] == tool)
    assert [attempt["outcome"] for attempt in lost["attempts"]] == ["unknown"]
    assert lost["engine_reads"][0]["purpose"] == "reconciliation"


@pytest.mark.parametrize("tool", [RETURN, NOTICE])
@pytest.mark.parametrize("act", [Act.LOSE, Act.GATEWAY_TIMEOUT])
def test_a_write_that_never_arrived_is_proved_absent_and_sent_once_more(
    stage: Stage, way: Proxy, tool: str, act: Act
) -> None:
    way.next(tool, act)
    stage.started(stage.behind(way))
    workflow = stage.take()

    assert stage.ended(workflow) == [DONE]
    assert logged(stage, workflow, tool) == ["ok"]
    assert stage.effects(workflow) == (1, 1)
    resent = next(call for call in stage.shown(workflow)["calls"] if call["tool"] == tool)
    assert [attempt["outcome"] for attempt in resent["attempts"]] == ["unknown", "success"]


def test_a_write_that_never_arrives_twice_goes_to_a_person_and_nothing_was_done(stage: Stage, way: Proxy) -> None:
    way.next(RETURN, Act.LOSE, Act.LOSE)
    stage.started(stage.behind(way))
    workflow = stage.take()

    assert stage.ended(workflow) == [("NEEDS_REVIEW", "attempts_exhausted")]
    assert stage.effects(workflow) == (0, 0)
    assert stage.shown(workflow)["status"] == "needs_human"


@pytest.mark.parametrize("act", [Act.LOSE, Act.LOSE_ANSWER, Act.GATEWAY_TIMEOUT, Act.LATE_GATEWAY_TIMEOUT])
def test_a_read_without_an_answer_is_made_twice_and_no_more(stage: Stage, way: Proxy, act: Act) -> None:
    way.next(READ, act)
    stage.started(stage.behind(way))
    once = stage.take()
    assert stage.ended(once) == [DONE]

    way.next(READ, act, act, act)
    twice = stage.take()
    assert stage.ended(twice) == [("NEEDS_REVIEW", "attempts_exhausted")]
    assert stage.outcomes(twice) == ["get_order no_answer"] * 2
    assert stage.effects(twice) == (0, 0)


# -- a tool that an operator removes ----------------------------------------------------------------------------


def test_a_tool_that_is_disabled_under_way_is_refused_at_its_next_call_and_then_not_called_any_more(
    stage: Stage, way: Proxy
) -> None:
    owner = {"KESSAI_TOOLS_MIGRATE_DSN": stage.stand.role(Side.TOOLS, "tools_owner")}
    way.next(LIST, Act.PASS, Act.HOLD)  # the worker cannot hear of it before its next call
    way.next(RULES, Act.HOLD)
    stage.started(stage.behind(way))
    under_way = stage.take()
    way.wait_held(RULES)
    try:
        stage.command("disable", "tool_server.cli", "disable", RETURN, **owner)
        way.release(RULES)
        assert stage.ended(under_way) == [("NEEDS_REVIEW", "tool_disabled")]
        assert logged(stage, under_way, RETURN) == ["tool_disabled"]
        assert stage.shown(under_way)["status"] == "needs_human"

        after = stage.take()
        assert stage.ended(after)[0][0] == "NEEDS_REVIEW"
        assert [outcome.split()[0] for outcome in stage.outcomes(after)] == [READ, RULES]
        assert stage.effects(after) == stage.effects(under_way) == (0, 0)
    finally:
        stage.command("enable", "tool_server.cli", "enable", RETURN, **owner)
    way.wait_held(LIST)
    way.release(LIST)
    stage.listed_again(way)
    assert stage.ended(stage.take()) == [DONE]


def test_updates_that_are_removed_between_two_cases_are_offered_no_more_and_nobody_is_started_anew(
    stage: Stage, way: Proxy
) -> None:
    owner = {"KESSAI_TOOLS_MIGRATE_DSN": stage.stand.role(Side.TOOLS, "tools_owner")}
    updates = sorted(name for name, tool in TOOLS.items() if tool.writes)
    server, worker = stage.keep("server"), stage.started(stage.behind(way))
    assert stage.ended(stage.take()) == [DONE]
    try:
        for tool in updates:
            stage.command("disable", "tool_server.cli", "disable", tool, **owner)
        stage.listed_again(way)
        stage.listed_again(way)  # the first may have been answered before the last tool was removed
        without = [stage.take() for _ in range(2)]
        assert stage.ended(*without) == [("NEEDS_REVIEW", "tool_unavailable")] * 2
        for workflow in without:
            assert stage.outcomes(workflow) == [f"{READ} success", f"{RULES} success"]
            assert [call["tool"] for call in stage.shown(workflow)["draft"]["calls"]] == [RETURN, NOTICE]
            assert stage.effects(workflow) == (0, 0)
            assert [logged(stage, workflow, tool) for tool in updates] == [[]] * len(updates)
    finally:
        for tool in updates:
            stage.command("enable", "tool_server.cli", "enable", tool, **owner)
    stage.listed_again(way)
    stage.listed_again(way)
    assert stage.ended(stage.take()) == [DONE]
    assert (server.alive(), worker.alive()) == (True, True)
