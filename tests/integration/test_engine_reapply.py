"""A waiting case is taken back; one that ended with nothing done is asked for anew, as a case that names the old."""

from __future__ import annotations

from dataclasses import replace

import pytest

from host.engine.approve import ApprovalRefusedError
from host.engine.drive import drive, load
from host.engine.reapply import NotPossibleError, reapply, withdraw
from tests.support.approvals import APPROVERS, decide, desk, trust
from tests.support.engine import PINS, advance_clock, asynchronous, engine, rows, take
from tests.support.fake_tools import FakeTools, unknown

HIGH = 80_000


@asynchronous
async def test_an_expired_case_is_asked_for_anew_with_an_approval_of_its_own_and_stays_expired():
    async with engine(FakeTools(refund=HIGH), approvers=APPROVERS) as parts:
        trust(parts, "tanaka")
        old = await take(parts, message="please")
        await drive(parts, old)
        advance_clock(parts, 24 * 3600)
        await drive(parts, old)
        taken = await reapply(desk(parts), old, PINS, None)
        again = await reapply(desk(parts), old, PINS, None)
        assert (taken.created, again.created, again.workflow_id) == (True, False, taken.workflow_id)
        state = await drive(parts, taken.workflow_id)
        assert state.task.state == "WAITING_APPROVAL"
        await decide(parts, taken.workflow_id)
        assert (await drive(parts, taken.workflow_id)).task.state == "COMPLETED"
        found = await rows(parts, "SELECT state, supersedes FROM workflow ORDER BY workflow_id")
        assert found == [("EXPIRED", None), ("COMPLETED", old)]
        assert (await load(parts, taken.workflow_id)).task.case["message"] == "please"


@asynchronous
async def test_a_case_that_waits_is_taken_back_and_nothing_is_approved_afterwards():
    tools = FakeTools(refund=HIGH)
    async with engine(tools, approvers=APPROVERS) as parts:
        trust(parts, "tanaka")
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        await withdraw(desk(parts), workflow_id, "sato")
        state = await drive(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("REJECTED", "withdrawn")
        for act in (decide(parts, workflow_id), withdraw(desk(parts), workflow_id, "sato")):
            with pytest.raises(ApprovalRefusedError, match="REJECTED"):
                await act
        assert await rows(parts, "SELECT actor FROM audit WHERE action = 'withdrawn'") == [("sato",)]
        assert (await reapply(desk(parts), workflow_id, PINS, None)).created
    assert tools.executed == []


@pytest.mark.parametrize("where", ["waiting", "completed", "in doubt", "requester gone"])
def test_a_case_that_has_not_ended_or_has_done_something_is_not_asked_for_again(where):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(refund=3_000 if where in {"completed", "in doubt"} else HIGH)
        if where == "in doubt":
            tools.script = {"create_return": [unknown()], "find_return": [unknown()] * 9}
        async with engine(tools, approvers=APPROVERS) as parts:
            workflow_id = await take(parts)
            for _ in range(6):
                await drive(parts, workflow_id)
                advance_clock(parts, 60)
            now = desk(parts)
            if where == "requester gone":
                advance_clock(parts, 24 * 3600)
                await drive(parts, workflow_id)
                now = replace(now, authorization=parts.authorization.model_copy(update={"principals": ()}))
            with pytest.raises(NotPossibleError):
                await reapply(now, workflow_id, PINS, None)
            assert await rows(parts, "SELECT count(*) FROM workflow") == [(1,)]

    run()


@asynchronous
async def test_a_case_whose_release_this_program_does_not_carry_is_told_so_and_left_alone():
    async with engine(FakeTools(refund=HIGH), approvers=APPROVERS) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        older = replace(desk(parts), kinds={})
        for act in (reapply(older, workflow_id, PINS, None), withdraw(older, workflow_id, "sato")):
            with pytest.raises(ApprovalRefusedError, match="returns-1"):
                await act
        assert (await load(parts, workflow_id)).task.state == "WAITING_APPROVAL"
