"""What is where: pages of workflows, the exception queue by age, and the ledger of calls."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from host.commands.records import _entry, _listed, ranked
from host.engine.drive import drive
from host.engine.parts import Parts
from host.store import record as store
from host.views import Ledger, WorkflowList
from shared_contracts.base import dump
from tests.support.engine import advance_clock, asynchronous, engine, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown
from tests.support.records import fits, record_of
from tests.support.stops import lift, release, stop


async def page(parts: Parts, **wanted: Any) -> list[dict[str, Any]]:
    asked = {"state": None, "kind": None, "before": store.LATEST, "most": 50} | wanted
    async with parts.pool.connection() as connection:
        found = await store.page(connection, **asked)
    return listed(found)


def listed(found: list[store.Row]) -> list[dict[str, Any]]:
    document = WorkflowList(classes=None, workflows=tuple(_listed(row) for row in found), next_before=None)
    return list(fits(dump(document), "command.list.json")["workflows"])


async def entries(parts: Parts, workflow_id: Any = None) -> list[dict[str, Any]]:
    async with parts.pool.connection() as connection:
        found = await store.entries(connection, workflow_id, 50)
    return list(fits(dump(Ledger(calls=tuple(_entry(row) for row in found))), "command.ledger.json")["calls"])


@asynchronous
async def test_a_page_lists_the_newest_first_and_goes_on_where_the_last_one_ended():
    async with engine(FakeTools()) as parts:
        ids = [str(await take(parts, order_id=f"A-{n}")) for n in range(5)]
        first = await page(parts, most=3)
        second = await page(parts, most=3, before=first[-1]["workflow_id"])
    assert [row["workflow_id"] for row in first + second] == sorted(
        ids, reverse=True
    )  # ids of one millisecond have no order of their own
    assert {row["status"] for row in first} == {"running"}
    assert all(row["age_seconds"] >= 0 and row["effects"] is None for row in first)


@asynchronous
async def test_a_case_that_a_stop_holds_says_which_from_its_halt_until_it_is_released():
    async with engine(FakeTools()) as parts:
        mine, other = await take(parts), await take(parts, order_id="A-2")
        seen = [await held_by(parts, mine)]
        for reads in (False, True):
            await stop(parts, reads=reads)
            await drive(parts, mine)
            seen.append(await held_by(parts, mine))
        await lift(parts)
        seen.append(await held_by(parts, mine))
        assert await held_by(parts, other) == "parallel"
        await stop(parts)
        seen.append(await held_by(parts, mine))
        await lift(parts)
        state = (await record_of(parts, mine))["state"]
        assert await release(parts, state, 1) == [mine]
        seen.append(await held_by(parts, mine))
    assert seen == [None, "updates", "updates", "parallel", "updates", None]


async def held_by(parts: Parts, workflow_id: UUID) -> str | None:
    """As the list says it, and the record the same."""
    (row,) = (one for one in await page(parts) if one["workflow_id"] == str(workflow_id))
    assert row["held_by"] == (await record_of(parts, workflow_id))["held_by"]
    return None if row["held_by"] is None else str(row["held_by"])


@asynchronous
async def test_a_page_of_one_state_holds_no_other():
    async with engine(FakeTools(refund=60_000)) as parts:
        waiting, begun = await take(parts), await take(parts, order_id="A-2")
        await drive(parts, waiting)
        only = await page(parts, state="WAITING_APPROVAL")
        everything = await page(parts)
    assert [(row["workflow_id"], row["status"]) for row in only] == [(str(waiting), "waiting")]
    assert {row["workflow_id"] for row in everything} == {str(waiting), str(begun)}


@asynchronous
async def test_the_exception_queue_has_what_a_person_has_the_oldest_first_with_reason_class_and_effects():
    tools = FakeTools(script={"create_return": [unknown()], "find_return": [rejected("unavailable")] * 9})
    async with engine(tools) as parts:
        doubtful = await take(parts)
        await settle(parts, doubtful)
        advance_clock(parts, 3600)
        goods = await take(parts, order_id="A-2")
        tools.line["dangerous"] = True
        await drive(parts, goods)
        tools.line["dangerous"] = False
        await drive(parts, await take(parts, order_id="A-3"))
        async with parts.pool.connection() as connection:
            queue = listed(await store.exceptions(connection, 50))
    assert [row["workflow_id"] for row in queue] == [str(doubtful), str(goods)]
    assert [row["handover_reason"] for row in queue] == ["external_fault", "rule_exception"]
    assert queue[0]["age_seconds"] >= 3600 > queue[1]["age_seconds"]
    assert queue[0]["effects"] == [
        {"name": "create_return", "outcome": None, "external_id": None, "verified": False}
    ]  # fmt: skip
    assert queue[1]["effects"] == []


@asynchronous
async def test_the_ledger_has_one_row_per_call_with_who_what_when_under_which_key_and_with_what_effect():
    async with engine(FakeTools(script={"get_order": [rejected("unavailable")]})) as parts:
        workflow_id, other = await take(parts), await take(parts, order_id="A-2")
        await settle(parts, workflow_id)
        own, everything = await entries(parts, workflow_id), await entries(parts)
    assert [row["tool"] for row in own] == ["send_return_notice", "create_return", "check_return_policy", "get_order"]
    assert {row["workflow_id"] for row in everything} == {str(workflow_id)}
    assert other != workflow_id
    read, write = own[3], own[1]
    assert (read["subject"], read["arguments"], read["contract_version"]) == ("returns-desk@acme-jp", ["order_id"], "1")
    assert (read["attempts"], len(read["retry_times"]), len(read["jtis"])) == (2, 1, 2)
    assert read["idempotency_key"] is read["external_id"] is None
    assert (write["effect_outcome"], write["external_id"]) == ("succeeded", "R-1")
    assert write["idempotency_key"] == f"{workflow_id}:create_return"
    assert write["latency_ms"] >= 0
    assert write["compensation_state"] == "none"
    assert len({jti for row in own for jti in row["jtis"]}) == sum(len(row["jtis"]) for row in own)


@asynchronous
async def test_a_wrong_effect_is_listed_as_one_that_has_to_be_undone():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        honest = tools.new_return
        tools.new_return = lambda arguments: honest({**arguments, "order_id": "A-OTHER"})
        await settle(parts, workflow_id)
        (write, *_) = await entries(parts, workflow_id)
        row = (await page(parts))[0]
    assert row["state"] == "COMPENSATION_REQUIRED"
    assert write["compensation_state"] == "required"
    assert write["verified_at"] is None


@asynchronous
async def test_the_exception_queue_is_counted_whole_and_its_most_frequent_class_comes_first():
    tools = FakeTools()
    async with engine(tools) as parts:
        for n, code in enumerate(("scope_missing", "not_eligible", "quantity_gone", "quantity_gone")):
            tools.script = {"create_return": [rejected(code)]}
            await drive(parts, await take(parts, order_id=f"A-{n}"))
        tools.script = {}
        await drive(parts, await take(parts, order_id="A-9"))
        async with parts.pool.connection() as connection:
            first = await store.exceptions(connection, 1)
            reasons = await store.exception_reasons(connection)
    assert len(first) == 1
    assert sum(reasons.values()) == 4
    classes = [(one.handover_reason, one.cases, [of.cases for of in one.reasons]) for one in ranked(reasons)]
    assert classes == [("rule_exception", 3, [2, 1]), ("permission", 1, [1])]
