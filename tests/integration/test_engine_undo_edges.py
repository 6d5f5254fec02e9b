"""Undoing in bad company: looks that died, old knowledge, time that runs out meanwhile, and words that are not so."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from host.domain.acting import By
from host.domain.outcome import Success
from host.domain.step import Step
from host.domain.wait import ENDED
from host.engine.approve import ApprovalRefusedError
from host.engine.drive import drive, load
from host.engine.parts import Parts
from host.engine.reapply import NotPossibleError
from host.engine.review import adopt, close, look_up, order_compensation, release
from tests.integration.test_engine_compensate import CALLS, UNDONE, undo, unverified, wrong_return
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
from tests.support.fake_tools import FakeTools, rejected
from tests.support.raw_sql import refused

SATO = By("sato", "operator", "sha256:of-a-test")
UNDER_WAY = "SELECT purpose FROM attempt WHERE outcome IS NULL"
DEADLINE = "SELECT due_at FROM compensation"
DAY = 24 * 3600.0


async def order(parts: Parts, workflow_id: UUID, reason: str = "the wrong cup") -> None:
    await order_compensation(desk(parts), workflow_id, SATO, reason, parts.registry)


async def dead_look(parts: Parts, workflow_id: UUID) -> None:
    """Somebody has the case looked up, and dies before the answer is recorded."""
    async with doomed(parts, Fate(1, before=False)) as mortal:
        with pytest.raises(DiedError):
            await adopt(mortal, workflow_id, SATO, no_wake)
    assert await rows(parts, UNDER_WAY) == [("reconciliation",)]


def go_on(parts: Parts) -> None:
    for scope in SCOPES:
        engage(parts, scope, engaged=False)


def about_another(tools: FakeTools) -> Any:
    """A notice that was read back as one about another return."""

    def answer(request: Any) -> Any:
        found = tools.honest(request)
        assert isinstance(found, Success)
        return Success({**found.result, "record": {**found.result["record"], "return_id": "R-9"}})

    return answer


def stand_still(parts: Parts, early: float) -> None:
    """Let the clock stand so long before the deadline."""
    with owners(parts) as sql:
        ((due,),) = sql.execute(DEADLINE).fetchall()
        at = (due - timedelta(seconds=early)).isoformat()
        sql.execute(
            "CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql STABLE "
            f"AS $$ SELECT '{at}'::timestamptz $$"
        )


@asynchronous
async def test_a_look_that_died_is_under_way_no_more_once_the_case_is_undone_or_closed():
    for act in ("undone", "closed"):
        tools = FakeTools()
        async with engine(tools) as parts:
            workflow_id = await unverified(parts, tools, told=False)
            await dead_look(parts, workflow_id)
            if act == "undone":
                await order(parts, workflow_id)
                assert (await settle(parts, workflow_id)).task.reason == "compensated"
            else:
                await close(desk(parts), workflow_id, SATO, "Settled by hand.", accept_unknown=False)
            assert await rows(parts, UNDER_WAY) == [], act
            assert ("cut_off",) in await rows(parts, "SELECT outcome FROM attempt WHERE purpose = 'reconciliation'")


@asynchronous
async def test_a_return_is_cancelled_on_what_hangs_on_it_now_and_not_when_somebody_looked_before():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools, told=False)
        tools.script["cancel_return"] = [rejected("not_eligible")]
        await order(parts, workflow_id)
        assert (await settle(parts, workflow_id)).task.reason == "not_eligible"
        go_on(parts)
        tools.links = {"inventory_entries": ["inv://1"]}  # the goods have arrived meanwhile
        await order(parts, workflow_id, "again")
        state = await settle(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "linked_entries")
        assert [one for one, *_ in await rows(parts, UNDONE)] == ["impossible", "impossible"]
    assert tools.cancelled == {}


@asynchronous
async def test_what_was_to_undo_something_is_looked_up_before_more_is_ordered():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools, told=False)
        tools.script["get_return"] = [rejected("unavailable")] * 4
        await order(parts, workflow_id)
        state = await settle(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unverified_effect")
        assert len(tools.cancelled) == 1
        tools.script.clear()
        go_on(parts)
        with pytest.raises(NotPossibleError, match="look first"):
            await order(parts, workflow_id, "again")
        looked = await adopt(parts, workflow_id, SATO, no_wake)
        assert (looked.effect.name, looked.known, looked.adopted) == ("cancel_return", "verified", None)
        await order(parts, workflow_id, "again")
        assert (await settle(parts, workflow_id)).task.reason == "compensated"
        with pytest.raises(NotPossibleError, match="kessai review ID close"):
            await order(parts, workflow_id, "a third time")
    assert [tool for tool, _ in tools.executed].count("cancel_return") == 1


@asynchronous
async def test_no_case_goes_on_from_a_return_whose_notice_was_a_wrong_one():
    tools = FakeTools()
    async with engine(tools) as parts:
        tools.script["find_notice"] = [about_another(tools)]
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        assert (await undo(parts, workflow_id)).task.reason == "compensated"
        for act in (adopt(parts, workflow_id, SATO, no_wake), order(parts, workflow_id)):
            with pytest.raises(NotPossibleError):
                await act
        assert (await load(parts, workflow_id)).task.state == "NEEDS_REVIEW"
    assert [notice["kind"] for notice in tools.notices.values()] == ["return", "correction"]


@asynchronous
async def test_what_is_due_is_overdue_at_that_very_moment_and_not_while_time_is_left():
    for early, reason in ((5.0, "compensated"), (0.0, "overdue")):
        tools = FakeTools()
        async with engine(tools) as parts:
            workflow_id = await wrong_return(parts, tools)
            await release(desk(parts), workflow_id, SATO)
            stand_still(parts, early)
            assert (await drive(parts, workflow_id)).task.reason == reason
            assert len(tools.cancelled) == (reason == "compensated")


@asynchronous
async def test_nothing_more_is_undone_by_a_driver_whose_time_ran_out_while_it_waited_for_an_answer():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools, told=False)
        await order(parts, workflow_id)
        with owners(parts) as sql:
            sql.execute("SET session_replication_role = replica")
            sql.execute("UPDATE compensation SET due_at = clock_now() + interval '0.3 s'")

        async def slow(request: Any) -> Any:
            while not (await rows(parts, "SELECT due_at < clock_now() FROM compensation"))[0][0]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            return tools.honest(request)

        tools.script["get_return_links"] = [slow]
        state = await drive(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "overdue")
        assert [one for one, *_ in await rows(parts, UNDONE)] == ["overdue"]
    assert tools.cancelled == {}


@asynchronous
async def test_a_driver_goes_by_the_databases_time_between_two_of_its_calls():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools, told=False)
        await order(parts, workflow_id)

        def slow(request: Any) -> Any:
            advance_clock(parts, DAY)
            return tools.honest(request)

        tools.script["get_return_links"] = [slow]
        state = await drive(parts, workflow_id)  # what was asked for by then is made, and nothing after it
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "overdue")
        assert tools.sent("get_return_links") == 1


@asynchronous
async def test_a_retry_inside_an_undoing_that_comes_too_late_is_none():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools, told=False)
        tools.script["cancel_return"] = [rejected("unavailable")]
        await order(parts, workflow_id)
        assert (await drive(parts, workflow_id)).task.state == "RETRY_WAIT"
        advance_clock(parts, DAY)
        assert (await settle(parts, workflow_id)).task.reason == "overdue"
        assert await rows(parts, "SELECT outcome FROM effect WHERE name = 'cancel_return'") == [("absent",)]
    assert tools.cancelled == {}


@pytest.mark.parametrize("where", ["planning", "retry", "running"])
def test_an_undoing_that_breaks_its_drivers_goes_to_a_person_stops_everything_and_can_be_ordered_anew(where: str):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            workflow_id = await unverified(parts, tools, told=False)
            await order(parts, workflow_id)
            if where == "retry":
                tools.script["get_return_links"] = [rejected("unavailable")]
                await drive(parts, workflow_id)
            if where == "running":  # the cancellation is sent, and its answer is lost with its driver
                async with doomed(parts, Fate(3, before=True)) as mortal:
                    with pytest.raises(DiedError):
                        await drive(mortal, workflow_id)
            with owners(parts) as sql:
                sql.execute("UPDATE workflow SET recoveries = 20")
            advance_clock(parts, 60)
            assert await rows(parts, "SELECT count_broken_drive(%(id)s, 20)", id=workflow_id) == [(20,)]
            state = await load(parts, workflow_id)
            assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "recoveries_exhausted")
            assert [one for one, *_ in await rows(parts, UNDONE)] == ["impossible"]
            assert await rows(parts, "SELECT cause FROM stop_log") == [("compensation_impossible",)]
            go_on(parts)
            if where == "running":
                assert (await adopt(parts, workflow_id, SATO, no_wake)).known == "verified"
            await order(parts, workflow_id, "again")
            assert (await settle(parts, workflow_id)).task.reason == "compensated"
            assert await rows(parts, UNDER_WAY) == []
        assert [tool for tool, _ in tools.executed].count("cancel_return") == 1

    run()


@asynchronous
async def test_nobody_calls_undone_what_nothing_has_undone_nor_lets_an_ended_one_begin_again():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await wrong_return(parts, tools)
        with owners(parts) as sql:
            with refused(sql, "KS012"):
                sql.execute("UPDATE compensation SET state = 'done', ended_at = clock_now()")
            with refused(sql, "KS012"):  # and the case stays where something is undone
                sql.execute("UPDATE compensation SET state = 'impossible', ended_at = clock_now()")
                sql.execute("UPDATE workflow SET seq = seq, state = state")
                sql.execute("SET CONSTRAINTS ALL IMMEDIATE")
        await undo(parts, workflow_id)
        with owners(parts) as sql:
            for change in ("state = 'required', ended_at = NULL", "released_by = NULL, released_at = NULL"):
                with refused(sql, "KS013"):
                    sql.execute(f"UPDATE compensation SET {change}")  # noqa: S608
        assert [tool for tool, *_ in await rows(parts, CALLS)] == [
            "get_return_links", "cancel_return", "get_return_links",
        ]  # fmt: skip


@asynchronous
async def test_a_case_of_a_release_that_the_program_does_not_carry_is_left_to_one_that_does():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools, told=False)
        other = replace(parts, kinds={})
        for act in (
            adopt(other, workflow_id, SATO, no_wake),
            look_up(other, workflow_id, SATO),
            order(other, workflow_id),
            close(desk(other), workflow_id, SATO, "why", accept_unknown=False),
        ):
            with pytest.raises((NotPossibleError, ApprovalRefusedError), match="does not carry"):
                await act
        assert await rows(parts, UNDER_WAY) == []


@asynchronous
async def test_no_review_is_closed_without_a_name_that_answers_for_it_though_the_engines_role_writes_it():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await unverified(parts, tools, told=False)
        state = await load(parts, workflow_id)
        ((key, kind),) = parts.kinds.items()
        assert key == (state.task.kind, state.task.release)
        step = Step(state, kind.workflow, kind.moves, claim=False, active_ms=0)
        step.close_review()
        async with parts.pool.connection() as connection:
            with pytest.raises(psycopg.Error, match="nobody answers"):
                await connection.execute("SELECT commit_steps(%s)", [Jsonb(step.rows("raw", 1.0, ENDED))])
        assert not (await load(parts, workflow_id)).control.closed
        await close(desk(parts), workflow_id, SATO, "settled by hand", accept_unknown=False)
        assert (await load(parts, workflow_id)).control.closed
