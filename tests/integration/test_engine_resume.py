"""After a stop: what nobody knows is looked up, recorded, and only then lifted; work goes on by parts."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from host.domain.acting import By
from host.engine.drive import drive, load
from host.engine.parts import Parts
from host.engine.review import close
from host.engine.stops import find_out
from host.engine.sweep import run_once
from host.engine.worker import run_once as driven
from host.store import stops
from host.store.errors import NotLiftedError, OneAtATimeError, StoppedError
from tests.support.approvals import desk
from tests.support.engine import advance_clock, asynchronous, engine, no_wake, owners, rows, settle, take
from tests.support.fake_tools import FakeTools, unknown
from tests.support.stops import engaged, full, held, lift, newest_act, reconciled, release, stop

SATO = By("sato", "tester", "sha256:of-a-test")


async def in_doubt(parts: Parts, tools: FakeTools) -> Any:
    """A case that ended in review: its return was made, and no look could find that out."""
    tools.script |= {"create_return": [tools.then(unknown())], "find_return": [unknown()] * 20}
    workflow_id = await take(parts)
    state = await settle(parts, workflow_id)
    assert state.task.state == "NEEDS_REVIEW"
    return workflow_id


@asynchronous
async def test_while_an_effect_is_unknown_the_stop_stays_and_the_record_says_which():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools)
        await stop(parts)
        await find_out(parts, SATO)
        counted = await reconciled(parts)
        with pytest.raises(NotLiftedError, match="nobody knows"):
            await lift(parts, counted.reconciliation_id)
        assert await engaged(parts) == {"new_work", "updates", "parallel"}
        assert counted.states == {"NEEDS_REVIEW": {"cases": 1, "effects": {"unknown": 1}}}
        (one,) = counted.unsettled
        assert (one["workflow_id"], one["effect"]) == (str(workflow_id), "create_return")
        assert await rows(parts, "SELECT count(*) FROM reconciliation") == [(1,)]


@asynchronous
async def test_what_a_look_by_its_key_finds_out_lets_the_stop_be_lifted():
    tools = FakeTools()
    async with engine(tools) as parts:
        await in_doubt(parts, tools)
        await stop(parts)
        tools.script.clear()
        assert await find_out(parts, SATO) == 1
        counted = await reconciled(parts)
        assert counted.states == {"NEEDS_REVIEW": {"cases": 1, "effects": {"verified": 1}}}
        await lift(parts, counted.reconciliation_id)
        assert await engaged(parts) == {"parallel"}
        assert tools.sent("create_return") == 1


@asynchronous
async def test_an_unknown_effect_that_a_person_answers_for_hinders_nobody():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools)
        await stop(parts)
        await close(desk(parts), workflow_id, SATO, "asked the shop", accept_unknown=True)
        counted = await reconciled(parts)
        assert counted.states["NEEDS_REVIEW"]["effects"] == {"accepted": 1}
        assert [(one["workflow_id"], one["by"]) for one in counted.accepted] == [(str(workflow_id), "sato")]
        await lift(parts, counted.reconciliation_id)
        assert await engaged(parts) == {"parallel"}


@asynchronous
async def test_a_case_at_work_is_driven_until_its_effect_is_recorded_and_then_waits():
    """A driver died with its request on the wire; its lease is waited for."""
    tools = FakeTools()
    async with engine(tools, lease_seconds=1) as parts:

        def died(request: Any) -> Any:
            tools.honest(request)
            raise asyncio.CancelledError

        tools.script["create_return"] = [died]
        workflow_id = await take(parts)
        with pytest.raises(asyncio.CancelledError):
            await drive(parts, workflow_id)
        await stop(parts)
        assert await find_out(parts, SATO, 20) == 1
        state = await load(parts, workflow_id)
        counted = await reconciled(parts)
    assert state.task.state == "RETURN_CREATED"
    assert counted.states == {"RETURN_CREATED": {"cases": 1, "effects": {"verified": 1}}}
    assert tools.sent("create_return") == 1
    assert tools.notices == {}


@asynchronous
async def test_what_is_under_way_and_what_is_open_is_named_with_its_ids():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)

        async def meanwhile(request: Any) -> Any:
            await stop(parts)
            async with parts.pool.connection() as connection:
                under_way, met = await stops.under_way(connection), await stops.open_cases(connection)
            assert [(one.workflow_id, one.name) for one in under_way] == [(workflow_id, "create_return")]
            assert [(one.state, one.cases, one.workflow_ids) for one in met] == [("ELIGIBLE", 1, [workflow_id])]
            return tools.honest(request)

        tools.script["create_return"] = [meanwhile]
        assert (await drive(parts, workflow_id)).task.state == "RETURN_CREATED"
        async with parts.pool.connection() as connection:
            assert await stops.under_way(connection) == []


@asynchronous
async def test_a_record_from_before_the_newest_stop_lifts_nothing():
    async with engine(FakeTools()) as parts:
        await stop(parts)
        old = await reconciled(parts)
        await stop(parts, reads=True)
        with pytest.raises(NotLiftedError, match="stopped again"):
            await lift(parts, old.reconciliation_id)
        with pytest.raises(NotLiftedError, match="stopped again"):
            await lift(parts, 0)
        assert await engaged(parts) == {"new_work", "updates", "reads", "parallel"}
        await lift(parts)
        with pytest.raises(NotLiftedError, match="nothing is stopped"):
            await lift(parts)


@asynchronous
async def test_a_second_stop_adds_to_the_first_whose_reason_stays_and_both_are_in_the_history():
    async with engine(FakeTools()) as parts:
        await stop(parts)
        await stop(parts, reads=True, by=By("ito", "other", "sha256:of-a-test"), reason="reads too")
        who = await rows(parts, "SELECT scope, actor, reason FROM stop WHERE engaged ORDER BY scope")
        logged = await rows(parts, "SELECT act, scopes, actor, details ->> 'os_user' FROM stop_log ORDER BY stop_id")
        audited = await rows(
            parts, "SELECT actor, action, details ->> 'os_user' FROM audit WHERE action = 'stop' ORDER BY audit_id"
        )
    assert who == [
        ("new_work", "sato", "a test"), ("parallel", "sato", "a test"), ("reads", "ito", "reads too"),
        ("updates", "sato", "a test"),
    ]  # fmt: skip
    assert logged == [
        ("stop", ["new_work", "updates"], "sato", "tester"), ("stop", ["new_work", "updates", "reads"], "ito", "other")
    ]  # fmt: skip
    assert audited == [("sato", "stop", "tester"), ("ito", "stop", "other")]


@asynchronous
async def test_deleted_stop_rows_are_put_back_by_the_lift():
    async with engine(FakeTools()) as parts:
        with owners(parts) as sql:
            sql.execute("DELETE FROM stop")
        await lift(parts)
        scopes = await rows(parts, "SELECT scope, engaged FROM stop ORDER BY scope")
    assert scopes == [("new_work", False), ("parallel", True), ("reads", False), ("updates", False)]


@asynchronous
async def test_lifting_releasing_and_ending_one_at_a_time_are_the_owners_alone():
    async with engine(FakeTools()) as parts:
        await stop(parts)
        for call in (
            "lift_stop('sato', 'x', 1, '{}')", "release_held('ELIGIBLE', 1, 'sato', 'x', '{}')",
            "end_one_at_a_time('sato', 'x', '{}')", "log_stop_act('full', 'x', '{}', 'sato', 'x', 'x', NULL, '{}')",
        ):  # fmt: skip
            async with parts.pool.connection() as connection:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    await connection.execute(f"SELECT {call}".encode())
        async with parts.pool.connection() as connection:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await connection.execute("UPDATE stop SET engaged = false")


async def halted_cases(parts: Parts, count: int) -> list[Any]:
    """Cases that stand before their return, and one that no driver has seen; then everything is stopped and lifted."""
    await stop(parts)
    with owners(parts) as sql:  # they were taken in before
        sql.execute("UPDATE stop SET engaged = false WHERE scope IN ('new_work', 'parallel')")
    cases = [await take(parts, request_id=f"r-{n}") for n in range(count)]
    for workflow_id in cases[:-1]:
        await drive(parts, workflow_id)
    await stop(parts)
    await lift(parts)
    return cases


@asynchronous
async def test_after_the_lift_nothing_that_was_halted_or_queued_goes_on_by_itself():
    tools = FakeTools()
    async with engine(tools) as parts:
        cases = await halted_cases(parts, 3)
        advance_clock(parts, 60)
        assert await held(parts) == {"ELIGIBLE": 2, "RECEIVED": 1}
        assert await run_once(parts, no_wake) == 0
        for workflow_id in cases:
            await driven(parts, workflow_id)  # a wake-up that was left over
        assert await held(parts) == {"ELIGIBLE": 2, "RECEIVED": 1}
    assert tools.executed == []


@asynchronous
async def test_a_part_is_released_oldest_first_and_recorded_and_the_rest_stays_held():
    async with engine(FakeTools()) as parts:
        cases = await halted_cases(parts, 4)
        assert await release(parts, "ELIGIBLE", 2) == cases[:2]
        assert await held(parts) == {"ELIGIBLE": 1, "RECEIVED": 1}
        assert await release(parts, "COMPLETED", 5) == []
        (logged,) = await rows(parts, "SELECT act, details FROM stop_log WHERE act = 'release'")
        assert logged[1]["count"] == 2
        assert logged[1]["workflow_ids"] == [str(one) for one in cases[:2]]
        assert (await settle(parts, cases[0])).task.state == "COMPLETED"
        assert (await load(parts, cases[2])).task.state == "ELIGIBLE"


@asynchronous
async def test_one_case_is_woken_at_a_time_and_none_while_another_is_at_work():
    woken: list[Any] = []

    async def wake(_connection: Any, workflow_id: Any) -> None:
        woken.append(workflow_id)

    tools = FakeTools()
    async with engine(tools) as parts:
        cases = await halted_cases(parts, 4)
        await release(parts, "ELIGIBLE", 3)
        assert await run_once(parts, wake) == 1

        async def meanwhile(request: Any) -> Any:
            assert await run_once(parts, wake) == 0
            with pytest.raises(OneAtATimeError):
                await drive(parts, cases[1])
            await driven(parts, cases[1])  # a worker lets go without a word
            return tools.honest(request)

        tools.script["create_return"] = [meanwhile]
        await drive(parts, cases[0])
        recoveries = await rows(parts, "SELECT recoveries FROM workflow")
        assert recoveries == [(0,)] * 4
        assert await run_once(parts, wake) == 1
        assert woken == [cases[0], cases[1]]
        assert (await settle(parts, cases[1])).task.state == "COMPLETED"


@asynchronous
async def test_several_at_a_time_again_only_when_nothing_is_stopped_and_nobody_is_held():
    async with engine(FakeTools()) as parts:
        await stop(parts)
        with pytest.raises(StoppedError):
            await full(parts)
        cases = await halted_cases(parts, 2)
        with pytest.raises(NotLiftedError, match="still held"):
            await full(parts)
        await release(parts, "ELIGIBLE", 9)
        await release(parts, "RECEIVED", 9)
        await full(parts)
        assert await engaged(parts) == set()
        with pytest.raises(NotLiftedError, match="already"):
            await full(parts)
        acts = await rows(parts, "SELECT act FROM stop_log ORDER BY stop_id")
        assert [act for (act,) in acts][-4:] == ["resume", "release", "release", "full"]
        for workflow_id in cases:
            assert (await settle(parts, workflow_id)).task.state == "COMPLETED"


@asynchronous
async def test_nothing_is_released_while_work_is_stopped():
    async with engine(FakeTools()) as parts:
        await halted_cases(parts, 2)
        await stop(parts)
        with pytest.raises(StoppedError):
            await release(parts, "ELIGIBLE", 1)
        assert await held(parts) == {"ELIGIBLE": 1, "RECEIVED": 1}


@asynchronous
async def test_what_is_still_to_be_undone_keeps_the_stop_and_is_named():
    tools = FakeTools()
    async with engine(tools) as parts:
        tools.script["get_return"] = [tools.but(lines=[{"line_id": "1", "quantity": 2}])]
        workflow_id = await take(parts)
        state = await drive(parts, workflow_id)
        assert state.task.state == "COMPENSATION_REQUIRED"
        counted = await reconciled(parts)
        assert [one["workflow_id"] for one in counted.to_undo] == [str(workflow_id)]
        with pytest.raises(NotLiftedError, match="to be undone"):
            await lift(parts, counted.reconciliation_id)


@asynchronous
async def test_two_who_lift_at_once_lift_it_together_or_one_of_them_is_told():
    async with engine(FakeTools()) as parts:
        await stop(parts)
        number = (await reconciled(parts)).reconciliation_id
        done = await asyncio.gather(lift(parts, number), lift(parts, number), return_exceptions=True)
        assert sorted(type(one).__name__ for one in done) == ["NotLiftedError", "int"]
        assert await rows(parts, "SELECT count(*) FROM stop_log WHERE act = 'resume'") == [(1,)]


@asynchronous
async def test_what_the_look_up_itself_finds_wrong_keeps_the_stop_until_it_is_looked_at_again():
    tools = FakeTools()
    async with engine(tools) as parts:

        def tampered(request: Any) -> Any:
            answer = tools.honest(request)
            for made in tools.returns.values():
                made["lines"] = [{"line_id": "1", "quantity": 2}]
            return unknown()(request) if answer else answer

        tools.script |= {"create_return": [tampered], "find_return": [unknown()] * 20}
        workflow_id = await take(parts)
        assert (await settle(parts, workflow_id)).task.state == "NEEDS_REVIEW"
        tools.script.clear()
        await stop(parts)
        before = await newest_act(parts)
        await find_out(parts, SATO)
        counted = await reconciled(parts, before)
        assert counted.unsettled == []
        with pytest.raises(NotLiftedError, match="stopped again"):
            await lift(parts, counted.reconciliation_id)
        assert await engaged(parts) == {"new_work", "updates", "parallel"}
        async with parts.pool.connection() as connection:
            (found,) = await stops.stopped_since(connection, before)
        assert (found.workflow_id, found.actor) == (workflow_id, "engine")
        await lift(parts)  # somebody has read it, and looked again
