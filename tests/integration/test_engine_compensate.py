"""What was wrong is undone by code: looked at, cancelled, looked at again and corrected, or it goes to a person."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from host.domain.acting import By
from host.domain.state import State
from host.engine.drive import drive, load
from host.engine.parts import Parts
from host.engine.reapply import NotPossibleError
from host.engine.review import adopt, order_compensation, release
from tests.support.approvals import desk
from tests.support.crash import DiedError, Fate, doomed
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
from tests.support.fake_tools import FakeTools, rejected, unknown, yen

ENGAGED = "SELECT scope FROM stop WHERE engaged ORDER BY scope"
UNDONE = "SELECT state, ordered_by, reason, released_by FROM compensation ORDER BY n"
CALLS = "SELECT tool, execution_state, undoes FROM call WHERE undoes IS NOT NULL ORDER BY step"
SENT = """
SELECT 1 FROM attempt JOIN call USING (workflow_id, step) WHERE undoes IS NOT NULL AND purpose = 'call'
"""
SEEN = """
UPDATE effect SET outcome = 'succeeded', external_id = %s, closed_at = clock_now(), verified_at = clock_now()
 WHERE outcome IS NULL
"""
SATO = By("sato", "operator", "sha256:of-a-test")
WRONG = {"refund": yen(1)}


async def wrong_return(parts: Parts, tools: FakeTools) -> UUID:
    """A return whose read-back shows another amount than was asked for."""
    tools.script["get_return"] = [tools.but(**WRONG)]
    workflow_id = await take(parts)
    state = await drive(parts, workflow_id)
    assert (state.task.state, state.task.reason) == ("COMPENSATION_REQUIRED", "wrong_effect")
    return workflow_id


async def unverified(parts: Parts, tools: FakeTools, *, told: bool) -> UUID:
    """A case that a person has, with a return that nobody could read back, or a notice besides."""
    away = rejected("unavailable")
    tools.script["find_notice" if told else "get_return"] = [away] * 4
    if told:
        tools.script["send_return_notice"] = [tools.then(unknown())]
    workflow_id = await take(parts)
    state = await settle(parts, workflow_id)
    assert state.task.state == "NEEDS_REVIEW"
    tools.script.clear()
    return workflow_id


async def undo(parts: Parts, workflow_id: UUID) -> State:
    await release(desk(parts), workflow_id, SATO)
    return await settle(parts, workflow_id)


@asynchronous
async def test_a_wrong_return_stops_everything_and_is_undone_only_once_a_person_has_released_it():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await wrong_return(parts, tools)
        assert await rows(parts, ENGAGED) == [("new_work",), ("parallel",), ("updates",)]
        assert await rows(parts, UNDONE) == [("required", "engine", "wrong_effect", None)]
        assert (await rows(parts, "SELECT wake_reason FROM workflow"))[0] == ("compensation",)
        assert tools.cancelled == {}
        state = await undo(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "compensated")
        assert await rows(parts, UNDONE) == [("done", "engine", "wrong_effect", "sato")]
        assert await rows(parts, CALLS) == [
            ("get_return_links", "verified", 3), ("cancel_return", "verified", 3), ("get_return_links", "verified", 3),
        ]  # fmt: skip
        assert await rows(parts, ENGAGED) == [("new_work",), ("parallel",), ("updates",)]
    (record,) = tools.returns.values()
    assert record["status"] == "cancelled"
    assert tools.notices == {}, "nobody was told of it, so nobody is told otherwise"


@asynchronous
async def test_a_return_that_a_person_has_undone_is_cancelled_and_the_customer_gets_a_message_that_names_the_first():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools, told=True)
        with pytest.raises(NotPossibleError, match="nobody knows yet"):
            await order_compensation(desk(parts), workflow_id, SATO, "the wrong camera", parts.registry)
        (notice,) = tools.notices.values()
        with owners(parts) as sql:  # the customer was told, and somebody has seen it since
            sql.execute(SEEN, (notice["message_id"],))
        await order_compensation(desk(parts), workflow_id, SATO, "the wrong camera", parts.registry)
        state = await settle(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "compensated")
        assert [tool for tool, *_ in await rows(parts, CALLS)] == [
            "get_return_links", "cancel_return", "get_return_links", "send_correction_notice",
        ]  # fmt: skip
        assert await rows(parts, ENGAGED) == [], "what a person ordered and code has done is no reason to stop"
        assert state.evidence.verified_ids().get("create_return") is None, "what was cancelled is nobody's number"
    first, second = tools.notices.values()
    assert (second["kind"], second["corrects"]) == ("correction", first["message_id"])


@pytest.mark.parametrize(
    ("links", "reason"),
    [
        ({"label_used": True}, "label_used"),
        ({"inventory_entries": ["inv://1"]}, "linked_entries"),
        ({"accounting_entries": ["acc://1"]}, "linked_entries"),
    ],
)
def test_a_return_on_which_something_hangs_is_not_cancelled_and_stops_everything(links, reason):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(links=links)
        async with engine(tools) as parts:
            workflow_id = await unverified(parts, tools, told=False)
            await order_compensation(desk(parts), workflow_id, SATO, "wrong", parts.registry)
            state = await settle(parts, workflow_id)
            assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", reason)
            assert [one for one, *_ in await rows(parts, UNDONE)] == ["impossible"]
            assert await rows(parts, ENGAGED) == [("new_work",), ("parallel",), ("updates",)]
            assert await rows(parts, "SELECT cause FROM stop_log") == [("compensation_impossible",)]
        assert tools.cancelled == {}

    run()


@pytest.mark.parametrize("refusal", ["label_used", "not_found", "scope_missing", "not_eligible"])
def test_a_cancellation_that_is_refused_is_none_and_says_why(refusal):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            workflow_id = await unverified(parts, tools, told=False)
            tools.script["cancel_return"] = [rejected(refusal)]
            await order_compensation(desk(parts), workflow_id, SATO, "wrong", parts.registry)
            state = await settle(parts, workflow_id)
            assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", refusal)
            assert [one for one, *_ in await rows(parts, UNDONE)] == ["impossible"]
            assert len(await rows(parts, ENGAGED)) == 3

    run()


@asynchronous
async def test_what_is_not_undone_in_time_is_overdue_and_stops_everything():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await wrong_return(parts, tools)
        advance_clock(parts, 24 * 3600 - 1)
        assert (await drive(parts, workflow_id)).task.state == "COMPENSATION_REQUIRED"
        advance_clock(parts, 2)
        state = await drive(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "overdue")
        assert [one for one, *_ in await rows(parts, UNDONE)] == ["overdue"]
        causes = [cause for (cause,) in await rows(parts, "SELECT cause FROM stop_log ORDER BY stop_id")]
        assert causes == ["update_outside_permission", "compensation_impossible"]
        with pytest.raises(NotPossibleError, match="nothing of the case is being undone"):
            await release(desk(parts), workflow_id, SATO)
    assert tools.cancelled == {}


@asynchronous
async def test_undoing_spends_nothing_of_the_cases_own_calls_and_time_and_has_a_bound_of_its_own():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools, told=False)
        with owners(parts) as sql:
            sql.execute("UPDATE workflow SET active_ms = 90000")
        tools.script["get_return_links"] = [rejected("unavailable"), None, rejected("unavailable")]
        tools.script["cancel_return"] = [rejected("unavailable")]
        before = (await load(parts, workflow_id)).calls_made()
        await order_compensation(desk(parts), workflow_id, SATO, "wrong", parts.registry)
        state = await settle(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "compensated")
        assert state.calls_made() == before
        assert len(await rows(parts, SENT)) == 6


@asynchronous
async def test_a_bound_on_the_calls_that_undo_ends_it_for_a_person():
    tools = FakeTools()
    async with engine(tools) as parts:
        ((key, kind),) = parts.kinds.items()
        limits = replace(kind.workflow.limits, compensation_calls=1)
        narrow = replace(parts, kinds={key: replace(kind, workflow=replace(kind.workflow, limits=limits))})
        workflow_id = await unverified(narrow, tools, told=False)
        await order_compensation(desk(narrow), workflow_id, SATO, "wrong", narrow.registry)
        state = await settle(narrow, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "limit")
        assert [one for one, *_ in await rows(parts, UNDONE)] == ["impossible"]
    assert tools.cancelled == {}


@asynchronous
async def test_a_stop_while_something_is_undone_halts_it_until_its_time_is_up():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools, told=False)
        await order_compensation(desk(parts), workflow_id, SATO, "wrong", parts.registry)

        def stopped(request: Any) -> Any:
            engage(parts, "updates")
            return tools.honest(request)

        tools.script["get_return_links"] = [stopped]
        state = await drive(parts, workflow_id)
        assert state.task.state == "COMPENSATION_REQUIRED"
        assert tools.cancelled == {}
        assert (await rows(parts, "SELECT wake_reason FROM workflow"))[0] == ("compensation",)
        state = await undo(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "compensated")


@asynchronous
async def test_a_release_lets_through_that_one_case_and_no_other():
    tools = FakeTools()
    async with engine(tools) as parts:
        other = await take(parts, request_id="other", order_id="A-2")
        workflow_id = await wrong_return(parts, tools)
        await undo(parts, workflow_id)
        state = await drive(parts, other)
        assert state.task.state == "ELIGIBLE"
        assert (await rows(parts, "SELECT wake_reason FROM workflow WHERE workflow_id = %(id)s", id=other))[0] == (
            "stopped",
        )
        with pytest.raises(NotPossibleError, match="nothing of the case is being undone"):
            await release(desk(parts), workflow_id, SATO)
    assert len(tools.returns) == 1


@asynchronous
async def test_a_death_before_or_after_any_commit_of_an_undoing_leaves_one_cancellation_and_one_correction():
    for at in range(1, 12):
        for before in (True, False):
            tools = FakeTools()
            async with engine(tools) as parts:
                workflow_id = await unverified(parts, tools, told=False)
                await order_compensation(desk(parts), workflow_id, SATO, "wrong", parts.registry)
                async with doomed(parts, Fate(at, before)) as mortal:
                    try:
                        await drive(mortal, workflow_id)
                        died = False
                    except DiedError:
                        died = True
                advance_clock(parts, 60)
                state = await settle(parts, workflow_id)
                assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "compensated"), (at, before)
                assert len(tools.cancelled) == 1
                assert [tool for tool, _ in tools.executed].count("cancel_return") == 1
            if not died:
                return
    raise AssertionError("an undoing has fewer commits than that")


@asynchronous
async def test_a_cancellation_whose_answer_was_lost_is_looked_up_and_never_made_twice():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools, told=False)
        tools.script["cancel_return"] = [tools.then(unknown())]
        await order_compensation(desk(parts), workflow_id, SATO, "wrong", parts.registry)
        state = await settle(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "compensated")
        assert tools.sent("cancel_return") == 1


@asynchronous
async def test_an_undoing_that_nobody_could_end_is_ordered_anew_once_what_it_did_is_known():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools, told=False)
        tools.script["cancel_return"] = [tools.then(unknown())]
        tools.script["find_return"] = [rejected("unavailable")] * 4
        await order_compensation(desk(parts), workflow_id, SATO, "wrong", parts.registry)
        state = await settle(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unknown_effect")
        tools.script.clear()
        with pytest.raises(NotPossibleError, match="nobody knows yet"):
            await order_compensation(desk(parts), workflow_id, SATO, "wrong", parts.registry)
        looked = await adopt(parts, workflow_id, SATO, no_wake)
        assert (looked.known, looked.adopted) == ("verified", None), "a cancellation is no step of the business"
        for scope in SCOPES:
            engage(parts, scope, engaged=False)
        await order_compensation(desk(parts), workflow_id, SATO, "again", parts.registry)
        state = await settle(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "compensated")
        assert tools.sent("cancel_return") == 1
        assert [one for one, *_ in await rows(parts, UNDONE)] == ["impossible", "done"]


@asynchronous
async def test_a_wrong_notice_is_corrected_by_another_one_and_the_return_stands():
    tools = FakeTools()
    async with engine(tools) as parts:

        def about_another(request: Any) -> Any:
            found = tools.honest(request)
            return replace(found, result={**found.result, "record": {**found.result["record"], "return_id": "R-9"}})

        tools.script["find_notice"] = [about_another]
        workflow_id = await take(parts)
        state = await drive(parts, workflow_id)
        assert state.task.state == "COMPENSATION_REQUIRED"
        assert await rows(parts, "SELECT cause FROM stop_log") == [("wrong_notice",)]
        state = await undo(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "compensated")
        assert state.evidence.verified_ids()["create_return"] == "R-1"
    assert tools.cancelled == {}
    assert [notice["kind"] for notice in tools.notices.values()] == ["return", "correction"]


@asynchronous
async def test_a_notice_that_failed_never_cancels_a_return():
    tools = FakeTools()
    async with engine(tools) as parts:
        tools.script["send_return_notice"] = [rejected("notice_rejected")]
        state = await settle(parts, await take(parts))
        assert state.task.state == "NEEDS_REVIEW"
        assert await rows(parts, UNDONE) == []
        assert await rows(parts, ENGAGED) == []
    (record,) = tools.returns.values()
    assert record["status"] == "created"


@asynchronous
async def test_a_return_that_was_made_beyond_what_was_approved_is_an_approval_bypassed():
    tools = FakeTools()
    async with engine(tools) as parts:

        def dearer(request: Any) -> Any:
            tools.refund = 60_000  # than the rules were told: nobody was asked
            return tools.honest(request)

        tools.script["create_return"] = [dearer]
        state = await drive(parts, await take(parts))
        assert state.task.state == "COMPENSATION_REQUIRED"
        assert await rows(parts, "SELECT cause FROM stop_log") == [("approval_bypassed",)]
