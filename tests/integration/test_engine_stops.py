"""A stop, a withdrawn right or a removed tool holds from the moment it commits, whatever was offered before."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from host.domain.control import Control
from host.domain.principals import AuthorizationSet
from host.domain.proposals import PlannerView
from host.engine.drive import drive
from host.engine.parts import Parts
from host.engine.sweep import run_once
from host.store.errors import StoppedError
from host.workflows.returns import RETURNS
from tests.support.engine import DESK, advance_clock, asynchronous, engage, engine, no_wake, owners, rows, settle, take
from tests.support.fake_tools import FakeTools, unknown
from tests.support.scripted_planner import ScriptedPlanner

WAITING = "SELECT wake_reason, control_state, state FROM workflow"


def before_proposing(state: str, act: Any) -> ScriptedPlanner:
    """A planner during whose thinking something happens, in one state."""

    def word(view: PlannerView) -> Any:
        if view.state == state:
            act()
        return RETURNS.propose(view)

    return ScriptedPlanner(always=word)


@pytest.mark.parametrize("missing", [False, True], ids=["engaged", "row missing"])
def test_invariant_6_a_stop_between_proposal_and_commit_lets_no_intent_be_written(missing):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:

            def stop() -> None:
                if missing:
                    with owners(parts) as connection:
                        connection.execute("DELETE FROM stop WHERE scope = 'updates'")
                else:
                    engage(parts, "updates")

            planner = before_proposing("ELIGIBLE", stop)
            stopped = replace(parts, planner=planner)
            workflow_id = await take(parts)
            state = await drive(stopped, workflow_id)
            effects = await rows(parts, "SELECT count(*) FROM effect")
            call = await rows(parts, "SELECT tool, execution_state, started_at FROM call ORDER BY step DESC LIMIT 1")
            waiting = await rows(parts, WAITING)
        assert (state.task.state, state.control.control) == ("ELIGIBLE", Control.TOOL_PROPOSED)
        assert effects == [(0,)]
        assert call == [("create_return", "requested", None)]
        assert waiting == [("stopped", "tool_proposed", "ELIGIBLE")]
        assert tools.executed == []

    run()


@asynchronous
async def test_after_the_stop_the_stored_call_goes_on_and_the_planner_is_not_asked_again():
    tools = FakeTools()
    async with engine(tools) as parts:
        planner = before_proposing("ELIGIBLE", lambda: engage(parts, "updates"))
        stopped = replace(parts, planner=planner)
        workflow_id = await take(parts)
        await drive(stopped, workflow_id)
        asked = [view.state for view in planner.views]
        engage(parts, "updates", engaged=False)
        advance_clock(parts, 5.1)
        state = await drive(replace(parts, planner=ScriptedPlanner()), workflow_id)
    assert asked == ["RECEIVED", "ORDER_VERIFIED", "ELIGIBLE"]
    assert state.task.state == "COMPLETED"
    assert [call.call_id.rsplit("_", 1)[1] for call in state.evidence.calls] == ["1", "2", "3", "4"]


@asynchronous
async def test_a_stop_before_the_offer_lets_a_case_read_and_wait():
    tools, planner = FakeTools(), ScriptedPlanner()
    async with engine(tools, planner) as parts:
        engage(parts, "updates")
        workflow_id = await take(parts)
        state = await drive(parts, workflow_id)
        waiting = await rows(parts, WAITING)
        engage(parts, "updates", engaged=False)
        advance_clock(parts, 5.1)
        done = await drive(parts, workflow_id)
    assert state.task.state == "ELIGIBLE"
    assert waiting == [("stopped", "planning", "ELIGIBLE")]
    assert [view.state for view in planner.views] == ["RECEIVED", "ORDER_VERIFIED", "ELIGIBLE", "RETURN_CREATED"]
    assert done.task.state == "COMPLETED"


@asynchronous
async def test_a_stop_is_a_wait_and_no_state_and_costs_neither_budget_nor_history():
    async with engine(FakeTools()) as parts:
        engage(parts, "updates")
        workflow_id = await take(parts)
        first = await drive(parts, workflow_id)
        advance_clock(parts, 3600)
        with owners(parts) as connection:
            connection.execute("UPDATE workflow SET wake_at = clock_now()")
        again = await drive(parts, workflow_id)
    assert again.task.state == first.task.state
    assert again.trace.seq == first.trace.seq
    assert again.control.active_ms - first.control.active_ms < 5000


@asynchronous
async def test_while_the_stop_lasts_nobody_is_woken_who_waits_for_it_and_afterwards_all_are():
    async with engine(FakeTools()) as parts:
        engage(parts, "updates")
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        advance_clock(parts, 60)
        assert await run_once(parts, no_wake) == 0
        engage(parts, "updates", engaged=False)
        assert await run_once(parts, no_wake) == 1


@asynchronous
async def test_invariant_6_an_effect_whose_intent_was_committed_before_the_stop_is_finished_and_recorded():
    tools = FakeTools()
    async with engine(tools) as parts:

        def stopped_meanwhile(request: Any) -> Any:
            engage(parts, "updates")
            return tools.then(unknown())(request)

        tools.script["create_return"] = [stopped_meanwhile]
        state = await drive(parts, await take(parts))
        effects = await rows(parts, "SELECT name, outcome, verified_at IS NOT NULL FROM effect")
    assert state.task.state == "RETURN_CREATED"
    assert effects == [("create_return", "succeeded", True)]
    assert tools.notices == {}


@asynchronous
async def test_a_resend_is_a_new_intent_and_a_stop_forbids_it():
    tools = FakeTools()
    async with engine(tools) as parts:

        def stopped_meanwhile(request: Any) -> Any:
            engage(parts, "updates")
            return unknown()(request)

        tools.script["create_return"] = [stopped_meanwhile]
        workflow_id = await take(parts)
        state = await drive(parts, workflow_id)
        effects = await rows(parts, "SELECT attempt, outcome FROM effect")
        assert (state.task.state, state.control.control) == ("ELIGIBLE", Control.TOOL_PROPOSED)
        assert effects == [(1, "absent")]
        engage(parts, "updates", engaged=False)
        advance_clock(parts, 5.1)
        done = await drive(parts, workflow_id)
    assert done.task.state == "COMPLETED"
    assert tools.sent("create_return") == 2


@pytest.mark.parametrize("missing", [False, True], ids=["engaged", "row missing"])
def test_a_stop_of_reads_holds_every_call_and_lets_what_is_in_doubt_be_looked_up(missing):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:

            def stopped_meanwhile(request: Any) -> Any:
                if missing:
                    with owners(parts) as connection:
                        connection.execute("DELETE FROM stop WHERE scope = 'reads'")
                else:
                    engage(parts, "reads")
                return tools.then(unknown())(request)

            tools.script["create_return"] = [stopped_meanwhile]
            state = await drive(parts, await take(parts))
            untouched = await drive(parts, await take(parts, request_id="second"))
            waiting = await rows(parts, WAITING + " ORDER BY created_at")
        assert state.task.state == "RETURN_CREATED"
        assert untouched.task.state == "RECEIVED"
        assert [reason for reason, *_ in waiting] == ["stopped_reads", "stopped_reads"]
        assert tools.sent("get_order") == 1

    run()


@asynchronous
async def test_reads_stopped_between_offer_and_commit_let_no_read_leave():
    tools = FakeTools()
    async with engine(tools) as parts:
        planner = before_proposing("ORDER_VERIFIED", lambda: engage(parts, "reads"))
        state = await drive(replace(parts, planner=planner), await take(parts))
        waiting = await rows(parts, WAITING)
    assert waiting == [("stopped_reads", "tool_proposed", "ORDER_VERIFIED")]
    assert tools.sent("check_return_policy") == 0
    assert state.control.control is Control.TOOL_PROPOSED


@asynchronous
async def test_with_new_work_stopped_no_case_is_taken_in_but_a_known_one_is_found():
    async with engine(FakeTools()) as parts:
        known = await take(parts, request_id="known")
        engage(parts, "new_work")
        assert await take(parts, request_id="known") == known
        with pytest.raises(StoppedError):
            await take(parts, request_id="new")
        with owners(parts) as connection:
            connection.execute("DELETE FROM stop")
        with pytest.raises(StoppedError):
            await take(parts, request_id="new")
        assert await rows(parts, "SELECT count(*) FROM workflow") == [(1,)]


@asynchronous
async def test_invariant_6_a_stop_waits_for_an_intent_that_is_committing_and_nothing_commits_after_it():
    """The stop's transaction holds the lock exclusively; an intent holds it shared until it has committed."""
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        with owners(parts) as operator:
            operator.autocommit = False
            operator.execute("SELECT pg_advisory_xact_lock(stop_lock_key())")
            operator.execute("UPDATE stop SET engaged = true WHERE scope = 'updates'")
            driving = asyncio.create_task(drive(parts, workflow_id))
            await _blocked(parts)
            operator.commit()
        state = await driving
        effects = await rows(parts, "SELECT count(*) FROM effect")
    assert state.task.state == "ELIGIBLE"
    assert effects == [(0,)]
    assert tools.executed == []


async def _blocked(parts: Parts) -> None:
    """Wait until a commit stands behind the stop's lock."""
    for _ in range(1000):
        if await rows(parts, "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("nothing waits for the stop")


def revoked(parts: Parts, **changes: Any) -> AuthorizationSet:
    return parts.authorization.model_copy(update={"principals": (DESK.model_copy(update=changes),)})


CHANGES = ("tenant", "scope", "catalogue", "principal", "listing", "state", "budget", "resource")


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_taken_away_between_offer_and_call_is_denied_for_its_own_reason_with_nothing_sent(what):
    """The stored call is judged again, as the world is now."""

    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            planner = before_proposing("ELIGIBLE", lambda: engage(parts, "updates"))
            workflow_id = await take(parts)
            await drive(replace(parts, planner=planner), workflow_id)
            engage(parts, "updates", engaged=False)
            advance_clock(parts, 5.1)
            state = await drive(taken_away(parts, tools, what), workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", REASONS[what])
        assert tools.executed == []
        assert tools.sent("create_return") == 0

    run()


REASONS = {
    "tenant": "foreign_tenant", "scope": "scope_missing", "catalogue": "not_in_catalogue",
    "principal": "not_in_catalogue", "listing": "tool_unavailable", "state": "tool_not_in_state", "budget": "limit",
    "resource": "foreign_resource",
}  # fmt: skip


def taken_away(parts: Parts, tools: FakeTools, what: str) -> Parts:
    """The same engine in a world that has changed in one point."""
    ((key, kind),) = parts.kinds.items()
    match what:
        case "tenant":
            return replace(parts, authorization=revoked(parts, tenant_id="hoshi-jp"))
        case "scope":
            return replace(parts, authorization=revoked(parts, scopes=frozenset()))
        case "catalogue":
            return replace(parts, authorization=revoked(parts, tools=frozenset({"get_order"})))
        case "principal":
            return replace(parts, authorization=parts.authorization.model_copy(update={"principals": ()}))
        case "listing":
            tools.names -= {"create_return"}
        case "state":
            narrow = replace(kind.workflow, tools={**kind.workflow.tools, "ELIGIBLE": ("get_order",)})
            return replace(parts, kinds={key: replace(kind, workflow=narrow)})
        case "budget":
            with owners(parts) as connection:
                connection.execute("UPDATE workflow SET active_ms = 90000")
        case "resource":
            with owners(parts) as connection:
                connection.execute("SET session_replication_role = replica")
                connection.execute("UPDATE workflow SET resource = 'A-2'")
    return parts


@asynchronous
async def test_a_tool_that_the_server_no_longer_lists_is_offered_to_nobody():
    tools = FakeTools()
    tools.names -= {"send_return_notice"}
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "tool_unavailable")
    assert len(tools.returns) == 1
