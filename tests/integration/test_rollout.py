"""Cases come in by stages: for whom, how many, under which release; and a stage ends by what they have shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier

from host.commands.rollout_read import said_now
from host.domain.acting import By
from host.domain.principals import Audience, Principal
from host.domain.rollout import Reconciled, stands_against
from host.engine.parts import Parts
from host.store import rollout
from host.store.errors import ActRefusedError, InvariantError, NotAdmittedError
from tests.support.cluster import database_name, dsn_of
from tests.support.engine import DESK, advance_clock, asynchronous, rows, settle
from tests.support.fake_tools import FakeTools, rejected
from tests.support.raw_sql import refused
from tests.support.releases import SATO, acted, open_stage, owner, record, roll_back, take_many, take_new, two_releases

_TO_UNDO = """
INSERT INTO compensation (workflow_id, n, step, first_step, ordered_by, reason, ordered_at, due_at, state)
VALUES (%s, 1, 1, 2, 'sato', 'x', now(), now() + interval '1 hour', 'required')
"""
_PASS = """
INSERT INTO rollout_log (act, stage, opening, releases, cases, compared, untracked, missing, duplicate, uncompensated,
                         checked, wrong, actor, reason, details, at)
SELECT 'pass', 1, act_id, releases, %s, %s, %s, %s, 0, %s, 0, 0, 'x', 'x', '{}', now()
  FROM rollout_log WHERE act = 'open'
"""
AGREE = Reconciled(compared=40, untracked=0, missing=0, duplicate=0)


def asking(audience: Audience) -> Principal:
    return DESK.model_copy(update={"audience": audience})


INTERNAL, COOPERATING, ORDINARY = map(asking, (Audience.INTERNAL, Audience.COOPERATING, Audience.ORDINARY))


@asynccontextmanager
async def staged(tools: FakeTools | None = None, *, recorded: bool = True) -> AsyncIterator[Parts]:
    """A database in which somebody may roll out; cases end quickly, since there is no such order."""
    quick = FakeTools(script={"get_order": [rejected("not_found")] * 100})
    async with two_releases(quick if tools is None else tools) as parts:
        if recorded:
            await record(parts, "returns-1")
        yield parts


async def ended(parts: Parts, count: int, asking: Principal, first: int = 1) -> list[UUID]:
    """Take so many in and drive them to their end."""
    taken = await take_many(parts, range(first, first + count), asking)
    await asyncio.gather(*(settle(parts, one) for one in taken))
    return taken


async def passed(parts: Parts, stage: int, asking: Principal, first: int) -> list[UUID]:
    await acted(parts, rollout.open_stage, stage)
    taken = await ended(parts, (await open_stage(parts)).due, asking, first)
    if stage == 3:
        await checked(parts, taken)
    await acted(parts, rollout.pass_stage, stage, AGREE)
    return taken


async def checked(parts: Parts, cases: list[UUID], verdict: str = "ok", by: By = SATO) -> None:
    async with await owner(parts) as connection:
        for one in cases:
            await rollout.check(connection, one, verdict, by, "looked at")


def meddling(parts: Parts) -> psycopg.Connection[Any]:
    """Whoever owns the database, and may try anything."""
    return psycopg.connect(dsn_of(database_name(parts.pool.conninfo)), autocommit=True)


async def pass_refused(parts: Parts, stage: int, compared: Reconciled = AGREE) -> None:
    with pytest.raises((InvariantError, ActRefusedError)):
        await acted(parts, rollout.pass_stage, stage, compared)


@asynchronous
async def test_where_nobody_has_said_anything_no_case_is_taken_in():
    async with staged() as parts:
        with meddling(parts) as sql:
            sql.execute("SET session_replication_role = replica")
            sql.execute("DELETE FROM rollout_log")
        with pytest.raises(NotAdmittedError, match="nobody has opened a rollout here"):
            await take_new(parts, INTERNAL)
        async with parts.pool.connection() as connection:
            assert not await rollout.tracked(connection)  # and one at a time
            assert await said_now(connection) == (
                False, "nobody has opened a rollout here, or said that none runs: no case is taken in",
            )  # fmt: skip
        await acted(parts, rollout.waive)
        await take_new(parts, ORDINARY)
        assert await rows(parts, "SELECT count(*) FROM admission") == [(0,)]


@asynchronous
async def test_a_stage_takes_in_its_audience_and_no_more_cases_than_it_has_to_show():
    async with staged() as parts:
        await acted(parts, rollout.open_stage, 1)
        for other in (COOPERATING, ORDINARY):
            with pytest.raises(NotAdmittedError, match="come in with stage"):
                await take_new(parts, other)
        outcomes = await asyncio.gather(
            *(take_new(parts, INTERNAL, order_id=f"A-{n}", request_id=f"r-{n}") for n in range(16)),
            return_exceptions=True,
        )
        told = [str(one).splitlines()[0] for one in outcomes if isinstance(one, NotAdmittedError)]
        assert told == ["stage 1 has its 10 cases"] * 6  # however many come at once
        assert await rows(parts, "SELECT count(*), count(DISTINCT opening) FROM admission") == [(10, 1)]
        first = next(one for one in outcomes if isinstance(one, UUID))
        again = await rows(parts, "SELECT request_id, resource FROM workflow WHERE workflow_id = %(id)s", id=first)
        same = await take_new(parts, INTERNAL, request_id=again[0][0], order_id=again[0][0].replace("r", "A"))
        assert same == first  # the same request again is the case that is there


@asynchronous
async def test_three_stages_are_passed_in_their_order_and_then_everybody_comes_in_and_some_are_checked():
    async with staged() as parts:
        for early in (2, 3):
            with pytest.raises(ActRefusedError, match=f"comes after stage {early - 1}"):
                await acted(parts, rollout.open_stage, early)
        async with parts.pool.connection() as connection:
            assert not await _several(connection, parts)
            await passed(parts, 1, INTERNAL, 100)
            assert await rollout.tracked(connection)  # several at a time, once every call was seen to be traced
            assert await said_now(connection) == (True, "no stage is open: no case is taken in")
        with pytest.raises(NotAdmittedError, match="no stage"):
            await take_new(parts, INTERNAL)  # between two stages nobody comes in
        await passed(parts, 2, COOPERATING, 200)
        await passed(parts, 3, ORDINARY, 300)
        kept = await rows(parts, "SELECT stage, cases, checked, wrong FROM rollout_log WHERE act = 'pass' ORDER BY 1")
        assert kept == [(1, 10, 0, 0), (2, 20, 0, 0), (3, 50, 50, 0)]
        assert await rows(parts, "SELECT count(*) FROM admission WHERE to_check") == [(50,)]  # all of the last
        after = await take_new(parts, ORDINARY, request_id="after")
        found = await rows(parts, "SELECT opening, one_in FROM admission WHERE workflow_id = %(id)s", id=after)
        assert found == [(None, 10)]
        newest = await rows(parts, "SELECT workflow_id FROM admission ORDER BY n DESC OFFSET 1 LIMIT 2")
        async with await owner(parts) as connection:
            await rollout.check(connection, newest[0][0], "wrong", replace(SATO, name="ito"), "another amount")
            assert (await rollout.sampling(connection)).one_in == 2
            await rollout.check(connection, newest[1][0], "wrong", replace(SATO, name="ito"), "another order")
            assert (await rollout.sampling(connection)).one_in == 1
        await record(parts, "returns-2")  # a release that has shown nothing yet takes nobody in
        with pytest.raises(NotAdmittedError, match="no stage of the rollout is open for returns-2"):
            await take_new(parts, ORDINARY, request_id="next")
        await roll_back(parts, "returns-1", "returns-2")
        await take_new(parts, ORDINARY, request_id="next")  # and the way back is open at once


async def _several(connection: AsyncConnection[Any], parts: Parts) -> bool:
    """Whether several at a time would be let go while the first stage is open."""
    await acted(parts, rollout.open_stage, 1)
    try:
        return await rollout.tracked(connection)
    finally:
        await acted(parts, rollout.abandon, 1)


@asynchronous
async def test_what_stands_against_a_stage_keeps_it_open_whoever_asks():
    async with staged() as parts:
        await acted(parts, rollout.open_stage, 1)
        await ended(parts, 9, INTERNAL)
        await pass_refused(parts, 1)
        assert stands_against(await open_stage(parts), AGREE) == ("9 of 10 cases have ended",)
        last = await take_new(parts, INTERNAL, request_id="r-10", order_id="A-10")
        await pass_refused(parts, 1)  # taken in, and not ended
        await settle(parts, last)
        for differing in (
            Reconciled(40, 1, 0, 0),
            Reconciled(40, 0, 1, 0),
            Reconciled(40, 0, 0, 1),
            Reconciled(0, 0, 0, 0),
        ):
            await pass_refused(parts, 1, differing)
        assert await acted(parts, rollout.pass_stage, 2, AGREE) is None  # it is not the open one
        await acted(parts, rollout.pass_stage, 1, AGREE)
        with meddling(parts) as sql, refused(sql, "KS031"):  # a stage is closed once
            sql.execute(
                "INSERT INTO rollout_log (act, stage, opening, actor, reason, details, at)"
                " SELECT 'abandon', 1, opening, 'x', 'x', '{}', now() FROM rollout_log WHERE act = 'pass'"
            )


@asynchronous
async def test_a_case_that_somebody_found_wrong_keeps_the_first_stage_open_too():
    async with staged() as parts:
        await acted(parts, rollout.open_stage, 1)
        taken = await ended(parts, 10, INTERNAL)
        await checked(parts, taken[:1], "wrong")
        await pass_refused(parts, 1)
        await acted(parts, rollout.abandon, 1)


@asynchronous
async def test_the_last_stage_wants_each_of_its_cases_checked_and_none_found_wrong():
    async with staged() as parts:
        await passed(parts, 1, INTERNAL, 100)
        await passed(parts, 2, INTERNAL, 200)
        await acted(parts, rollout.open_stage, 3)
        taken = await ended(parts, 50, ORDINARY, 300)
        await checked(parts, taken[:-1])
        assert stands_against(await open_stage(parts), AGREE) == ("49 of 50 cases are checked by a person",)
        await pass_refused(parts, 3)
        await checked(parts, taken[-1:], "wrong")
        assert stands_against(await open_stage(parts), AGREE) == ("1 cases were found wrong",)
        await pass_refused(parts, 3)
        await acted(parts, rollout.abandon, 3)
        with pytest.raises(ActRefusedError, match="comes after stage 2 was passed"):
            await acted(parts, rollout.open_stage, 3)  # what was given up begins anew
        await acted(parts, rollout.open_stage, 1)


@asynchronous
async def test_what_is_still_to_be_undone_keeps_a_stage_open_and_so_does_another_release():
    async with staged() as parts:
        await acted(parts, rollout.open_stage, 1)
        taken = await ended(parts, 10, INTERNAL)
        with meddling(parts) as sql:
            sql.execute("SET session_replication_role = replica")
            sql.execute(_TO_UNDO, (taken[0],))
            assert stands_against(await open_stage(parts), AGREE) == ("1 compensations are unfinished",)
            await pass_refused(parts, 1)
            sql.execute("UPDATE compensation SET state = 'done', ended_at = now()")
        await record(parts, "returns-2")
        assert stands_against(await open_stage(parts), AGREE) == (
            "new cases begin under another release than when it was opened",
        )
        await pass_refused(parts, 1)
        await roll_back(parts, "returns-1", "returns-2")
        await acted(parts, rollout.pass_stage, 1, AGREE)


@asynchronous
async def test_a_case_that_a_person_has_to_take_over_has_not_ended_until_its_review_is_closed():
    async with staged(FakeTools(), recorded=False) as parts:
        await record(parts, "returns-2")  # which hands every case to a person
        await acted(parts, rollout.open_stage, 1)
        (one,) = await ended(parts, 1, INTERNAL)
        assert (await open_stage(parts)).ended == 0
        with pytest.raises(ActRefusedError, match="has not ended"):
            await checked(parts, [one])
        with meddling(parts) as sql:
            sql.execute("SET session_replication_role = replica")
            sql.execute("UPDATE workflow SET review_closed_at = clock_now()")
        assert (await open_stage(parts)).ended == 1
        await checked(parts, [one])


@asynchronous
async def test_what_one_release_has_shown_lets_no_other_one_into_the_next_stage():
    async with staged() as parts:
        await passed(parts, 1, INTERNAL, 100)
        await record(parts, "returns-2")
        with pytest.raises(ActRefusedError, match="stage 2 comes after stage 1 was passed under the same releases"):
            await acted(parts, rollout.open_stage, 2)
        await roll_back(parts, "returns-1", "returns-2")
        await acted(parts, rollout.open_stage, 2)


@asynchronous
async def test_no_time_that_goes_by_passes_a_stage():
    async with staged() as parts:
        await acted(parts, rollout.open_stage, 1)
        await ended(parts, 9, INTERNAL)
        advance_clock(parts, 400 * 86_400)
        await pass_refused(parts, 1)
        with pytest.raises(NotAdmittedError):
            await take_new(parts, ORDINARY, request_id="later")


@asynchronous
async def test_one_stage_is_open_at_a_time_and_nothing_is_rolled_out_that_has_not_passed():
    async with staged(recorded=False) as parts:
        with pytest.raises(InvariantError):
            await acted(parts, rollout.open_stage, 1)
        await record(parts, "returns-1")
        outcomes = await asyncio.gather(
            *(acted(parts, rollout.open_stage, 1) for _ in range(4)), return_exceptions=True
        )
        assert sorted(type(one).__name__ for one in outcomes) == ["Act", *["ActRefusedError"] * 3]
        with pytest.raises(ActRefusedError, match="stage 1 is open; close it first"):
            await acted(parts, rollout.waive)


@asynchronous
async def test_a_check_is_of_a_case_that_has_ended_by_somebody_else_than_its_requester_and_stays():
    async with staged() as parts:
        await acted(parts, rollout.open_stage, 1)
        fresh = await take_new(parts, INTERNAL)
        for name, said in (("sato", "has not ended"), ("Returns-Desk@acme-jp", "asked for the case")):
            if name != "sato":
                await settle(parts, fresh)
            with pytest.raises(ActRefusedError, match=said):
                await checked(parts, [fresh], by=replace(SATO, name=name))
        await checked(parts, [fresh])
        with pytest.raises(ActRefusedError, match="what was found stays"):
            await checked(parts, [fresh], "wrong")
        with pytest.raises(InvariantError):
            await checked_unsaid(parts, fresh)


async def checked_unsaid(parts: Parts, case: UUID) -> None:
    async with await owner(parts) as connection:
        await rollout.check(connection, case, "wrong", replace(SATO, name="ito"), "")


@asynchronous
async def test_no_hand_changes_what_was_let_in_and_the_workers_role_lets_nobody_in():
    async with staged() as parts:
        await acted(parts, rollout.open_stage, 1)
        await checked(parts, await ended(parts, 1, INTERNAL))
        with meddling(parts) as sql:
            for table in ("rollout_log", "admission", "case_check"):
                for change in ("UPDATE {} SET at = now()", "DELETE FROM {}", "TRUNCATE {} CASCADE"):
                    with refused(sql, "KS013"):
                        sql.execute(SQL(change).format(Identifier(table)))
            for counts in ((9, 40, 0, 0, 0), (10, 40, 1, 0, 0), (10, 0, 0, 0, 0), (10, 40, 0, 0, 1)):
                with refused(sql, "23514"):
                    sql.execute(_PASS, counts)
        for statement in (
            "INSERT INTO rollout_log (act, actor, reason, details, at) VALUES ('waive', 'x', 'x', '{}', now())",
            "INSERT INTO case_check SELECT workflow_id, 'x', 'ok', '', '{}', now() FROM workflow",
            "DELETE FROM admission", "SELECT admit_case('returns', 'returns-1', 'internal')",
        ):  # fmt: skip
            async with parts.pool.connection() as connection:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    await connection.execute(statement)
