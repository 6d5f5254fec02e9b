"""A case that a person decides on survives a death before and after each of its commits, whoever makes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from psycopg_pool import AsyncConnectionPool

from host.engine.approve import ApprovalRefusedError, take_decision
from host.engine.drive import drive, load
from host.engine.parts import Parts
from shared_contracts.approval import sign
from tests.support.approvals import APPROVERS, KEYS, KIDS, decide, decision, desk, trust
from tests.support.crash import DiedError, Fate, doomed
from tests.support.engine import advance_clock, asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools

HIGH = 80_000
UNTIL_IT_WAITS, ONCE_APPROVED = 3, 5  # commits of a driver


async def driven(parts: Parts, workflow_id: Any, fate: Fate) -> None:
    """Drive until this driver dies; then another one takes over what it left."""
    async with doomed(parts, fate) as dying:
        with pytest.raises(DiedError):
            await drive(dying, workflow_id)
    advance_clock(parts, 16)
    await settle(parts, workflow_id)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, UNTIL_IT_WAITS + ONCE_APPROVED + 1))
def test_a_driver_that_dies_at_any_commit_of_an_approved_case_leaves_one_return_and_one_notice(at, before):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(refund=HIGH)
        async with engine(tools, approvers=APPROVERS) as parts:
            trust(parts, "tanaka")
            workflow_id = await take(parts)
            if at <= UNTIL_IT_WAITS:
                await driven(parts, workflow_id, Fate(at, before))
            else:
                await drive(parts, workflow_id)
            assert (await load(parts, workflow_id)).task.state == "WAITING_APPROVAL"
            await decide(parts, workflow_id)
            if at > UNTIL_IT_WAITS:
                await driven(parts, workflow_id, Fate(at - UNTIL_IT_WAITS, before))
            else:
                await drive(parts, workflow_id)
            assert (await load(parts, workflow_id)).task.state == "COMPLETED"
            asked = await rows(parts, "SELECT count(*) FROM approval_request")
        assert sorted(name for name, _ in tools.executed) == ["create_return", "send_return_notice"]
        assert asked == [(1,)]

    run()


@asynchronous
async def test_the_commits_of_an_approved_case_are_as_many_as_are_tried_here():
    async with engine(FakeTools(refund=HIGH), approvers=APPROVERS) as parts:
        trust(parts, "tanaka")
        workflow_id = await take(parts)
        fate = Fate(99, before=True)
        async with doomed(parts, fate) as counted:
            await drive(counted, workflow_id)
            assert fate.seen == UNTIL_IT_WAITS
            await decide(parts, workflow_id)
            await drive(counted, workflow_id)
        assert fate.seen == UNTIL_IT_WAITS + ONCE_APPROVED


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_decision_whose_program_dies_was_taken_whole_or_not_at_all(before):
    @asynchronous
    async def run() -> None:
        async with engine(FakeTools(refund=HIGH), approvers=APPROVERS) as parts:
            trust(parts, "tanaka")
            workflow_id = await take(parts)
            await drive(parts, workflow_id)
            text = sign(decision(await load(parts, workflow_id)), KEYS["tanaka"], KIDS["tanaka"])
            kwargs = {"autocommit": True, "cursor_factory": Fate(1, before).cursor()}
            async with AsyncConnectionPool(
                parts.pool.conninfo, min_size=1, max_size=2, open=False, kwargs=kwargs
            ) as pool:
                with pytest.raises(DiedError):
                    await take_decision(replace(desk(parts), pool=pool), text, 1.0)
            # the statement had not committed by itself: it stands in a transaction with the wake-up
            assert (await load(parts, workflow_id)).task.state == "WAITING_APPROVAL"
            assert await rows(parts, "SELECT count(*) FROM approval") == [(0,)]
            await take_decision(desk(parts), text, 1.0)
            with pytest.raises(ApprovalRefusedError, match="tanaka decided: approve"):
                await take_decision(desk(parts), text, 1.0)
            assert (await settle(parts, workflow_id)).task.state == "COMPLETED"

    run()
