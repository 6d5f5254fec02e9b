"""A kind that lacks one thing reads and drafts: every case of it ends with a person, a draft and nothing done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from host.engine.drive import drive
from host.engine.parts import Parts
from host.workflows.returns import RETURNS
from shared_contracts.tools import TOOLS
from tests.support.approvals import APPROVERS, decide, trust
from tests.support.engine import DESK, advance_clock, asynchronous, engage, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected
from tests.support.records import answers_of, record_of
from tests.support.scripted_planner import ScriptedPlanner, calling
from tests.support.unfit import BLANKS, UNFIT

READS = ["get_order", "check_return_policy"]
UPDATES = frozenset(name for name, tool in TOOLS.items() if tool.writes)
ASKED = {"order_id": "A-1", "lines": [{"line_id": "1", "quantity": 1}], "reason": "changed_mind"}
RETURN = {"tool": "create_return", "arguments": ASKED, "open_arguments": [], "needs_approval": False}
NOTICE = {
    "tool": "send_return_notice", "arguments": {"order_id": "A-1"}, "open_arguments": ["return_id"],
    "needs_approval": False,
}  # fmt: skip
KEYLESS = UNFIT["the idempotency key of a return"]
# a kind cannot make a move that it does not have, in whichever mode
DRIVEN = sorted(set(UNFIT) - {"the way to success"})


async def ended(parts: Parts, workflow_id: Any) -> dict[str, Any]:
    """The record of a case that must have ended with a person."""
    record = await record_of(parts, workflow_id)
    assert record["state"] == "NEEDS_REVIEW"
    return record


@pytest.mark.parametrize("name", DRIVEN)
def test_a_normal_case_of_a_kind_without_one_thing_ends_with_a_draft_and_nothing_done(name):
    @asynchronous
    async def run() -> None:
        tools, planner = FakeTools(), ScriptedPlanner()
        async with engine(tools, planner) as whole:
            parts = UNFIT[name].of(whole)
            workflow_id = await take(parts)
            state = await drive(parts, workflow_id)
            record = await ended(parts, workflow_id)
            effects = await rows(parts, "SELECT count(*) FROM effect")
        assert state.ended()
        assert (record["reason"], record["handover_reason"]) == ("draft_only", "permission")
        assert record["draft"] == {"calls": [RETURN, NOTICE]}
        assert effects == [(0,)]
        assert [request.tool.name for request in tools.requests] == READS
        assert planner.shown == [(tool,) for tool in READS]
        assert record["decisions"][-1]["reason"] == "draft_only"
        assert record["alerts"] == []

    run()


@asynchronous
async def test_the_whole_kind_makes_a_return_of_the_same_case_and_drafts_nothing():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        record = await record_of(parts, workflow_id)
    assert (record["state"], record["draft"]) == ("COMPLETED", None)


@asynchronous
async def test_a_case_over_the_limit_asks_nobody_and_its_draft_says_that_somebody_has_to_agree():
    async with engine(FakeTools(refund=80_000)) as whole:
        parts = KEYLESS.of(whole)
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        record = await ended(parts, workflow_id)
    assert record["approvals"] == []
    assert record["draft"] == {"calls": [{**RETURN, "needs_approval": True}, NOTICE]}


@asynchronous
async def test_a_case_that_the_rules_reject_is_rejected_in_this_mode_too_and_has_no_draft():
    tools = FakeTools(line={"final_sale": True})
    async with engine(tools) as whole:
        parts = KEYLESS.of(whole)
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        record = await record_of(parts, workflow_id)
    assert (record["state"], record["reason"], record["draft"]) == ("REJECTED", "final_sale", None)


@asynchronous
async def test_a_case_that_the_rules_leave_to_a_person_has_no_draft_of_what_they_did_not_allow():
    async with engine(FakeTools(line={"dangerous": True})) as whole:
        parts = KEYLESS.of(whole)
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        record = await ended(parts, workflow_id)
    assert (record["reason"], record["draft"]) == ("dangerous_goods", None)


@asynchronous
async def test_a_stored_call_is_judged_by_the_mode_of_the_day_on_which_it_would_be_sent():
    tools = FakeTools()
    async with engine(tools) as parts:
        tools.script["create_return"] = [rejected("rate_limited")]
        workflow_id = await take(parts)
        waiting = await drive(parts, workflow_id)
        advance_clock(parts, 60)
        await drive(KEYLESS.of(parts), workflow_id)
        record = await ended(parts, workflow_id)
    assert waiting.task.state == "RETRY_WAIT"
    assert (record["reason"], record["draft"]) == ("draft_only", {"calls": [RETURN, NOTICE]})
    assert [effect["outcome"] for effect in record["effects"]] == ["absent"]
    assert tools.sent("create_return") == 1
    assert tools.executed == []


@pytest.mark.parametrize("name", ["the contract of a return", "the idempotency key of a return", "every approver"])
def test_a_call_that_waited_for_the_end_of_a_stop_is_not_sent_in_this_mode(name):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()

        async with engine(tools) as parts:

            def word(view: Any) -> Any:
                if view.state == "ELIGIBLE":
                    engage(parts, "updates")
                return RETURNS.propose(view)

            workflow_id = await take(parts)
            stored = await drive(replace(parts, planner=ScriptedPlanner(always=word)), workflow_id)
            advance_clock(parts, 60)
            state = await drive(UNFIT[name].of(parts), workflow_id)
        assert stored.in_hand().tool == "create_return"
        # the stop still holds: a case that nobody will ever go on with does not wait for its end
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "draft_only")
        assert tools.sent("create_return") == 0

    run()


@asynchronous
async def test_what_was_approved_before_is_not_sent_in_this_mode():
    tools = FakeTools(refund=80_000)
    async with engine(tools, approvers=APPROVERS) as parts:
        trust(parts, "tanaka")
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        await decide(parts, workflow_id, "tanaka")
        state = await drive(UNFIT["every approver"].of(parts), workflow_id)
        record = await ended(parts, workflow_id)
    assert state.task.reason == "draft_only"
    assert record["approvals"][0]["decision"] == "approve"
    assert record["draft"]["calls"][0] == {**RETURN, "needs_approval": True}
    assert tools.sent("create_return") == 0


@asynchronous
async def test_a_return_that_was_made_before_leaves_its_notice_to_a_person():
    tools = FakeTools()
    async with engine(tools) as parts:
        tools.script["send_return_notice"] = [rejected("rate_limited")]
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        advance_clock(parts, 60)
        await settle(KEYLESS.of(parts), workflow_id)
        record = await ended(parts, workflow_id)
    known = {**NOTICE, "arguments": {"order_id": "A-1", "return_id": "R-1"}, "open_arguments": []}
    assert (record["reason"], record["draft"]) == ("draft_only", {"calls": [known]})
    assert [name for name, _ in tools.executed] == ["create_return"]


@asynchronous
async def test_a_planner_that_proposes_an_update_which_it_was_not_shown_gets_none():
    reading_too = replace(KEYLESS, workflow={"tools": {**RETURNS.tools, "ELIGIBLE": ("get_order", "create_return")}})
    tools, planner = FakeTools(), ScriptedPlanner()
    async with engine(tools, planner) as whole:
        parts = reading_too.of(whole)
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        record = await ended(parts, workflow_id)
    assert planner.shown[-1] == ("get_order",)
    assert record["reason"] == "draft_only"
    assert [request.tool.name for request in tools.requests] == READS


@asynchronous
async def test_a_planner_that_proposes_an_update_out_of_turn_is_told_and_the_case_still_gets_its_draft():
    early = calling("create_return", ASKED)
    tools, planner = FakeTools(), ScriptedPlanner([early])
    async with engine(tools, planner) as whole:
        parts = KEYLESS.of(whole)
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        record = await ended(parts, workflow_id)
    assert (record["reason"], record["draft"]) == ("draft_only", {"calls": [RETURN, NOTICE]})
    assert tools.executed == []


@asynchronous
async def test_an_outage_while_reading_is_waited_out_or_handed_over_without_a_state_for_it():
    tools = FakeTools(script={"get_order": [rejected("unavailable"), rejected("unavailable")]})
    async with engine(tools) as whole:
        parts = UNFIT["the state that waits for a retry"].of(whole)
        workflow_id = await take(parts)
        await settle(parts, workflow_id)
        record = await ended(parts, workflow_id)
    assert record["reason"] == "attempts_exhausted"
    assert record["draft"] is None


def listing(parts: Parts, tools: FakeTools) -> Parts:
    tools.names -= UPDATES
    return parts


def registry(parts: Parts, tools: FakeTools) -> Parts:
    return replace(parts, registry={name: tool for name, tool in TOOLS.items() if not tool.writes})


def principal(parts: Parts, tools: FakeTools) -> Parts:
    reader = DESK.model_copy(update={"tools": DESK.tools - UPDATES})
    return replace(parts, authorization=parts.authorization.model_copy(update={"principals": (reader,)}))


def blanked(parts: Parts, tools: FakeTools) -> Parts:
    """Of no update is it said who owns its data: it may be taken back all the same."""
    return replace(parts, registry={n: replace(t, owner="") if t.writes else t for n, t in TOOLS.items()})


REMOVED: dict[str, tuple[Callable[[Parts, FakeTools], Parts], str]] = {
    "listing": (listing, "tool_unavailable"),
    "registry": (registry, "draft_only"),
    "principal": (principal, "not_in_catalogue"),
    "owner": (blanked, "unknown_tool"),
}
CASES: dict[str, tuple[Callable[[], FakeTools], str, bool]] = {
    "normal": (FakeTools, "NEEDS_REVIEW", True),
    "over the limit": (lambda: FakeTools(refund=80_000), "NEEDS_REVIEW", True),
    "rejected": (lambda: FakeTools(line={"final_sale": True}), "REJECTED", False),
    "undecidable": (lambda: FakeTools(line={"rules_conflict": True}), "NEEDS_REVIEW", False),
    "no such order": (lambda: FakeTools(script={"get_order": [rejected("not_found")]}), "REJECTED", False),
    "busy": (lambda: FakeTools(script={"get_order": [rejected("rate_limited")]}), "NEEDS_REVIEW", True),
}


@pytest.mark.parametrize("how", REMOVED)
@pytest.mark.parametrize("case", CASES)
def test_with_all_updates_removed_every_case_ends_with_nothing_done_and_a_draft_where_the_rules_allowed_it(case, how):
    @asynchronous
    async def run() -> None:
        make, state, has_draft = CASES[case]
        tools = make()
        remove, reason = REMOVED[how]
        async with engine(tools) as whole:
            parts = remove(whole, tools)
            workflow_id = await take(parts)
            found = await settle(parts, workflow_id)
            record = await record_of(parts, workflow_id)
        assert found.ended()
        assert record["state"] == state
        assert (record["draft"] is not None) is has_draft
        assert not has_draft or record["reason"] == reason
        assert record["effects"] == []
        assert not UPDATES & {request.tool.name for request in tools.requests}

    run()


@pytest.mark.parametrize("name", BLANKS)
def test_an_update_with_one_field_blank_is_shown_to_no_planner_and_sent_to_nobody_but_drafted(name):
    @asynchronous
    async def run() -> None:
        tools, planner = FakeTools(), ScriptedPlanner()
        async with engine(tools, planner) as whole:
            blank = replace(TOOLS["create_return"], **{name: BLANKS[name]})
            parts = replace(whole, registry={**TOOLS, "create_return": blank})
            workflow_id = await take(parts)
            await drive(parts, workflow_id)
            record = await ended(parts, workflow_id)
        assert planner.shown == [(tool,) for tool in READS]
        assert [request.tool.name for request in tools.requests] == READS
        assert (record["effects"], record["draft"]) == ([], {"calls": [RETURN, NOTICE]})
        assert record["handover_reason"] in {"permission", "specification_undecided"}

    run()


@asynchronous
async def test_the_questions_about_a_run_name_what_is_left_to_a_person():
    async with engine(FakeTools()) as whole:
        parts = KEYLESS.of(whole)
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        answers = await answers_of(parts, workflow_id)
    left = [d for d in answers["Does the result meet the completion condition?"]["details"] if d.startswith("left to")]
    assert [line.split()[4] for line in left] == ["create_return", "send_return_notice"]


@asynchronous
async def test_the_mode_is_found_anew_for_other_contracts_and_another_authorization_set():
    async with engine(FakeTools()) as parts:
        key = (RETURNS.kind, RETURNS.release)
        assert parts.unfit[key] == ()
        for without in (UNFIT["every approver"], KEYLESS):
            assert [one.condition for one in without.of(parts).unfit[key]] == [without.condition]
