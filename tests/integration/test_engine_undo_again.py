"""What undoing rests on is what is so now: a second order, a late or lost release, a deadline that nobody drives to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from host.domain.acting import By
from host.domain.outcome import Success
from host.domain.step import Step
from host.engine.drive import drive, load
from host.engine.parts import Parts
from host.engine.reapply import NotPossibleError
from host.engine.review import adopt, order_compensation, release
from host.engine.sweep import end_late
from host.engine.verify import unapproved
from tests.support.approvals import APPROVERS, desk
from tests.support.crash import DiedError
from tests.support.engine import (
    SCOPES,
    advance_clock,
    asynchronous,
    engage,
    engine,
    no_wake,
    owners,
    rows,
    settle,
    take,
)
from tests.support.fake_tools import FakeTools, rejected, unknown

SATO = By("sato", "operator", "sha256:of-a-test")
ENGAGED = "SELECT scope FROM stop WHERE engaged ORDER BY scope"
UNDONE = "SELECT state FROM compensation ORDER BY n"
AWAY = rejected("unavailable")


async def unverified(parts: Parts, tools: FakeTools) -> UUID:
    """A case that a person has, with a return that nobody could read back."""
    tools.script["get_return"] = [AWAY] * 4
    workflow_id = await take(parts)
    assert (await settle(parts, workflow_id)).task.state == "NEEDS_REVIEW"
    tools.script.clear()
    return workflow_id


async def order(parts: Parts, workflow_id: UUID) -> None:
    await order_compensation(desk(parts), workflow_id, SATO, "wrong", parts.registry)


def go_on(parts: Parts) -> None:
    for scope in SCOPES:
        engage(parts, scope, engaged=False)


@asynchronous
async def test_a_release_that_meets_a_driver_at_work_is_seen_by_it():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools)
        await order(parts, workflow_id)

        def die(request: Any) -> Any:
            tools.honest(request)
            raise DiedError

        tools.script["cancel_return"] = [die]
        with pytest.raises(DiedError):
            await drive(parts, workflow_id)
        advance_clock(parts, 20)
        engage(parts, "updates")

        async def released(request: Any) -> Any:
            await release(desk(parts), workflow_id, SATO)
            return tools.honest(request)

        tools.script["find_return"] = [released]
        state = await settle(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "compensated")
    assert tools.sent("cancel_return") == 1


@asynchronous
async def test_a_second_order_looks_at_what_hangs_on_the_return_now():
    tools = FakeTools(links={"accounting_entries": ["acc://1"]})
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools)
        await order(parts, workflow_id)
        assert (await settle(parts, workflow_id)).task.reason == "linked_entries"
        go_on(parts)
        tools.links = {}  # the accountant has taken it back
        await order(parts, workflow_id)
        assert (await settle(parts, workflow_id)).task.reason == "compensated"
    assert len(tools.cancelled) == 1


@asynchronous
async def test_a_second_order_cancels_nothing_whose_label_was_used_meanwhile():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools)
        tools.script["cancel_return"] = [AWAY] * 9
        await order(parts, workflow_id)
        assert (await settle(parts, workflow_id)).task.state == "NEEDS_REVIEW"
        go_on(parts)
        tools.script.clear()
        tools.links = {"label_used": True}
        before = tools.sent("cancel_return")
        await order(parts, workflow_id)
        assert (await settle(parts, workflow_id)).task.reason == "label_used"
    assert tools.sent("cancel_return") == before


@asynchronous
async def test_what_workers_died_on_before_is_no_bound_on_what_a_person_orders():
    tools = FakeTools()
    async with engine(tools) as parts:
        tools.script["send_return_notice"] = [rejected("unreachable")] * 60
        workflow_id = await take(parts)
        assert (await settle(parts, workflow_id)).task.reason == "recoveries_exhausted"
        tools.script.clear()
        assert (await adopt(parts, workflow_id, SATO, no_wake)).adopted == "RETURN_CREATED"
        assert (await settle(parts, workflow_id)).task.state == "COMPLETED"


@asynchronous
async def test_after_a_wrong_notice_was_corrected_its_return_is_a_persons_since_no_second_correction_could_follow():
    tools = FakeTools()
    async with engine(tools) as parts:

        def about_another(request: Any) -> Any:
            found = tools.honest(request)
            assert isinstance(found, Success)
            return Success({**found.result, "record": {**found.result["record"], "return_id": "R-9"}})

        tools.script["find_notice"] = [about_another]
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        await release(desk(parts), workflow_id, SATO)
        assert (await settle(parts, workflow_id)).task.reason == "compensated"
        go_on(parts)
        with pytest.raises(NotPossibleError, match="a person's to undo"):
            await order(parts, workflow_id)
    assert tools.cancelled == {}
    assert [notice["kind"] for notice in tools.notices.values()] == ["return", "correction"]


@asynchronous
async def test_while_nobody_knows_whether_the_cancellation_holds_no_other_is_ordered():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools)
        tools.script["get_return"] = [AWAY] * 4
        await order(parts, workflow_id)
        assert (await settle(parts, workflow_id)).task.reason == "unverified_effect"
        tools.script.clear()
        with pytest.raises(NotPossibleError, match="look first"):
            await order(parts, workflow_id)
        assert (await adopt(parts, workflow_id, SATO, no_wake)).known == "verified"
        go_on(parts)
        await order(parts, workflow_id)
        assert (await settle(parts, workflow_id)).task.reason == "compensated"
    assert tools.sent("cancel_return") == 1


@asynchronous
async def test_what_is_undone_too_late_is_overdue_and_nothing_more_is_sent_for_it():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools)
        await order(parts, workflow_id)

        def late(request: Any) -> Any:
            advance_clock(parts, 25 * 3600)
            return tools.honest(request)

        tools.script["get_return_links"] = [late]
        await settle(parts, workflow_id)
        advance_clock(parts, 60)
        assert (await drive(parts, workflow_id)).task.reason == "overdue"
        assert await rows(parts, UNDONE) == [("overdue",)]
        assert len(await rows(parts, ENGAGED)) == 3
    assert tools.sent("cancel_return") == 0


@asynchronous
async def test_a_deadline_passes_also_where_no_tool_server_lets_anybody_drive():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools)
        await order(parts, workflow_id)
        advance_clock(parts, 24 * 3600 - 5)
        assert await end_late(parts) == 0
        advance_clock(parts, 10)
        assert await end_late(parts) == 1
        state = await load(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "overdue")
        assert len(await rows(parts, ENGAGED)) == 3
        last = "SELECT actor FROM checkpoint JOIN legal_transition USING (move_id) ORDER BY seq DESC LIMIT 1"
        assert await rows(parts, last) == [("timer",)]
        assert await end_late(parts) == 0


@asynchronous
async def test_a_release_is_for_the_stop_that_stands_and_for_no_later_one():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools)
        await order(parts, workflow_id)
        with pytest.raises(NotPossibleError, match="no stop is engaged"):
            await release(desk(parts), workflow_id, SATO)
        engage(parts, "updates")
        await release(desk(parts), workflow_id, SATO)
        engage(parts, "reads")  # somebody has found more since
        assert (await drive(parts, workflow_id)).task.state == "COMPENSATION_REQUIRED"
        assert tools.sent("get_return_links") == 0
        await release(desk(parts), workflow_id, SATO)
        assert (await settle(parts, workflow_id)).task.reason == "compensated"


@asynchronous
async def test_a_tool_that_is_away_is_waited_for_while_there_is_time():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools)
        await order(parts, workflow_id)
        tools.names -= {"cancel_return"}
        state = await drive(parts, workflow_id)
        assert state.task.state == "COMPENSATION_REQUIRED"
        assert await rows(parts, ENGAGED) == []
        tools.names |= {"cancel_return"}
        advance_clock(parts, 31)
        assert (await settle(parts, workflow_id)).task.reason == "compensated"


@pytest.mark.parametrize("answer", ["nobody", "deny"])
def test_a_return_that_was_made_while_nobody_had_said_yes_is_one_beyond_any_approval(answer):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(refund=80_000)
        async with engine(tools, approvers=APPROVERS) as parts:
            workflow_id = await take(parts)
            state = await drive(parts, workflow_id)
            assert state.task.state == "WAITING_APPROVAL"
            state = await load(parts, workflow_id)
            record = tools.new_return(state.task.case)
            ((_, kind),) = parts.kinds.items()
            asked = state.evidence.asked
            assert asked is not None
            decided = None if answer == "nobody" else ("tanaka", "deny")
            known = replace(state, evidence=replace(state.evidence, asked=replace(asked, decided=decided)))
            step = Step(known, kind.workflow, kind.moves, claim=False, active_ms=0)
            assert unapproved(step, parts.registry["create_return"], record) != {}

    run()


@asynchronous
async def test_a_look_that_finds_a_wrong_effect_is_no_success():
    tools = FakeTools()
    async with engine(tools) as parts:
        tools.script["create_return"] = [tools.then(unknown())]
        tools.script["find_return"] = [AWAY] * 3
        workflow_id = await take(parts)
        await settle(parts, workflow_id)
        tools.script.clear()
        next(iter(tools.returns.values()))["refund"] = {"amount": 70_000, "currency": "JPY"}
        looked = await adopt(parts, workflow_id, SATO, no_wake)
        assert (looked.known, looked.adopted) == ("wrong", None)
        assert await rows(parts, "SELECT cause FROM stop_log") == [("approval_bypassed",)]


@pytest.mark.parametrize("missing", [("updates",), ("reads",), ("updates", "reads")])
def test_a_missing_row_releases_nothing(missing):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            workflow_id = await unverified(parts, tools)
            await order(parts, workflow_id)
            with owners(parts) as sql:
                sql.execute("DELETE FROM stop WHERE scope = ANY (%s)", (list(missing),))
            assert (await drive(parts, workflow_id)).task.state == "COMPENSATION_REQUIRED"
            assert (tools.sent("get_return_links"), tools.cancelled) == (0, {})

    run()


@asynchronous
async def test_a_number_that_is_another_cases_is_adopted_by_no_look():
    """A tool server that lies in one look-up would have us cancel somebody else's return."""
    tools = FakeTools()
    async with engine(tools) as parts:
        assert (await settle(parts, await take(parts, request_id="first"))).task.state == "COMPLETED"
        tools.script["create_return"] = [tools.then(unknown())]
        tools.script["find_return"] = [AWAY] * 3
        second = await take(parts, request_id="second")
        await settle(parts, second)

        def lying(request: Any) -> Any:
            found = tools.honest(request)
            assert isinstance(found, Success)
            return Success({**found.result, "record": {**found.result["record"], "return_id": "R-1"}})

        tools.script["find_return"] = [lying]
        with pytest.raises(NotPossibleError, match="another case's"):
            await adopt(parts, second, SATO, no_wake)
        assert (await adopt(parts, second, SATO, no_wake)).adopted == "RETURN_CREATED"


@asynchronous
async def test_nothing_is_taken_in_or_committed_on_a_view_from_before_a_stop():
    async with engine(FakeTools()) as parts, parts.pool.connection() as connection:
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        for statement in ("SELECT accept_case('{}')", "SELECT commit_steps('{}')"):
            with pytest.raises(psycopg.Error, match="read committed") as caught:
                async with connection.transaction():
                    await connection.execute(statement)
            assert caught.value.sqlstate == "KS021"
