"""The handover sheet and stops: an open case has one while work is stopped, and it says who stopped what, and when."""

from __future__ import annotations

from host.engine.drive import drive
from host.engine.parts import Parts
from host.handover.sheet import NoHandover
from tests.support.approvals import APPROVERS
from tests.support.engine import advance_clock, asynchronous, engage, engine, owners, take
from tests.support.fake_tools import FakeTools
from tests.support.handovers import LOOKING, made, names, sheet_of


def stop(parts: Parts, scopes: list[str], reason: str, *, cause: str) -> None:
    """Stop as an operator does."""
    with owners(parts) as sql:
        sql.execute("SELECT engage_stop(%s, 'ito', %s, %s, NULL)", (scopes, reason, cause))


@asynchronous
async def test_an_open_case_is_handed_over_while_work_is_stopped_and_not_a_moment_longer():
    async with engine(FakeTools(refund=60_000), approvers=APPROVERS) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        before = await made(parts, workflow_id)
        stop(parts, ["updates"], "a drill", cause="operator")
        sheet = await sheet_of(parts, workflow_id)
        engage(parts, "updates", engaged=False)
        after = await made(parts, workflow_id)
    assert isinstance(before, NoHandover)
    assert isinstance(after, NoHandover)
    assert "WAITING_APPROVAL" in before.what
    assert (sheet["why"]["code"], sheet["why"]["handover_reason"]) == ("stopped", None)
    first = sheet["stops"]["engaged"][0]
    assert (first["scope"], first["actor"], first["reason"]) == ("updates", "ito", "a drill")
    assert first["at"] is not None
    assert names(sheet) == ["approve", "deny", "withdraw", "resume", *LOOKING]


@asynchronous
async def test_the_stops_of_the_cases_time_and_of_now_are_listed_with_who_when_and_how_far():
    tools = FakeTools()
    async with engine(tools) as parts:
        stop(parts, ["updates"], "long before, and over", cause="operator")
        with owners(parts) as sql:
            sql.execute("UPDATE stop SET engaged = false")
        advance_clock(parts, 60)
        stop(parts, ["reads"], "before, and still on", cause="restore")
        advance_clock(parts, 60)
        workflow_id = await take(parts)
        advance_clock(parts, 60)
        stop(parts, ["new_work", "updates"], "meanwhile", cause="operator")
        sheet = await sheet_of(parts, workflow_id)
    operations = [(one["reason"], one["scopes"], one["cause"]) for one in sheet["stops"]["operations"]]
    assert operations == [
        ("before, and still on", ["reads"], "restore"), ("meanwhile", ["new_work", "updates"], "operator"),
    ]  # fmt: skip
    assert {(one["act"], one["actor"], one["of_this_case"]) for one in sheet["stops"]["operations"]} == {
        ("stop", "ito", False)
    }
    assert [one["scope"] for one in sheet["stops"]["engaged"]] == ["new_work", "updates", "reads", "parallel"]


@asynchronous
async def test_a_stop_that_a_finding_made_is_listed_for_the_case_that_it_was_found_in_and_for_the_others():
    tools = FakeTools()
    tools.script["create_return"] = [tools.but(order_id="A-9")]
    async with engine(tools) as parts:
        found, other = await take(parts), await take(parts, order_id="A-2")
        await drive(parts, found)
        sheets = [await sheet_of(parts, one) for one in (found, other)]
    for sheet, own in zip(sheets, (True, False), strict=True):
        (operation,) = sheet["stops"]["operations"]
        assert (operation["actor"], operation["of_this_case"]) == ("engine", own)
        assert operation["cause"] == "update_outside_permission"
        assert sheet["acts"] == []


@asynchronous
async def test_one_workflow_at_a_time_is_no_stop_that_hands_a_case_over():
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        engage(parts, "parallel")
        assert isinstance(await made(parts, workflow_id), NoHandover)


@asynchronous
async def test_a_stop_whose_row_is_gone_is_a_stop():
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        with owners(parts) as sql:
            sql.execute("DELETE FROM stop WHERE scope = 'reads'")
        sheet = await sheet_of(parts, workflow_id)
    assert sheet["stops"]["engaged"] == [{"scope": "reads", "actor": None, "reason": None, "at": None}]


@asynchronous
async def test_what_has_its_answer_or_is_at_work_is_nobodys_to_take_over_even_under_a_stop():
    async with engine(FakeTools()) as parts:
        done, running = await take(parts), await take(parts, order_id="A-2")
        await drive(parts, done)
        refused = [await made(parts, done), await made(parts, running)]
        engage(parts, "new_work")
        refused.append(await made(parts, done))
    assert all(isinstance(one, NoHandover) for one in refused)
    assert ["COMPLETED" in str(one) for one in refused] == [True, False, True]


@asynchronous
async def test_a_case_that_is_held_after_a_stop_has_a_sheet_until_it_is_released():
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        engage(parts, "updates")
        await drive(parts, workflow_id)
        engage(parts, "updates", engaged=False)
        engage(parts, "parallel")
        sheet = await sheet_of(parts, workflow_id)
        with owners(parts) as sql:
            sql.execute("SELECT release_held('ELIGIBLE', 1, 'ito', 'go on', '{}')")
        released = await made(parts, workflow_id)
    assert (sheet["why"]["code"], sheet["state"]) == ("held", "ELIGIBLE")
    assert sheet["possible"][0]["command"] == "kessai resume --state ELIGIBLE --limit N --as NAME --reason TEXT"
    assert [one["scope"] for one in sheet["stops"]["engaged"]] == ["parallel"]
    assert isinstance(released, NoHandover)
