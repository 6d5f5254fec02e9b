"""New cases begin under the release that is recorded, go on under their own, and there is a way back."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from host.commands import releases as commands
from host.commands.exits import CommandError, Exit
from host.database import NotReadyError, database
from host.engine.accept import Origin, accept, read_case
from host.engine.drive import drive
from host.settings import Settings
from host.store import releases
from host.store.errors import ActRefusedError, InvariantError, ReleaseMovedError
from host.workflows.catalogue import BY_RELEASE
from tests.support.cluster import database_name, dsn_of
from tests.support.engine import CASE, DESK, KINDS, PINS, asynchronous, no_wake, rows, settle
from tests.support.fake_tools import FakeTools, rejected
from tests.support.raw_sql import refused
from tests.support.records import fits
from tests.support.releases import NEXT, SATO, owner, passed_by, record, roll_back, take_new, two_releases

_RECORD = """
INSERT INTO release_log (act, kind, release, report_sha256, build, evaluated_at, gate, actor, reason, details, at)
SELECT act, kind, %s, repeat('a', 64), build, evaluated_at, %s, actor, reason, details, at FROM release_log
"""


@asynchronous
async def test_a_rollback_is_for_new_cases_and_every_case_goes_on_under_the_release_that_it_began_with():
    async with two_releases(FakeTools(refund=80_000)) as parts:
        await record(parts, "returns-1")
        first = await take_new(parts, request_id="r-1", order_id="A-1")
        await record(parts, "returns-2")
        second = await take_new(parts, request_id="r-2", order_id="A-2")
        third = await take_new(parts, request_id="r-3", order_id="A-3")
        assert (await settle(parts, second)).task.state == "NEEDS_REVIEW"  # the defect of the second release
        back = await roll_back(parts, "returns-1", "returns-2")
        assert (back.act, back.release, back.left_release, back.actor) == ("rollback", "returns-1", "returns-2", "sato")
        fourth = await take_new(parts, request_id="r-4", order_id="A-4")
        ended = [await settle(parts, one) for one in (first, third, fourth)]
        assert [(one.task.release, one.task.state) for one in ended] == [
            ("returns-1", "WAITING_APPROVAL"),  # begun before the second release
            ("returns-2", "NEEDS_REVIEW"),  # begun before the way back
            ("returns-1", "WAITING_APPROVAL"),
        ]
        moved = await rows(parts, "SELECT DISTINCT w.release, m.release FROM workflow w JOIN checkpoint c USING"
                                  " (workflow_id) JOIN legal_transition m USING (move_id) ORDER BY 1")  # fmt: skip
        assert moved == [("returns-1", "returns-1"), ("returns-2", "returns-2")]


@pytest.mark.parametrize("named", [None, "returns-1"])
def test_the_command_goes_back_to_the_last_that_passed_and_says_who_why_and_from_where(
    named: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(commands, "BY_RELEASE", {**BY_RELEASE, (NEXT.kind, NEXT.release): NEXT})

    @asynchronous
    async def run() -> None:
        async with two_releases(FakeTools()) as parts:
            await record(parts, "returns-1")
            await record(parts, "returns-2")
            owners = dsn_of(database_name(parts.pool.conninfo))
            settings = Settings(dsn=parts.pool.conninfo, migrate_dsn=owners)
            assert await commands.rollback(settings, named, None, "sato", "no effect", as_json=True) is Exit.DONE
            assert (await drive(parts, await take_new(parts))).task.release == "returns-1"
            if named is not None:
                with pytest.raises(CommandError, match="begin under returns-1 already"):
                    await commands.rollback(settings, named, None, "sato", "again", as_json=True)

    run()
    view = fits(json.loads(capsys.readouterr().out), "command.release_list.json")
    assert [one["act"] for one in view["history"]] == ["record", "record", "rollback"]
    back = view["history"][-1]
    assert (back["release"], back["left_release"]) == ("returns-1", "returns-2")
    assert (back["by"]["name"], back["by"]["reason"]) == ("sato", "no effect")
    (returns,) = (one for one in view["kinds"] if one["kind"] == "returns")
    assert (returns["begins_under"], returns["carried"]) == ("returns-1", ["returns-1", "returns-2"])


@asynchronous
async def test_without_a_record_new_cases_begin_under_the_newest_that_the_program_carries():
    async with two_releases(FakeTools()) as parts:
        workflow_id = await take_new(parts)
        assert (await drive(parts, workflow_id)).task.release == "returns-1"


@asynchronous
async def test_a_program_that_does_not_know_of_the_record_takes_nothing_in_under_another_release():
    async with two_releases(FakeTools()) as parts:
        await record(parts, "returns-2")
        workflow, case = read_case(CASE, KINDS)
        with pytest.raises(ReleaseMovedError, match="begin under returns-2, not under returns-1"):
            await accept(parts.pool, parts.kinds["returns", "returns-1"], case, Origin(DESK), PINS, no_wake)
        older = replace(parts, kinds={key: kind for key, kind in parts.kinds.items() if key[1] == workflow.release})
        with pytest.raises(ReleaseMovedError, match="does not carry"):
            await take_new(older)
        assert await rows(parts, "SELECT count(*) FROM workflow") == [(0,)]


@asynchronous
async def test_a_program_that_lacks_the_release_of_an_open_case_does_not_start():
    async with two_releases(FakeTools(script={"get_order": [rejected("not_found")]})) as parts:
        await record(parts, "returns-2")
        workflow_id = await take_new(parts)
        with pytest.raises(NotReadyError, match="returns-2"):
            async with database(parts.pool.conninfo):
                pass
        assert (await settle(parts, workflow_id)).task.state == "REJECTED"
        async with database(parts.pool.conninfo):
            pass


@asynchronous
async def test_back_goes_to_the_last_that_passed_and_to_nothing_that_did_not():
    async with two_releases(FakeTools()) as parts:
        async with parts.pool.connection() as connection:
            assert await releases.last_passed(connection, "returns", ["returns-1"]) is None
        passed = await record(parts, "returns-1")
        await record(parts, "returns-2")
        async with parts.pool.connection() as connection:
            found = await releases.last_passed(connection, "returns", ["returns-1", "returns-2"])
            assert found == passed
            assert await releases.last_passed(connection, "returns", ["returns-2"]) is None  # not in the code any more
        async with await owner(parts) as connection:
            with pytest.raises(ActRefusedError, match="knows no release"):
                await releases.roll_back(connection, replace(passed, release="returns-9"), SATO, "why")


@asynchronous
async def test_a_release_that_was_never_recorded_is_no_way_back():
    async with two_releases(FakeTools()) as parts:
        passed = await record(parts, "returns-1")
        async with await owner(parts) as connection:
            with pytest.raises(ActRefusedError, match="returns-2 has not passed"):
                await releases.roll_back(connection, replace(passed, release=NEXT.release), SATO, "why")


@asynchronous
async def test_a_report_is_recorded_once_so_that_what_was_rolled_back_passes_anew():
    async with two_releases(FakeTools()) as parts:
        await record(parts, "returns-1")
        await record(parts, "returns-2")
        await roll_back(parts, "returns-1", "returns-2")
        with pytest.raises(InvariantError):
            await record(parts, "returns-2")
        await record(parts, "returns-2", "another")
        async with parts.pool.connection() as connection:
            assert await releases.begins_under(connection, "returns") == "returns-2"


@asynchronous
async def test_of_two_who_record_by_one_report_at_once_the_second_is_told_of_the_first():
    passed, waits = passed_by("returns-1"), "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"

    async def second(to: AsyncConnection[Any]) -> None:
        async with to.transaction():
            await commands.recorded(to, passed, SATO, "why")

    async with two_releases(FakeTools()) as parts, await owner(parts) as one, await owner(parts) as other:
        async with one.transaction():
            await commands.recorded(one, passed, SATO, "why")
            racing = asyncio.create_task(second(other))
            async with asyncio.timeout(20):
                while not await rows(parts, waits):  # noqa: ASYNC110 - only the database tells
                    await asyncio.sleep(0.02)
        with pytest.raises(CommandError, match="recorded by this very report"):
            await racing


@asynchronous
async def test_no_hand_changes_the_history_or_records_what_did_not_pass():
    async with two_releases(FakeTools()) as parts:
        await record(parts, "returns-1")
        with psycopg.connect(dsn_of(database_name(parts.pool.conninfo)), autocommit=True) as sql:
            for statement in ("UPDATE release_log SET release = 'returns-2'", "DELETE FROM release_log",
                              "TRUNCATE release_log CASCADE"):  # fmt: skip
                with refused(sql, "KS013"):
                    sql.execute(statement)
            for release, gate, state in (
                ("returns-1", {"passed": False}, "23514"),
                ("returns-9", {"passed": True}, "KS031"),
            ):
                with refused(sql, state):
                    sql.execute(_RECORD, (release, Jsonb(gate)))
        async with parts.pool.connection() as connection:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await connection.execute("INSERT INTO release_log (act) VALUES ('record')")
