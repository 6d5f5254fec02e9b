"""Nothing that a customer, a planner or a tool server wrote in words reaches a handover sheet, in none of its forms."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from host.commands.records import _listed as listed
from host.domain.outcome import CallError, Rejected, Success
from host.domain.proposals import Final, NeedsHuman, ToolCall
from host.engine.drive import drive
from host.engine.parts import Parts, Request
from host.evaluation.events import events
from host.handover.sheet import NoHandover
from host.record import assemble
from host.store.record import exceptions
from host.workflows.returns import RETURNS
from shared_contracts.base import dump
from tests.support.approvals import APPROVERS, decide, trust
from tests.support.engine import asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, failure, unknown
from tests.support.handovers import made, pages
from tests.support.records import answers_of, rows_of
from tests.support.scripted_planner import ScriptedPlanner, honest

CANARY = "Canary Hanako <hanako.canary@example.com>, 1-2-3 Canary-cho"
WORDS = ("canary", "hanako")


def order(tools: FakeTools) -> Any:
    """The order, with a note and a recipient's address on it."""
    return lambda request: Success({**tools.order(str(request.arguments["order_id"])), "note": CANARY})


def complaint(code: str) -> CallError:
    """A fault in a server's own words."""
    return replace(failure(code), message=CANARY, details={"reason": CANARY, "recipient": CANARY})


async def told(parts: Parts, workflow_id: Any) -> str:
    """All three forms, what explains and diagnoses the case, and the queue that it is in, in small letters."""
    sheet = await made(parts, workflow_id)
    assert not isinstance(sheet, NoHandover)
    async with parts.pool.connection() as connection:
        queue = [dump(listed(row)) for row in await exceptions(connection, 10)]
    row = await rows_of(parts, workflow_id)
    went_wrong = str([one.evidence for one in events(assemble(row, RETURNS), row, RETURNS, ())])
    explained = json.dumps([await answers_of(parts, workflow_id), queue], ensure_ascii=False)
    return " ".join((*pages(sheet), explained, went_wrong)).lower()


async def kept(parts: Parts) -> str:
    """What the database holds of it, so that a sheet has something to leave out."""
    query = """
        SELECT concat((SELECT jsonb_agg(to_jsonb(w)) FROM workflow w), (SELECT jsonb_agg(to_jsonb(c)) FROM call c),
                      (SELECT jsonb_agg(to_jsonb(a)) FROM attempt a), (SELECT jsonb_agg(to_jsonb(r)) FROM refusal r),
                      (SELECT jsonb_agg(to_jsonb(p)) FROM approval p))
    """
    return str((await rows(parts, query))[0][0]).lower()


@asynchronous
async def test_no_word_of_the_customer_the_order_or_a_refusal_is_on_the_sheet():
    def refuse(_: Request) -> Rejected:
        return Rejected(complaint("quantity_gone"))

    tools = FakeTools(refund=60_000)
    tools.script = {"get_order": [order(tools)], "create_return": [refuse]}
    async with engine(tools, approvers=APPROVERS) as parts:
        workflow_id = await take(parts, message=CANARY)
        await drive(parts, workflow_id)
        trust(parts, "tanaka")
        await decide(parts, workflow_id, reason=CANARY)
        await settle(parts, workflow_id)
        said, held = await told(parts, workflow_id), await kept(parts)
    assert held.count("hanako") >= 5
    assert [word for word in WORDS if word in said] == []
    assert "quantity_gone" in said


@asynchronous
async def test_no_word_of_a_planner_is_on_the_sheet():
    wild = [
        ToolCall(CANARY, CANARY, {CANARY: CANARY}),
        ToolCall("hanako.canary@example.com", "get_order", {"order_id": CANARY}),
        ToolCall("Canary.Hanako.090-1234-5678", "get_order", {"order_id": CANARY}),
        honest,
        Final({"status": "completed", "text": CANARY}, (CANARY,)),
        NeedsHuman(CANARY),
    ]
    async with engine(FakeTools(), ScriptedPlanner(script=wild)) as parts:
        workflow_id = await take(parts)
        await settle(parts, workflow_id)
        said, held = await told(parts, workflow_id), await kept(parts)
    assert "hanako" in held
    assert [word for word in WORDS if word in said] == []
    assert "sha256:" in said


@asynchronous
async def test_a_call_that_a_planner_named_after_a_customer_is_shown_by_a_digest():
    def named(view: Any) -> Any:
        return replace(honest(view), call_id=f"{CANARY} {view.turn}")

    tools = FakeTools()
    tools.script = {"create_return": [unknown()], "find_return": [lambda _: Rejected(complaint("no_answer"))] * 9}
    async with engine(tools, ScriptedPlanner(always=named)) as parts:
        workflow_id = await take(parts, message=CANARY)
        await settle(parts, workflow_id)
        said, held = await told(parts, workflow_id), await kept(parts)
    assert held.count("hanako") >= 4
    assert [word for word in WORDS if word in said] == []
    assert said.count("sha256:") >= 3


@asynchronous
async def test_the_look_for_these_words_would_find_them():
    async with engine(FakeTools(), ScriptedPlanner(always=lambda _view: NeedsHuman("planner_needs_human"))) as parts:
        workflow_id = await take(parts, request_id="canary-hanako")  # an identifier, which the sheet has to show
        await drive(parts, workflow_id)
        said = await told(parts, workflow_id)
    assert all(word in said for word in WORDS)
