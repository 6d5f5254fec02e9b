"""Each turn of a planner is kept in the step that is written anyway: what it was shown, what it gave, masked."""

from __future__ import annotations

import psycopg
import pytest

from shared_contracts.digest import digest
from shared_contracts.tools import TOOLS
from tests.support.engine import asynchronous, engine, owners, settle, take
from tests.support.fake_tools import FakeTools
from tests.support.records import record_of, rows_of
from tests.support.scripted_planner import ScriptedPlanner, calling, honest

WAY = ["get_order", "check_return_policy", "create_return", "send_return_notice"]


@asynchronous
async def test_every_turn_is_at_the_move_that_it_led_to_with_what_was_shown_and_given():
    planner = ScriptedPlanner([calling("get_order", {"order": "kx7q"}, "id-kx7q"), honest])
    async with engine(FakeTools(), planner) as parts:
        workflow_id = await take(parts)
        await settle(parts, workflow_id)
        record, row = await record_of(parts, workflow_id), await rows_of(parts, workflow_id)

    points = [point for point in record["checkpoints"] if point["turn"] is not None]
    turns = [point["turn"] for point in points]
    assert [tuple(turn["offered"]) for turn in turns] == planner.shown
    assert [turn["said"]["calls"][0]["tool"] for turn in turns] == ["get_order", *WAY]
    assert [point["reason"] for point in points] == ["arguments_invalid", *["proposed"] * len(WAY)]
    assert turns[0]["said"]["calls"][0] == {"tool": "get_order", "arguments": {}, "undeclared": 1}
    assert all(digest(row["offers"][turn["offered_sha256"]]) == turn["offered_sha256"] for turn in turns)
    assert "kx7q" not in str(turns)


@asynchronous
async def test_what_was_shown_is_written_once_however_many_cases_and_processes_show_it():
    async with engine(FakeTools()) as parts:
        for order in ("A-1", "A-2", "A-3"):
            await settle(parts, await take(parts, order_id=order))
        assert len(parts.commits.kept) == len(WAY)
        parts.commits.kept.clear()  # another process knows of none
        workflow_id = await take(parts, order_id="A-4")
        await settle(parts, workflow_id)
        with owners(parts) as owner:
            kept = owner.execute("SELECT encode(sha256, 'hex'), definitions FROM offer").fetchall()
        record = await record_of(parts, workflow_id)

    assert sorted(one[0]["name"] for _, one in kept) == sorted(WAY)
    assert all(sha256 == digest(definitions) for sha256, definitions in kept)
    assert {one[0]["description"] for _, one in kept} == {TOOLS[name].summary for name in WAY}
    told = [point["turn"]["said"]["calls"][0]["tool"] for point in record["checkpoints"] if point["turn"]]
    assert told == WAY


@asynchronous
async def test_what_was_kept_is_never_changed_or_removed():
    async with engine(FakeTools()) as parts:
        await settle(parts, await take(parts))
        with owners(parts) as owner:
            for change in ("UPDATE offer SET definitions = '[]'", "DELETE FROM offer", "TRUNCATE offer",
                           "UPDATE checkpoint SET said = NULL"):  # fmt: skip
                with pytest.raises(psycopg.DatabaseError, match="append-only"):
                    owner.execute(change.encode())
