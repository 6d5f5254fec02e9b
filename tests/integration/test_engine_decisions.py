"""Where the rules lead: every row of the decision table through the engine, and what each end leaves behind."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from host.commands.records import Selection, listed
from host.domain.control import Control, Execution
from host.domain.workflow import Language
from host.engine.drive import drive
from host.settings import Settings
from host.workflows.returns import RETURNS
from shared_contracts.returns import DECISION_TABLE
from shared_contracts.tools import TOOLS
from tests.support.engine import DESK, advance_clock, asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected, yen
from tests.support.scripted_planner import ScriptedPlanner

EXCEPTIONS = Selection(state=None, kind=None, exceptions=True, before=None, most=10)
READS = ["get_order", "check_return_policy"]


@dataclass(frozen=True)
class Example:
    """One row of the decision table, and where its case must stand."""

    reason: str
    state: str
    control: str
    case: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    line: dict[str, Any] = field(default_factory=dict)


LATE = {"window_ends_at": "2026-07-01T00:00:00Z"}
EXAMPLES = (
    Example("out_of_scope", "NEEDS_REVIEW", "needs_human", case={"asks": ["refund"]}),
    Example("out_of_scope", "NEEDS_REVIEW", "needs_human", case={"asks": ["collect"]}),
    Example("out_of_scope", "NEEDS_REVIEW", "needs_human", case={"asks": ["exception"]}),
    Example("undecidable", "NEEDS_REVIEW", "needs_human", line={"category_known": False}),
    Example("undecidable", "NEEDS_REVIEW", "needs_human", line={"delivered_at": None, "window_ends_at": None}),
    Example("undecidable", "NEEDS_REVIEW", "needs_human", facts={"approval_threshold": None}),
    Example("not_returnable", "REJECTED", "completed", facts={"order_status": "cancelled"}),
    Example("not_returnable", "REJECTED", "completed", line={"delivered": 0, "delivered_at": None}),
    Example("already_returned", "REJECTED", "completed", facts={"earlier_returns": ["R-9"]}, line={"left": 0}),
    Example("dangerous_goods", "NEEDS_REVIEW", "needs_human", line={"dangerous": True}),
    Example("final_sale_defect", "NEEDS_REVIEW", "needs_human", {"reason": "defective"}, line={"final_sale": True}),
    Example("final_sale", "REJECTED", "completed", line={"final_sale": True}),
    Example("exception_claimed", "NEEDS_REVIEW", "needs_human", case={"reason": "damaged"}, line=LATE),
    Example("out_of_period", "REJECTED", "completed", line=LATE),
)  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.reason)
def test_a_row_of_the_decision_table_ends_the_case_where_its_page_says_with_no_effect(example):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(facts=example.facts, line=example.line)
        async with engine(tools) as parts:
            workflow_id = await take(parts, **example.case)
            state = await drive(parts, workflow_id)
            decisions = await rows(
                parts, "SELECT outcome, reason, rule_version, facts FROM decision WHERE subject = 'business'"
            )
            ends = await rows(parts, "SELECT action FROM audit UNION ALL SELECT topic FROM outbox")

        assert (state.task.state, state.control.control.value, state.task.reason) == (
            example.state, example.control, example.reason,
        )  # fmt: skip
        assert [r.tool.name for r in tools.requests] == READS
        assert tools.executed == []
        ((outcome, reason, version, facts),) = decisions
        assert (reason, version) == (example.reason, "policy-v12")
        assert facts["order_version"] == 1
        assert RETURNS.transition("ORDER_VERIFIED", outcome, state_actor()) is not None
        assert ends == [("workflow_ended",), (f"returns.{example.state.lower()}",)]

    run()


def state_actor() -> Any:
    return RETURNS.transitions[0].by[0]


def test_every_row_that_ends_a_case_has_an_example():
    assert {row.reason for row in DECISION_TABLE} - {"high_value", "eligible"} == {e.reason for e in EXAMPLES}


@asynchronous
async def test_an_order_that_is_not_found_is_rejected_in_words_that_tell_nothing_of_it():
    tools = FakeTools(script={"get_order": [rejected("not_found")]})
    async with engine(tools) as parts:
        state = await drive(parts, await take(parts))
        ((error, execution),) = await rows(parts, "SELECT error ->> 'code', execution_state FROM call")

    assert (state.task.state, state.task.reason) == ("REJECTED", "order_not_found")
    assert state.control.control is Control.COMPLETED
    assert (error, execution) == ("not_found", "failed")
    for language in Language:
        text = RETURNS.message(state.task.state, state.task.reason, language, {}, state.evidence.seen())
        assert "A-1" not in text
    assert [r.tool.name for r in tools.requests] == ["get_order"]


@asynchronous
async def test_policy_facts_that_are_not_to_be_had_go_to_a_person():
    tools = FakeTools(script={"check_return_policy": [rejected("not_found")]})
    async with engine(tools) as parts:
        state = await drive(parts, await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "evidence_insufficient")


@pytest.mark.parametrize("amount", [50_000, 49_999])
def test_the_threshold_itself_needs_an_approval_and_one_yen_below_does_not(amount):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(refund=amount)
        async with engine(tools) as parts:
            state = await drive(parts, await take(parts))
        assert state.task.state == ("WAITING_APPROVAL" if amount >= 50_000 else "COMPLETED")

    run()


@asynchronous
async def test_what_other_returns_of_the_order_took_counts_toward_the_threshold():
    tools = FakeTools(refund=10_000, facts={"other_returns": yen(40_000)})
    async with engine(tools) as parts:
        assert (await drive(parts, await take(parts))).task.state == "WAITING_APPROVAL"


@asynchronous
async def test_a_high_value_case_waits_with_its_stored_call_and_nobody_asks_the_planner_again():
    tools, planner = FakeTools(refund=80_000), ScriptedPlanner()
    async with engine(tools, planner) as parts:
        workflow_id = await take(parts)
        state = await drive(parts, workflow_id)
        asked = len(planner.views)
        advance_clock(parts, 3600)
        again = await drive(parts, workflow_id)
        ((tool, execution, arguments, started),) = await rows(
            parts, "SELECT tool, execution_state, arguments, started_at FROM call ORDER BY step DESC LIMIT 1"
        )
        ((wake_reason, hours, lease),) = await rows(
            parts,
            "SELECT wake_reason, round(extract(epoch FROM wake_at - created_at) / 3600)::int, lease_owner "
            "FROM workflow",
        )

    assert state.task.state == "WAITING_APPROVAL"
    assert state.control.control is Control.TOOL_PROPOSED
    assert state.proposal is not None
    assert state.proposal.execution is Execution.WAITING_FOR_APPROVAL
    assert (tool, execution, started) == ("create_return", "waiting_for_approval", None)
    assert arguments == {"order_id": "A-1", "lines": [{"line_id": "1", "quantity": 1}], "reason": "changed_mind"}
    assert (wake_reason, hours, lease) == ("approval", 24, None)
    assert again.trace == state.trace
    assert len(planner.views) == asked == 3
    assert tools.executed == []


@asynchronous
async def test_nobodys_answer_within_a_day_ends_the_case_by_its_timer_and_never_as_a_yes():
    tools, planner = FakeTools(refund=80_000), ScriptedPlanner()
    async with engine(tools, planner) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        advance_clock(parts, 24 * 3600 - 30)
        early = await drive(parts, workflow_id)
        advance_clock(parts, 31)
        state = await drive(parts, workflow_id)
        last = await rows(
            parts,
            "SELECT m.event, m.actor FROM checkpoint JOIN legal_transition m USING (move_id) ORDER BY seq DESC LIMIT 1",
        )
        ((execution,),) = await rows(parts, "SELECT execution_state FROM call ORDER BY step DESC LIMIT 1")

    assert early.task.state == "WAITING_APPROVAL"
    assert (state.task.state, state.control.control) == ("EXPIRED", Control.STOPPED)
    assert last == [("expired", "timer")]
    assert execution == "failed"
    assert len(planner.views) == 3
    assert tools.executed == []


@asynchronous
async def test_an_approval_is_not_asked_for_under_another_authorization_set_than_the_cases_own():
    async with engine(FakeTools(refund=80_000)) as parts:
        workflow_id = await take(parts)
        newer = replace(parts, authorization=parts.authorization.model_copy(update={"version": "authz-v8"}))
        state = await drive(newer, workflow_id)
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "version_changed")


@pytest.mark.parametrize(
    ("tool", "field_name"),
    [("get_order", "snapshot"), ("check_return_policy", "snapshot"), ("check_return_policy", "rule_version")],
)
def test_data_of_another_version_than_the_cases_own_is_no_ground_for_a_move(tool, field_name):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        tools.script[tool] = [tools.but(**{field_name: "policy-v13"})]
        async with engine(tools) as parts:
            state = await drive(parts, await take(parts))
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "version_changed")
        assert tools.executed == []

    run()


@pytest.mark.parametrize("tool", READS)
def test_facts_of_another_order_decide_nothing_and_raise_an_alert(tool):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        tools.script[tool] = [tools.but(order_id="A-2")]
        async with engine(tools) as parts:
            state = await drive(parts, await take(parts))
            alerts = await rows(parts, "SELECT result FROM audit WHERE action = 'alert'")
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "protocol")
        assert alerts == [("foreign_answer",)]
        assert tools.executed == []

    run()


# A refusal by the tool server · its class · what follows
REFUSALS: tuple[tuple[str, str, str, str], ...] = (
    ("create_return", "quantity_gone", "needs_human", "quantity_gone"),
    ("create_return", "not_eligible", "needs_human", "not_eligible"),
    ("create_return", "key_reused", "needs_human", "key_reused"),
    ("create_return", "approval_required", "needs_human", "approval_required"),
    ("create_return", "tool_disabled", "needs_human", "tool_disabled"),
    ("create_return", "token_for_other_arguments", "needs_human", "token_for_other_arguments"),
    ("create_return", "invalid_arguments", "failed", "contract_broken"),
    ("create_return", "version_mismatch", "needs_human", "protocol"),
    ("send_return_notice", "notice_rejected", "needs_human", "notice_rejected"),
    ("get_order", "scope_missing", "needs_human", "scope_missing"),
    ("get_order", "tool_disabled", "needs_human", "tool_disabled"),
    ("get_order", "invalid_arguments", "failed", "contract_broken"),
    ("get_order", "bad_output", "needs_human", "protocol"),
    ("check_return_policy", "bad_answer", "needs_human", "protocol"),
)


@pytest.mark.parametrize(("tool", "code", "control", "reason"), REFUSALS)
def test_a_refusal_is_never_tried_again_and_goes_where_its_class_says(tool, code, control, reason):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={tool: [rejected(code)]})
        async with engine(tools) as parts:
            state = await drive(parts, await take(parts))
            ((execution, error),) = await rows(
                parts, "SELECT execution_state, error ->> 'code' FROM call ORDER BY step DESC LIMIT 1"
            )
            open_effects = await rows(parts, "SELECT name FROM effect WHERE outcome IS NULL")
        assert (state.task.state, state.control.control.value, state.task.reason) == ("NEEDS_REVIEW", control, reason)
        assert (execution, error) == ("failed", code)
        assert tools.sent(tool) == 1
        assert open_effects == []

    run()


@pytest.mark.parametrize("tool", ["create_return", "send_return_notice"])
def test_an_answer_of_200_that_says_rejected_is_no_success(tool, capsys):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        tools.script[tool] = [tools.but(status="rejected")]
        async with engine(tools) as parts:
            state = await settle(parts, await take(parts))
            ((execution,),) = await rows(parts, "SELECT execution_state FROM call ORDER BY step DESC LIMIT 1")
            ((outcome,),) = await rows(parts, "SELECT outcome FROM effect ORDER BY step DESC LIMIT 1")
            await listed(Settings(dsn=parts.pool.conninfo), EXCEPTIONS, as_json=True)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "create_rejected")
        assert (execution, outcome) == ("failed", "rejected")

    run()
    (row,) = json.loads(capsys.readouterr().out)["workflows"]  # `kessai list --exceptions --json`
    stands = (row["state"], row["reason"], row["handover_reason"])
    assert stands == ("NEEDS_REVIEW", "create_rejected", "rule_exception")
    assert (row["effects"][-1]["name"], row["effects"][-1]["outcome"]) == (tool, "rejected")


REASONS = {"scope": "scope_missing", "listing": "tool_unavailable", "tenant": "foreign_tenant"}


@pytest.mark.parametrize("missing", ["scope", "catalogue", "listing", "principal", "tenant"])
def test_an_empty_factor_leaves_no_tool_and_never_all(missing):
    @asynchronous
    async def run() -> None:
        tools, planner = FakeTools(), ScriptedPlanner()
        principal = DESK
        if missing == "scope":
            principal = DESK.model_copy(update={"scopes": frozenset()})
        if missing == "catalogue":
            principal = DESK.model_copy(update={"tools": frozenset()})
        if missing == "listing":
            tools.names = frozenset()
        async with engine(tools, planner, principal=principal) as parts:
            workflow_id = await take(parts)
            others = {"principal": (), "tenant": (DESK.model_copy(update={"tenant_id": "hoshi-jp"}),)}
            known = parts.authorization.model_copy(update={"principals": others.get(missing, (principal,))})
            state = await drive(replace(parts, authorization=known), workflow_id)
        reason = REASONS.get(missing, "not_in_catalogue")
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", reason)
        assert planner.views == []
        assert tools.requests == []

    run()


@asynchronous
async def test_a_principal_that_may_only_read_gets_as_far_as_reading():
    reader = DESK.model_copy(update={"scopes": frozenset(s for s in DESK.scopes if s.value.endswith(":read"))})
    tools = FakeTools()
    async with engine(tools, principal=reader) as parts:
        state = await drive(parts, await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "scope_missing")
    assert [r.tool.name for r in tools.requests] == READS


@asynchronous
async def test_a_tool_is_offered_to_nobody_before_all_that_its_contract_wants_answered_first():
    tools, planner = FakeTools(), ScriptedPlanner()
    async with engine(tools, planner) as plain:
        later = replace(TOOLS["create_return"], after=("check_return_policy", "get_return_links"))
        parts = replace(plain, registry={**TOOLS, "create_return": later})
        state = await drive(parts, await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "tool_not_in_state")
    assert planner.shown == [("get_order",), ("check_return_policy",)]
    assert tools.executed == []
