"""What a person reads of trouble: alerts, the details of errors, and which of several workflows a name means."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from host.commands import record_sheet, sheets
from host.commands.exits import CommandError, Exit
from host.commands.lookup import found_id
from host.commands.records import _listed
from host.domain.proposals import ToolCall
from host.engine.drive import drive
from host.record import assemble
from host.settings import Settings
from host.store import external
from host.store import record as store
from host.views import ExternalTask, TokenList, WorkflowList
from host.workflows.returns import RETURNS
from shared_contracts.base import dump
from tests.support.engine import advance_clock, asynchronous, engine, take
from tests.support.fake_tools import FakeTools, rejected
from tests.support.records import fits, record_of, rows_of
from tests.support.scripted_planner import ScriptedPlanner, calling


def as_page(row: Any) -> str:
    to = Console(file=StringIO(), width=200, highlight=False, emoji=False, markup=False)
    record_sheet.record(to, Settings(), assemble(row, RETURNS), row)
    return str(to.file.getvalue())


REACHING = ToolCall("call_x", "get_order", {"order_id": "A-9"})


@asynchronous
async def test_a_proposal_for_anothers_order_is_an_alert_in_the_record_and_on_its_page():
    async with engine(FakeTools(), ScriptedPlanner(script=[REACHING])) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        record, row = await record_of(parts, workflow_id), await rows_of(parts, workflow_id)
    (alert,) = record["alerts"]
    assert alert["details"] == {"tool": "get_order", "call_id": "call_x"}
    page = as_page(row)
    assert "\nalerts" in page
    assert alert["code"] in page
    assert "tool=get_order" in page


@asynchronous
async def test_a_run_without_trouble_has_no_alert_and_no_place_for_one_on_its_page():
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        record, row = await record_of(parts, workflow_id), await rows_of(parts, workflow_id)
    assert record["alerts"] == []
    assert "alerts" not in as_page(row)


@asynchronous
async def test_the_exception_queue_marks_what_has_an_alert_and_only_that():
    tools = FakeTools()
    async with engine(tools, ScriptedPlanner(script=[REACHING])) as parts:
        reached = await take(parts)
        await drive(parts, reached)
        (alert,) = (await record_of(parts, reached))["alerts"]
        tools.line["dangerous"] = True
        goods = await take(parts, order_id="A-2")
        await drive(parts, goods)
        async with parts.pool.connection() as connection:
            queue = await store.exceptions(connection, 10)
    listed = WorkflowList(classes=None, workflows=tuple(_listed(row) for row in queue), next_before=None)
    fits(dump(listed), "command.list.json")
    marks = {row.workflow_id: row.alerts for row in listed.workflows}
    assert marks == {reached: (alert["code"],), goods: ()}


@asynchronous
async def test_a_refusals_details_stand_in_the_record_and_its_reason_on_the_page():
    refused = rejected("not_eligible", details={"reason": "window_over", "outcome": "rejected"})
    async with engine(FakeTools(script={"create_return": [refused]})) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        record, row = await record_of(parts, workflow_id), await rows_of(parts, workflow_id)
    call = record["calls"][2]
    assert call["error"]["details"] == {"reason": "window_over", "outcome": "rejected"}
    assert call["attempts"][0]["error"] == call["error"]
    assert "not_eligible (window_over)" in as_page(row)


@asynchronous
async def test_an_error_that_an_older_program_kept_reads_with_empty_details():
    async with engine(FakeTools(script={"create_return": [rejected("not_eligible")]})) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        row = await rows_of(parts, workflow_id)
    for one in (*row["calls"], *row["attempts"]):
        if one["error"] is not None:
            del one["error"]["details"]
    record = dump(assemble(row, RETURNS))
    assert record["calls"][2]["attempts"][0]["error"]["details"] == {}


@asynchronous
async def test_details_out_of_proportion_are_left_out_and_the_step_is_still_written():
    refused = rejected("not_eligible", details={"reason": "x" * 100_000})
    async with engine(FakeTools(script={"create_return": [refused]})) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        record = await record_of(parts, workflow_id)
    assert record["calls"][2]["error"]["details"] == {}


@asynchronous
async def test_any_one_of_call_step_workflow_return_and_message_id_leads_to_the_other_four():
    async with engine(FakeTools()) as parts:
        other, workflow_id = await take(parts, order_id="A-2"), await take(parts)
        await drive(parts, other)
        await drive(parts, workflow_id)
        whole = await record_of(parts, workflow_id)
        call, result = whole["calls"][2], whole["result"]
        ids = {"step": call["step_id"], "workflow": str(workflow_id), "return": result["return_id"]}
        for name in (*ids.values(), result["message_id"], call["call_id"]):
            found = await record_of(parts, await found_id(parts.pool, name))
            assert (found["workflow_id"], found["result"]["return_id"]) == (ids["workflow"], ids["return"])
            assert found["result"]["message_id"] == result["message_id"]
            assert [(one["step_id"], one["call_id"]) for one in found["calls"]][2] == (ids["step"], call["call_id"])


@asynchronous
async def test_a_call_id_that_two_workflows_have_lists_both_and_asks_for_a_step(capsys: pytest.CaptureFixture[str]):
    always_the_same = ScriptedPlanner([calling("get_order", {"order_id": order}, "call_0") for order in ("A-1", "A-2")])
    async with engine(FakeTools(script={"get_order": [rejected("not_found")] * 2}), always_the_same) as parts:
        first, second = await take(parts), await take(parts, order_id="A-2")
        await drive(parts, first)
        await drive(parts, second)
        call_id = (await record_of(parts, first))["calls"][0]["call_id"]
        with pytest.raises(CommandError) as caught:
            await found_id(parts.pool, call_id)
    said = capsys.readouterr()
    lines = [line.split() for line in said.err.splitlines()]
    assert lines[1:] == [[str(one), "REJECTED", f"{one}.1", "get_order"] for one in (second, first)]
    assert said.out == ""
    assert caught.value.code is Exit.BAD_INPUT
    assert "step_id" in caught.value.mend


TASK = {
    "task_id": "0198c2f4-0000-7000-8000-000000000001", "tenant_id": "acme", "principal": "desk@example.com",
    "customer": "C-1", "scopes": ["orders:read"], "tool": None, "resource": None, "idempotency_key": None,
    "issued_by": "mori",
}  # fmt: skip


@asynchronous
async def test_tokens_are_listed_newest_first_with_what_they_were_issued_for_and_whether_they_are_over():
    async with engine(FakeTools()) as parts, parts.pool.connection() as connection:
        for jti, seconds in (("first", 1), ("second", 900)):
            await external.register(connection, {**TASK, "jti": jti, "seconds": seconds})
        advance_clock(parts, 60)
        found = await external.tasks(connection, 10)
        latest = await external.tasks(connection, 1)
    page = TokenList(tokens=tuple(ExternalTask(**{**row, "scopes": tuple(row["scopes"])}) for row in found))
    document = fits(dump(page), "command.token_list.json")
    assert [(one["jti"], one["expired"]) for one in document["tokens"]] == [("second", False), ("first", True)]
    assert [row["jti"] for row in latest] == ["second"]
    to = Console(file=StringIO(), width=200, highlight=False)
    sheets.tokens(to, page)
    assert "mori" in str(to.file.getvalue())
