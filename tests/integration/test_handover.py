"""The handover sheet, read from a real database: complete, and only for a case that somebody has to take over."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from host.domain.acting import By
from host.domain.proposals import Final
from host.engine.drive import drive
from host.engine.review import close, order_compensation
from host.engine.sweep import end_late
from host.handover.sheet import NoHandover
from host.store import handover as store
from host.store import record
from shared_contracts.tools import TOOLS
from tests.support.approvals import APPROVERS, decide, desk, trust
from tests.support.engine import advance_clock, asynchronous, engine, owners, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown
from tests.support.handovers import LOOKING, made, names, pages, sheet_of
from tests.support.raw_sql import in_doubt
from tests.support.scripted_planner import ScriptedPlanner

ITO = By("ito", "test", "sha256:of-a-test")


@asynchronous
async def test_a_case_in_doubt_is_handed_over_with_everything_that_was_done():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools)
        sheet = await sheet_of(parts, workflow_id)
    assert (sheet["workflow_id"], sheet["customer"], sheet["resource"]) == (str(workflow_id), "C-1", "A-1")
    assert (sheet["state"], sheet["control_state"]) == ("NEEDS_REVIEW", "needs_human")
    assert sheet["why"]["code"] == "unknown_effect"
    assert sheet["why"]["handover_reason"] == "external_fault"
    assert sheet["why"]["sentence"].startswith("A write may have happened")
    assert [call["step_id"] for call in sheet["calls"]] == [f"{workflow_id}.{n}" for n in (1, 2, 3)]
    assert {call["contract_version"] for call in sheet["calls"]} == {"1"}
    doubtful = sheet["calls"][2]
    assert (doubtful["execution_state"], doubtful["attempts"][0]["outcome"]) == ("unknown", "unknown")
    assert doubtful["attempts"][0]["error"] == {"code": "timeout", "category": "unknown_effect", "reason": None}
    assert {read["purpose"] for read in doubtful["engine_reads"]} == {"reconciliation"}
    (effect,) = sheet["effects"]
    assert (effect["outcome"], effect["id_kind"], effect["external_id"]) == (None, "return_id", None)
    assert effect["idempotency_key"] == f"{workflow_id}:create_return"
    assert [(one["name"], one["verification"]) for one in sheet["impact"]["outside"]] == [("create_return", "in_doubt")]
    assert sheet["impact"]["units"] == ["A-1/1"]
    assert names(sheet) == ["review adopt", "review close", *LOOKING]
    assert sheet["compensation"] == {"state": "none", "orders": []}


@asynchronous
async def test_every_retry_has_its_time_and_its_fault():
    tools = FakeTools(script={"check_return_policy": [rejected("unavailable"), rejected("unavailable")]})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await settle(parts, workflow_id)
        sheet = await sheet_of(parts, workflow_id)
    attempts = sheet["calls"][1]["attempts"]
    assert [(one["n"], one["error"]["code"]) for one in attempts] == [(1, "unavailable"), (2, "unavailable")]
    assert sheet["calls"][1]["retry_times"] == [attempts[1]["at"]]
    assert sheet["why"]["code"] == "attempts_exhausted"
    assert sheet["impact"]["outside"] == []
    assert names(sheet) == ["review close", *LOOKING]


@asynchronous
async def test_a_case_that_used_up_its_limit_shows_what_it_was_spent_on():
    words = Final({"status": "completed"}, ())
    async with engine(FakeTools(), ScriptedPlanner(always=lambda _view: words)) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        sheet = await sheet_of(parts, workflow_id)
    spent = {one["what"]: (one["used"], one["limit"]) for one in sheet["spent"]}
    assert spent["refused_proposals"] == (3, 6)
    assert spent["calls"] == (0, 6)
    assert [(one["n"], one["code"], one["tool"]) for one in sheet["refused"]] == [
        (n, "unbacked_completion_claim", None) for n in (1, 2, 3)
    ]
    assert (sheet["control_state"], sheet["why"]["code"]) == ("failed", "planner_exhausted")


@asynchronous
async def test_what_nobody_approved_is_handed_over_with_what_was_asked_and_can_be_asked_anew():
    async with engine(FakeTools(refund=60_000), approvers=APPROVERS) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        advance_clock(parts, 24 * 3600 + 1)
        await end_late(parts)
        sheet = await sheet_of(parts, workflow_id)
    (asked,) = sheet["approvals"]
    assert (asked["tool"], asked["amount"]) == ("create_return", {"amount": 60_000, "currency": "JPY"})
    assert asked["decision"] is asked["approver"] is None
    assert (sheet["state"], sheet["why"]["handover_reason"]) == ("EXPIRED", None)
    assert names(sheet) == ["reapply", *LOOKING]


@asynchronous
async def test_a_wrong_effect_is_handed_over_with_the_fields_that_differ_and_not_with_their_values():
    tools = FakeTools()
    tools.script["create_return"] = [tools.but(order_id="A-9")]
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        sheet = await sheet_of(parts, workflow_id)
    assert sheet["state"] == "COMPENSATION_REQUIRED"
    assert "order_id" in sheet["effects"][0]["mismatch"]
    assert "A-9" not in str(sheet)
    assert [one["verification"] for one in sheet["impact"]["outside"]] == ["wrong"]
    assert [one["code"] for one in sheet["alerts"]] == ["wrong_effect"]


@asynchronous
async def test_what_is_to_be_undone_says_by_whose_order_until_when_and_who_let_it_go_on_under_the_stop():
    tools = FakeTools()
    tools.script["create_return"] = [tools.but(order_id="A-9")]
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        waiting = await sheet_of(parts, workflow_id)
        with owners(parts) as sql:
            sql.execute("SELECT release_compensation(%s, 'ito', '{}')", (workflow_id,))
        released = await sheet_of(parts, workflow_id)
    (order,) = waiting["compensation"]["orders"]
    assert (waiting["compensation"]["state"], order["state"], order["ordered_by"]) == ("required", "required", "engine")
    hours = (datetime.fromisoformat(order["due_at"]) - datetime.fromisoformat(order["ordered_at"])) / timedelta(hours=1)
    assert hours == 24
    assert order["released_by"] is order["released_at"] is order["ended_at"] is None
    assert names(waiting) == ["compensate", "resume", *LOOKING]
    assert released["compensation"]["orders"][0]["released_by"] == "ito"
    assert [(one["actor"], one["action"]) for one in released["acts"]] == [("ito", "compensation_released")]
    assert names(released) == ["resume", *LOOKING]


@asynchronous
async def test_what_undid_something_is_listed_with_it_and_stands_no_more():
    tools = FakeTools(script={"find_notice": [rejected("unavailable")] * 3})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await settle(parts, workflow_id)
        await order_compensation(desk(parts), workflow_id, ITO, "the wrong camera", TOOLS)
        await settle(parts, workflow_id)
        sheet = await sheet_of(parts, workflow_id)
    assert (sheet["state"], sheet["why"]["code"]) == ("NEEDS_REVIEW", "compensated")
    undoing = {call["step_id"]: call["tool"] for call in sheet["calls"] if call["undoes"] is not None}
    assert {call["undoes"] for call in sheet["calls"]} == {None, f"{workflow_id}.3"}
    (order,) = sheet["compensation"]["orders"]
    assert (sheet["compensation"]["state"], order["ordered_by"]) == ("done", "ito")
    assert order["steps"] == list(undoing)
    made = next(effect for effect in sheet["effects"] if effect["name"] == "create_return")
    assert undoing[made["undone_by"]] == "cancel_return"
    left = [(one["name"], one["verification"]) for one in sheet["impact"]["outside"]]
    assert left == [("send_return_notice", "unverified"), ("send_correction_notice", "verified")]
    assert sheet["disagreements"] == []
    assert ("ito", "compensation_ordered") in {(one["actor"], one["action"]) for one in sheet["acts"]}
    assert names(sheet) == ["review close", *LOOKING]


@asynchronous
async def test_a_closed_review_is_left_alone_and_out_of_the_queue():
    tools = FakeTools(script={"get_order": [rejected("scope_missing")]})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        other = await take(parts, request_id="other")
        await drive(parts, other)
        await close(desk(parts), workflow_id, ITO, "settled by hand", accept_unknown=False)
        sheet, of_other = await sheet_of(parts, workflow_id), await made(parts, other)
        async with parts.pool.connection() as connection:
            queue, reasons = await record.exceptions(connection, 10), await record.exception_reasons(connection)
    assert sheet["review_closed_at"] is not None
    assert names(sheet) == ["reapply", *LOOKING]
    assert isinstance(of_other, NoHandover)
    assert queue == []
    assert reasons == {}


@asynchronous
async def test_the_other_open_cases_of_the_same_order_are_named_with_what_binds_them():
    tools = FakeTools()
    async with engine(tools) as parts:
        doubtful = await in_doubt(parts, tools)
        same = await take(parts, request_id="same-line")
        other_line = await take(parts, request_id="other-line", lines=[{"line_id": "2", "quantity": 1}])
        await take(parts, order_id="A-2")
        await drive(parts, same)
        with owners(parts) as sql:
            sql.execute("SET session_replication_role = replica")
            foreign = await take(parts, request_id="foreign")
            sql.execute("UPDATE workflow SET tenant_id = 'other' WHERE workflow_id = %s", (foreign,))
        sheet, of_same = await sheet_of(parts, doubtful), await sheet_of(parts, same)
    assert sheet["impact"]["other_cases_in_all"] == 2
    bound = {
        one["workflow_id"]: (one["units"], one["held_back_by_this"], one["holds_this_back"])
        for one in sheet["impact"]["other_cases"]
    }
    assert bound == {str(same): (["A-1/1"], True, False), str(other_line): ([], False, False)}
    assert of_same["why"]["code"] == "unsettled_elsewhere"
    assert [one["workflow_id"] for one in of_same["impact"]["other_cases"] if one["holds_this_back"]] == [str(doubtful)]


@asynchronous
async def test_a_decision_is_handed_over_with_who_made_it_and_without_that_persons_words():
    tools = FakeTools(refund=60_000, script={"create_return": [unknown()], "find_return": [rejected("no_answer")] * 9})
    async with engine(tools, approvers=APPROVERS) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        trust(parts, "tanaka")
        event = await decide(parts, workflow_id, reason="Hanako rang me up")
        await settle(parts, workflow_id)
        sheet = await sheet_of(parts, workflow_id)
    (one,) = sheet["approvals"]
    assert (one["event_id"], one["approver"], one["decision"]) == (event.event_id, "tanaka", "approve")
    assert (one["version"], one["action_digest"], one["approval_seconds"]) == (event.version, event.action_digest, 12.5)
    assert "Hanako" not in str(sheet)


@asynchronous
async def test_the_pages_say_what_the_document_says():
    tools = FakeTools()
    async with engine(tools) as parts:
        sheet = await made(parts, await in_doubt(parts, tools))
    assert not isinstance(sheet, NoHandover)
    wanted = {
        str(sheet.workflow_id), sheet.request_id, sheet.why.sentence, *(one.command for one in sheet.possible),
        *(call.call_id for call in sheet.calls), *(call.step_id for call in sheet.calls),
        *(effect.idempotency_key for effect in sheet.effects), "A-1/1", "nobody knows", "reconciliation", "timeout",
    }  # fmt: skip
    for page in pages(sheet):
        assert {word for word in wanted - {"nobody knows"} if word not in page} == set()
    assert all("nobody knows" in page for page in pages(sheet)[:2])


@asynchronous
async def test_a_ledger_that_tells_another_story_than_the_calls_is_the_first_thing_to_be_said():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools)
        agreed = await sheet_of(parts, workflow_id)
        with owners(parts) as sql:
            sql.execute("SET session_replication_role = replica")
            sql.execute("DELETE FROM effect WHERE workflow_id = %s", (workflow_id,))
        sheet = await made(parts, workflow_id)
    assert agreed["disagreements"] == []
    assert not isinstance(sheet, NoHandover)
    assert [(one.step_id, one.what) for one in sheet.disagreements] == [(f"{workflow_id}.3", "sent_without_intent")]
    assert all("sent_without_intent" in page for page in pages(sheet))


@asynchronous
async def test_what_the_rules_allowed_and_nobody_has_done_is_on_the_sheet():
    tools = FakeTools(script={"create_return": [rejected("unavailable")] * 9})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await settle(parts, workflow_id)
        sheet = await made(parts, workflow_id)
    assert not isinstance(sheet, NoHandover)
    assert sheet.draft is not None
    assert [call.tool for call in sheet.draft.calls] == ["create_return", "send_return_notice"]
    for page in pages(sheet)[:2]:
        assert "What is left to do" in page
        assert "order_id=" in page


@asynchronous
async def test_what_is_not_there_is_not_handed_over_and_the_connection_stays_as_it_was():
    async with engine(FakeTools()) as parts, parts.pool.connection() as connection:
        assert await store.read(connection, UUID(int=1)) is None
        cursor = await connection.execute("SHOW transaction_isolation")
        assert await cursor.fetchone() == ("read committed",)
