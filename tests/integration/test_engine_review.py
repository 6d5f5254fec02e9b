"""What a named person does with a case that was handed over: look again and adopt, or close; each act is recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from host.domain.acting import By
from host.engine.drive import drive
from host.engine.look import Known
from host.engine.parts import Parts
from host.engine.reapply import NotPossibleError, reapply
from host.engine.review import adopt, close, look_up
from tests.support.approvals import desk
from tests.support.engine import PINS, asynchronous, engine, no_wake, owners, rows, settle, take
from tests.support.fake_tools import Answer, FakeTools, rejected, unknown, yen
from tests.support.records import record_of

SATO = By("sato", "operator", "sha256:of-a-test")
AWAY = rejected("unavailable")
LAST_MOVES = """
SELECT event, actor FROM checkpoint JOIN legal_transition USING (move_id) ORDER BY seq DESC LIMIT 2
"""
EFFECTS = "SELECT name, outcome, verified_at IS NOT NULL FROM effect ORDER BY step, attempt"


async def in_doubt(parts: Parts, tools: FakeTools, write: str, *, done: bool) -> UUID:
    """A case that a person has, since the answer to a write was lost and nobody could look it up."""
    tools.script[write] = [tools.then(unknown()) if done else unknown()]
    tools.script["find_return" if write == "create_return" else "find_notice"] = [AWAY] * 3
    workflow_id = await take(parts)
    state = await settle(parts, workflow_id)
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unknown_effect")
    tools.script.clear()
    return workflow_id


@asynchronous
async def test_a_return_that_is_found_after_all_is_adopted_and_the_case_goes_on_to_its_notice():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools, "create_return", done=True)
        looked = await adopt(parts, workflow_id, SATO, no_wake)
        assert (looked.known, looked.adopted) == (Known.VERIFIED, "RETURN_CREATED")
        assert (await settle(parts, workflow_id)).task.state == "COMPLETED"
        who = "SELECT actor, action FROM audit WHERE action IN ('looked_up', 'effect_adopted') ORDER BY audit_id"
        assert await rows(parts, who) == [("sato", "looked_up"), ("sato", "effect_adopted")]
    assert (len(tools.returns), len(tools.notices)) == (1, 1)
    assert tools.sent("create_return") == 1


@asynchronous
async def test_a_notice_that_is_found_after_all_completes_the_case():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools, "send_return_notice", done=True)
        looked = await adopt(parts, workflow_id, SATO, no_wake)
        assert (looked.known, looked.adopted) == (Known.VERIFIED, "COMPLETED")
        events = await rows(parts, LAST_MOVES)
        assert events == [("effect_adopted", "operator"), ("reopened", "operator")]
        with pytest.raises(NotPossibleError, match="COMPLETED"):
            await adopt(parts, workflow_id, SATO, no_wake)
    assert len(tools.notices) == 1


@asynchronous
async def test_what_was_never_made_is_recorded_as_absent_and_the_case_stays_with_the_person():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools, "create_return", done=False)
        looked = await adopt(parts, workflow_id, SATO, no_wake)
        assert (looked.known, looked.adopted) == (Known.ABSENT, None)
        assert await rows(parts, EFFECTS) == [("create_return", "absent", False)]
        with pytest.raises(NotPossibleError, match="nothing that could be adopted"):
            await adopt(parts, workflow_id, SATO, no_wake)
        assert await look_up(parts, workflow_id, SATO) is None
        with pytest.raises(NotPossibleError, match="NEEDS_REVIEW"):
            await reapply(desk(parts), workflow_id, PINS, None)
        await close(desk(parts), workflow_id, SATO, "asked for anew", accept_unknown=False)
        (closed, looked_up, *_) = reversed((await record_of(parts, workflow_id))["acts"])
        assert (closed["act"], closed["actor"], closed["os_user"]) == ("review_closed", SATO.name, SATO.os_user)
        assert (closed["authz"], closed["reason"]) == (SATO.authz, "asked for anew")
        assert (looked_up["act"], looked_up["reason"]) == ("looked_up", None)
        assert (await reapply(desk(parts), workflow_id, PINS, None)).created
    assert tools.executed == []


@pytest.mark.parametrize("gone", ["create_return", "find_return"])
def test_where_the_tool_is_gone_that_an_effect_is_looked_up_with_it_is_named(gone: str):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            workflow_id = await in_doubt(parts, tools, "create_return", done=True)
            without = {name: tool for name, tool in parts.registry.items() if name != gone}
            with pytest.raises(NotPossibleError, match=f"looked up with {gone}, "):
                await adopt(replace(parts, registry=without), workflow_id, SATO, no_wake)
            assert (await adopt(parts, workflow_id, SATO, no_wake)).adopted == "RETURN_CREATED"

    run()


@pytest.mark.parametrize("answer", [AWAY, unknown("timeout"), rejected("not_found")], ids=["away", "lost", "refused"])
def test_a_look_that_does_not_tell_changes_nothing_but_the_record_of_the_look(answer: Answer):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            workflow_id = await in_doubt(parts, tools, "create_return", done=True)
            tools.script["find_return"] = [answer]
            looked = await adopt(parts, workflow_id, SATO, no_wake)
            assert (looked.known, looked.adopted) == (Known.UNKNOWN, None)
            assert await rows(parts, EFFECTS) == [("create_return", None, False)]
            assert (await adopt(parts, workflow_id, SATO, no_wake)).adopted == "RETURN_CREATED"

    run()


@asynchronous
async def test_what_is_found_and_is_not_what_was_asked_for_stops_everything_and_is_not_adopted():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools, "create_return", done=True)
        (record,) = tools.returns.values()
        record["lines"] = [{"line_id": "2", "quantity": 1, "refund": yen(3000)}]
        looked = await adopt(parts, workflow_id, SATO, no_wake)
        assert (looked.known, looked.adopted) == (Known.WRONG, None)
        assert await rows(parts, "SELECT cause FROM stop_log") == [("update_outside_permission",)]
        assert await rows(parts, "SELECT state FROM workflow") == [("NEEDS_REVIEW",)]


@asynchronous
async def test_a_return_that_was_cancelled_behind_our_back_is_not_adopted():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools, "create_return", done=True)
        (record,) = tools.returns.values()
        record["status"] = "cancelled"
        looked = await adopt(parts, workflow_id, SATO, no_wake)
        assert (looked.known, looked.adopted) == (Known.REJECTED, None)


@asynchronous
async def test_a_look_that_died_is_closed_by_the_next_one():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools, "create_return", done=True)

        def die(_request: Any) -> Any:
            raise KeyboardInterrupt

        tools.script["find_return"] = [die]
        with pytest.raises(KeyboardInterrupt):
            await adopt(parts, workflow_id, SATO, no_wake)
        assert await rows(parts, "SELECT count(*) FROM attempt WHERE outcome IS NULL") == [(1,)]
        assert (await adopt(parts, workflow_id, SATO, no_wake)).adopted == "RETURN_CREATED"
        outcomes = await rows(
            parts, "SELECT outcome FROM attempt WHERE purpose = 'reconciliation' ORDER BY n DESC LIMIT 2"
        )
        assert outcomes == [("success",), ("cut_off",)]


@asynchronous
async def test_a_case_in_doubt_is_closed_only_by_a_person_who_says_that_nobody_knows():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools, "create_return", done=True)
        with pytest.raises(NotPossibleError, match="--accept-unknown"):
            await close(desk(parts), workflow_id, SATO, "settled by telephone", accept_unknown=False)
        await close(desk(parts), workflow_id, SATO, "settled by telephone", accept_unknown=True)
        with pytest.raises(NotPossibleError, match="closed already"):
            await close(desk(parts), workflow_id, SATO, "again", accept_unknown=True)
        said = "SELECT actor, details ->> 'reason', details -> 'unknown' FROM audit WHERE action = 'review_closed'"
        assert await rows(parts, said) == [("sato", "settled by telephone", ["create_return"])]
        with pytest.raises(NotPossibleError, match="create_return"):
            await reapply(desk(parts), workflow_id, PINS, None)
        looked = await adopt(parts, workflow_id, SATO, no_wake)
        assert looked.adopted == "RETURN_CREATED", "a closed case whose effect is found goes on all the same"
        assert await rows(parts, "SELECT review_since, review_closed_at FROM workflow") == [(None, None)]


@asynchronous
async def test_a_case_that_was_handed_over_to_nobody_is_neither_adopted_nor_closed():
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        for act in (
            adopt(parts, workflow_id, SATO, no_wake),
            look_up(parts, workflow_id, SATO),
            close(desk(parts), workflow_id, SATO, "why", accept_unknown=False),
        ):
            with pytest.raises(NotPossibleError, match="RECEIVED"):
                await act
        assert (await drive(parts, workflow_id)).task.state == "COMPLETED"


def test_only_a_case_that_a_person_has_can_be_closed_whatever_is_tried_by_hand():
    @asynchronous
    async def run() -> None:
        async with engine(FakeTools()) as parts:
            await take(parts)
            with owners(parts) as sql, pytest.raises(Exception, match="workflow_check"):
                sql.execute("UPDATE workflow SET review_closed_at = clock_now()")

    run()


@asynchronous
async def test_a_return_whose_notice_was_refused_is_adopted_and_the_notice_alone_is_tried_again():
    tools = FakeTools()
    async with engine(tools) as parts:
        tools.script["send_return_notice"] = [rejected("notice_rejected")]
        workflow_id = await take(parts)
        assert (await settle(parts, workflow_id)).task.reason == "notice_rejected"
        looked = await adopt(parts, workflow_id, SATO, no_wake)
        assert (looked.effect.name, looked.adopted) == ("create_return", "RETURN_CREATED")
        assert (await settle(parts, workflow_id)).task.state == "COMPLETED"
    assert (tools.sent("create_return"), tools.sent("send_return_notice"), len(tools.notices)) == (1, 2, 1)


@asynchronous
async def test_while_nobody_knows_who_has_the_units_no_other_case_gets_them_whoever_has_closed_the_first():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools, "create_return", done=True)
        await close(desk(parts), workflow_id, SATO, "nobody will ever know", accept_unknown=True)
        second = await settle(parts, await take(parts, request_id="second"))
        assert (second.task.state, second.task.reason) == ("NEEDS_REVIEW", "unsettled_elsewhere")
    assert len(tools.returns) == 1
