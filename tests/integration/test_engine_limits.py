"""The hard limits, each at its boundary: reaching one hands the case over, and nobody is asked to go on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, LiteralString

import pytest

from host.domain.control import Control
from host.domain.proposals import Final, NeedsHuman, PlannerFault
from host.engine.drive import OLDEST_SECONDS_MAX, QUEUE_MAX, drive
from host.engine.parts import Kind, Parts
from host.store import ledger
from host.workflows.returns import RETURNS
from tests.support.engine import advance_clock, asynchronous, engine, owners, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown
from tests.support.scripted_planner import ScriptedPlanner, calling, with_arguments

BUSY = [rejected("rate_limited")]


def limited(parts: Parts, **limits: Any) -> Parts:
    """The same engine with other limits: a boundary that the table's own numbers cannot reach by two tools."""
    ((key, kind),) = parts.kinds.items()
    other = replace(kind.workflow, limits=replace(kind.workflow.limits, **limits))
    return replace(parts, kinds={key: Kind(other, kind.moves)})


def seven_needed() -> FakeTools:
    """Two reads twice each, the return twice: six. The notice would be the seventh."""
    return FakeTools(script={"get_order": BUSY[:], "check_return_policy": BUSY[:], "create_return": BUSY[:]})


STOPPED: LiteralString = "SELECT scope FROM stop WHERE engaged ORDER BY scope"


@asynchronous
async def test_the_sixth_call_is_made_and_a_seventh_is_not_and_stops_the_others():
    tools = seven_needed()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        state = await settle(parts, workflow_id)
        history = await rows(parts, "SELECT tool FROM call ORDER BY step")
        stopped = await rows(parts, STOPPED)
        logged = await rows(parts, "SELECT act, cause, actor, workflow_id, reason FROM stop_log")

    calls = [r.tool.name for r in tools.requests if r.tool.name not in {"get_return", "find_return"}]
    assert calls == ["get_order"] * 2 + ["check_return_policy"] * 2 + ["create_return"] * 2
    assert (state.task.state, state.task.reason, state.calls_made()) == ("NEEDS_REVIEW", "limit", 6)
    assert state.control.control is Control.NEEDS_HUMAN
    assert [tool for (tool,) in history] == ["get_order", "check_return_policy", "create_return"]
    assert tools.notices == {}
    assert stopped == [("new_work",), ("parallel",), ("updates",)]
    assert logged == [("stop", "call_limit", "engine", workflow_id, "the case needs more than 6 calls")]


@asynchronous
async def test_with_one_retry_fewer_the_notice_is_the_sixth_call_and_the_case_completes():
    tools = FakeTools(script={"get_order": BUSY[:], "create_return": BUSY[:]})
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert (state.task.state, state.calls_made()) == ("COMPLETED", 6)


@asynchronous
async def test_a_tool_is_called_twice_and_not_a_third_time_whatever_its_contract_would_allow():
    tools = FakeTools(script={"get_order": BUSY * 9})
    async with engine(tools) as parts:
        patient = replace(
            parts, registry={**parts.registry, "get_order": replace(parts.registry["get_order"], attempts_max=9)}
        )
        state = await settle(patient, await take(parts))
        stopped = await rows(parts, STOPPED)
    assert tools.sent("get_order") == 2
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "limit")
    assert stopped == []  # two of one tool are no seventh call


@asynchronous
async def test_ninety_seconds_at_work_are_the_end_of_it_and_waiting_is_no_work():
    slow = FakeTools()
    async with engine(slow) as parts:

        async def late(request: Any) -> Any:
            advance_clock(parts, 89.0)
            return slow.honest(request)

        slow.script["get_order"] = [late]
        state = await drive(parts, await take(parts))
        assert state.task.state == "COMPLETED"
        assert 89_000 <= state.control.active_ms < 90_000


@asynchronous
async def test_past_ninety_seconds_no_call_is_made_any_more():
    slow = FakeTools()
    async with engine(slow, lease_seconds=300) as parts:

        async def late(request: Any) -> Any:
            advance_clock(parts, 50.0)
            return slow.honest(request)

        slow.script.update({"get_order": [late], "check_return_policy": [late]})
        state = await drive(parts, await take(parts))
        ((decisions,),) = await rows(parts, "SELECT count(*) FROM decision WHERE subject = 'business'")
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "limit")
    assert [r.tool.name for r in slow.requests] == ["get_order", "check_return_policy"]
    assert slow.executed == []
    assert decisions == 1


@asynchronous
async def test_a_transition_that_took_longer_than_its_time_is_refused_and_recorded():
    """The answer came, and it was a good one; its state was entered more than ninety seconds of work ago."""
    slow = FakeTools()
    async with engine(slow) as parts:

        async def late(request: Any) -> Any:
            await asyncio.sleep(0.1)  # the time that it takes, and nothing that is waited for
            return slow.honest(request)

        slow.script["get_order"] = [late]
        workflow_id = await take(parts)
        with owners(parts) as connection:
            connection.execute("UPDATE workflow SET active_ms = 89950")
        state = await drive(parts, workflow_id)
        last = await rows(
            parts,
            "SELECT m.event, c.reason, m.business_from FROM checkpoint c JOIN legal_transition m USING (move_id) "
            "ORDER BY seq DESC LIMIT 1",
        )
    assert state.task.state == "NEEDS_REVIEW"
    assert last == [("limit", "limit", "RECEIVED")]
    assert [r.tool.name for r in slow.requests] == ["get_order"]


@asynchronous
async def test_time_in_retry_and_without_a_worker_is_outside_the_ninety_seconds():
    tools = FakeTools(script={"get_order": BUSY[:], "check_return_policy": BUSY[:]})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        advance_clock(parts, 1000)
        await drive(parts, workflow_id)
        advance_clock(parts, 5000)
        await drive(parts, workflow_id)
        advance_clock(parts, 5000)
        state = await drive(parts, workflow_id)
    assert state.task.state == "COMPLETED"
    assert state.control.active_ms < 5000


def test_a_call_gets_the_least_of_its_own_timeout_the_ceiling_and_what_is_left():
    for spent, expected in ((0.0, 5.0), (88.0, 2.0), (89.95, 0.1)):

        @asynchronous
        async def run(spent: float = spent, expected: float = expected) -> None:
            tools = FakeTools()
            async with engine(tools) as parts:
                workflow_id = await take(parts)
                with owners(parts) as connection:
                    connection.execute("UPDATE workflow SET active_ms = %s", (int(spent * 1000),))
                await drive(parts, workflow_id)
            assert tools.requests[0].timeout_seconds == pytest.approx(expected, abs=0.09)

        run()


@asynchronous
async def test_the_general_ceiling_stands_behind_a_tools_own_timeout():
    tools = FakeTools()
    async with engine(tools) as parts:
        low = limited(parts, call_ceiling_seconds=3.0)
        await drive(low, await take(parts))
    assert {r.timeout_seconds for r in tools.requests} == {3.0}


@asynchronous
async def test_what_was_done_is_found_out_also_where_the_time_for_doing_it_is_up():
    tools = FakeTools()
    async with engine(tools) as parts:

        async def lost(request: Any) -> Any:
            advance_clock(parts, 89.0)
            return tools.then(unknown())(request)

        tools.script["create_return"] = [lost]
        state = await settle(parts, await take(parts))
    look_up = next(r for r in tools.requests if r.tool.name == "find_return")
    assert look_up.timeout_seconds == 5.0
    assert state.evidence.verified_ids().get("create_return") == "R-1"


WORDS: dict[str, Any] = {
    "no_call": PlannerFault("no_call", "-"),
    "several_calls": PlannerFault("several_calls", "-"),
    "cut_off": PlannerFault("cut_off", "-"),
    "malformed_turn": PlannerFault("malformed_turn", "-"),
    "unbacked_completion_claim": Final({"return_id": "R-1001"}, ("return://R-1001@1",)),
    "not_a_decision": "I have created the return R-1001.",
    "unknown_tool": calling("create-return", {"order_id": "A-1"}),
    "tool_not_in_state": calling("send_return_notice", {"order_id": "A-1", "return_id": "R-1"}),
    "arguments_invalid": calling("get_order", {"order_id": "A-1", "bank_account": "1234567"}),
    "call_id_invalid": calling("get_order", {"order_id": "A-1"}, ""),
}


@pytest.mark.parametrize("code", WORDS)
def test_three_refused_proposals_in_a_row_end_the_planners_part_and_two_do_not(code):
    @asynchronous
    async def run() -> None:
        for times, expected in ((2, "COMPLETED"), (3, "NEEDS_REVIEW")):
            tools, planner = FakeTools(), ScriptedPlanner([WORDS[code]] * times)
            async with engine(tools, planner) as parts:
                state = await drive(parts, await take(parts))
                refused = await rows(parts, "SELECT code, n FROM refusal ORDER BY n")
            assert state.task.state == expected
            assert refused == [(code, n) for n in range(1, times + 1)]
            assert [fault.code for fault in planner.views[times - 1].refusals] == [code] * (times - 1)
        assert (state.task.reason, state.control.control) == ("planner_exhausted", Control.FAILED)
        assert tools.requests == []

    run()


@asynchronous
async def test_six_refused_proposals_end_the_planners_part_also_where_none_three_were_in_a_row():
    tools = FakeTools()
    wrong = PlannerFault("no_call", "-")
    planner = ScriptedPlanner()
    planner.script = [wrong, wrong, RETURNS.propose, wrong, wrong, RETURNS.propose, wrong, RETURNS.propose, wrong]
    async with engine(tools, planner) as parts:
        state = await drive(parts, await take(parts))
    assert len(state.control.refusals) == 6
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "planner_exhausted")
    assert tools.sent("send_return_notice") == 0


@asynchronous
async def test_refusals_are_remembered_over_a_restart():
    tools = FakeTools(script={"get_order": BUSY[:]})
    wrong = PlannerFault("no_call", "-")
    async with engine(tools, ScriptedPlanner([wrong] * 2)) as parts:
        workflow_id = await take(parts)
        waiting = await drive(parts, workflow_id)
        assert waiting.task.state == "RETRY_WAIT"
        advance_clock(parts, 10)
        state = await drive(replace(parts, planner=ScriptedPlanner([wrong] * 4)), workflow_id)
    assert len(state.control.refusals) == 5
    assert state.task.reason == "planner_exhausted"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("model_refusal", "model_refusal"),
        ("planner_needs_human", "planner_needs_human"),
        ("unknown_effect", "planner_needs_human"),
        ("contract_broken", "planner_needs_human"),
        ("approved", "planner_needs_human"),
        ("COMPLETED", "planner_needs_human"),
    ],
)
def test_a_planner_hands_over_at_once_and_only_for_a_planners_reasons(said, reason):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools, ScriptedPlanner([NeedsHuman(said)])) as parts:
            state = await drive(parts, await take(parts))
        assert (state.task.state, state.control.control) == ("NEEDS_REVIEW", Control.NEEDS_HUMAN)
        assert state.task.reason == reason
        assert tools.requests == []

    run()


@asynchronous
async def test_an_action_that_succeeded_is_done_once_whatever_id_it_comes_under():
    """The same read again under a fresh id: the second is refused, the executor saw one."""
    tools = FakeTools()
    planner = ScriptedPlanner()
    planner.script = [RETURNS.propose, calling("get_order", {"order_id": "A-1"})]
    async with engine(tools, planner) as parts:
        ((key, kind),) = parts.kinds.items()
        open_state = replace(
            kind.workflow, tools={**kind.workflow.tools, "ORDER_VERIFIED": ("get_order", "check_return_policy")}
        )
        wide = replace(parts, kinds={key: Kind(open_state, kind.moves)})
        state = await drive(wide, await take(parts))
        refused = await rows(parts, "SELECT code FROM refusal")
    assert refused == [("repeated_action",)]
    assert tools.sent("get_order") == 1
    assert state.task.state == "COMPLETED"


@asynchronous
async def test_a_call_id_belongs_to_one_step_for_good():
    tools = FakeTools()
    planner = ScriptedPlanner([calling("get_order", {"order_id": "A-1"}, "call_0")])
    request = {"order_id": "A-1", "lines": [{"line_id": "1", "quantity": 1}], "reason": "changed_mind"}
    planner.script.append(calling("check_return_policy", request, "call_0"))
    async with engine(tools, planner) as parts:
        state = await drive(parts, await take(parts))
        refused = await rows(parts, "SELECT code, call_id, tool, arguments FROM refusal")
        ids = await rows(parts, "SELECT count(*), count(DISTINCT call_id) FROM call")
    assert refused == [("call_id_reused", "call_0", "check_return_policy", request)]
    assert ids == [(4, 4)]
    assert state.task.state == "COMPLETED"


@pytest.mark.parametrize(
    ("waiting", "oldest", "suspended"),
    [(200, 1.0, False), (201, 1.0, True), (1, 15 * 60 - 5, False), (1, 15 * 60 + 1, True), (0, 0, False)],
)
def test_automatic_retry_stops_above_two_hundred_waiting_or_fifteen_minutes_of_age(waiting, oldest, suspended):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={"get_order": BUSY[:]})
        async with engine(tools) as parts:
            mine = await take(parts)
            await crowd(parts, waiting, oldest)
            state = await drive(parts, mine)
        if suspended:
            assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "retry_suspended")
        else:
            assert state.task.state == "RETRY_WAIT"

    run()


async def crowd(parts: Parts, waiting: int, oldest_seconds: float) -> None:
    """Put so many due workflows beside the test's own, the oldest of them due for so long."""
    others = [await take(parts, request_id=f"w-{n}") for n in range(waiting)]
    with owners(parts) as connection:
        connection.execute(
            "UPDATE workflow SET wake_at = clock_now() - make_interval(secs => %s) WHERE workflow_id = ANY (%s)",
            (oldest_seconds, others),
        )
        connection.execute("UPDATE workflow SET wake_at = clock_now() WHERE NOT workflow_id = ANY (%s)", (others,))


def test_the_two_numbers_of_the_queue_are_these():
    assert (QUEUE_MAX, OLDEST_SECONDS_MAX) == (200, 900.0)


@asynchronous
async def test_the_queue_is_who_could_go_on_now_without_a_worker():
    """Not who waits for a person, for the end of a stop or for a later time; but also whom a dead worker holds."""
    async with engine(FakeTools(refund=80_000)) as parts:
        waiting_for_person = await take(parts, request_id="approval")
        await drive(parts, waiting_for_person)
        await take(parts, request_id="due")
        dead = await take(parts, request_id="dead")
        asleep = await take(parts, request_id="asleep")
        halted = await take(parts, request_id="halted")
        with owners(parts) as connection:
            connection.execute(
                "UPDATE workflow SET wake_at = clock_now() - interval '9 s' WHERE wake_reason = 'accepted'"
            )
            connection.execute(
                "UPDATE workflow SET wake_at = NULL, wake_reason = NULL, lease_owner = 'x', "
                "lease_until = clock_now() - interval '60 s' WHERE workflow_id = %s",
                (dead,),
            )
            connection.execute(
                "UPDATE workflow SET wake_at = clock_now() + interval '1 h' WHERE workflow_id = %s", (asleep,)
            )
            connection.execute("UPDATE workflow SET wake_reason = 'stopped' WHERE workflow_id = %s", (halted,))
        advance_clock(parts, 25 * 3600 - 3600 * 24.5)
        async with parts.pool.connection() as connection:
            queue = await ledger.queue(connection)
    assert queue.waiting == 2
    assert 60 <= queue.oldest_seconds < 1900


@asynchronous
async def test_steering_the_arguments_changes_nothing_that_is_bound():
    """Other lines, another order, another reason: a person at once, an alert, and no request."""
    for changes in ({"order_id": "A-2"}, {"lines": [{"line_id": "1", "quantity": 2}]}, {"reason": "defective"}):
        tools = FakeTools()
        planner = ScriptedPlanner([RETURNS.propose, with_arguments(**changes)])
        async with engine(tools, planner) as parts:
            state = await drive(parts, await take(parts))
            alerts = await rows(parts, "SELECT result, details FROM audit WHERE action = 'alert'")
            refused = await rows(parts, "SELECT code, tool, arguments FROM refusal")
        reason = "foreign_resource" if "order_id" in changes else "foreign_arguments"
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", reason)
        assert [alert for alert, _ in alerts] == [reason]
        assert [(code, tool) for code, tool, _ in refused] == [(reason, "check_return_policy")]
        assert refused[0][2] | changes == refused[0][2]
        assert [r.tool.name for r in tools.requests] == ["get_order"]
