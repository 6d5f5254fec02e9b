"""A stored call is sent under the contract that it was judged by, or not at all; that may change while it waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from host.engine.drive import drive
from host.engine.parts import Parts
from shared_contracts.tools import TOOLS
from tests.support.approvals import APPROVERS, KEYS, decide, trust
from tests.support.engine import CASE, advance_clock, asynchronous, engine, owners, rows, take
from tests.support.fake_tools import FakeTools, rejected

BUSY = rejected("rate_limited")


def later(parts: Parts, name: str, **changes: Any) -> Parts:
    """The same engine after a release in which a contract has changed."""
    return replace(parts, registry={**TOOLS, name: replace(TOOLS[name], **changes)})


async def waiting_with(tools: FakeTools, name: str, parts: Parts) -> Any:
    """Drive a case until its call of this tool waits to be sent again, and let it be due."""
    tools.script[name] = [BUSY]
    workflow_id = await take(parts)
    state = await drive(parts, workflow_id)
    assert state.task.state == "RETRY_WAIT"
    advance_clock(parts, 31)
    return workflow_id


@pytest.mark.parametrize("changes", [{"version": "2"}, {"version": "2", "arguments": TOOLS["get_order"].arguments}])
def test_a_write_that_waited_over_a_change_of_its_contract_is_not_sent_but_a_persons(changes):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            workflow_id = await waiting_with(tools, "create_return", parts)
            state = await drive(later(parts, "create_return", **changes), workflow_id)
            ((execution, error),) = await rows(
                parts, "SELECT execution_state, error ->> 'code' FROM call ORDER BY step DESC LIMIT 1"
            )
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "version_changed")
        assert (execution, error) == ("failed", "contract_changed")
        assert (tools.sent("create_return"), tools.executed) == (1, [])

    run()


@asynchronous
async def test_a_read_that_waited_over_a_change_is_sent_where_it_fits_the_new_contract_too():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await waiting_with(tools, "get_order", parts)
        state = await drive(later(parts, "get_order", version="2"), workflow_id)
    assert state.task.state == "COMPLETED"
    assert tools.sent("get_order") == 2


@asynchronous
async def test_a_read_that_does_not_fit_the_contract_of_today_is_not_sent():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await waiting_with(tools, "get_order", parts)
        narrower = later(parts, "get_order", version="2", arguments=TOOLS["get_return"].arguments)
        state = await drive(narrower, workflow_id)
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "version_changed")
    assert tools.sent("get_order") == 1


@asynchronous
async def test_a_write_that_waited_while_nothing_changed_is_sent_again():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await waiting_with(tools, "create_return", parts)
        state = await drive(parts, workflow_id)
    assert state.task.state == "COMPLETED"
    assert tools.sent("create_return") == 2


@asynchronous
async def test_a_write_under_way_while_its_contract_changed_is_found_and_then_a_persons():
    """What became of it is found out; what that means, no contract says that it was made under."""
    tools = FakeTools(script={"create_return": [rejected("rate_limited")]})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        advance_clock(parts, 31)
        tools.script["get_return"] = [rejected("not_found")]
        await drive(parts, workflow_id)
        advance_clock(parts, 31)
        state = await drive(later(parts, "create_return", version="2"), workflow_id)
        effects = await rows(parts, "SELECT outcome, verified_at IS NOT NULL FROM effect ORDER BY step, attempt")
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "version_changed")
    assert effects == [("absent", False), ("succeeded", True)]
    assert tools.notices == {}


TWO = [{"line_id": "1", "quantity": 2}]
# What a superuser changes after the approval · where the case stands then.
CHANGED: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, str]]] = {
    "the quantity": ({"lines": TWO}, {}, ("NEEDS_REVIEW", "foreign_arguments")),
    "the order": ({"order_id": "A-2"}, {}, ("NEEDS_REVIEW", "foreign_resource")),
    "the quantity, in the case as well": ({"lines": TWO}, {"lines": TWO}, ("WAITING_APPROVAL", "approval_void")),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_call_that_is_no_longer_what_was_approved_is_not_sent(what):
    """No trigger and no grant keeps a superuser from it; what leaves is held against what was asked and signed."""
    call, case, stands = CHANGED[what]

    @asynchronous
    async def run() -> None:
        tools = FakeTools(refund=80_000)
        async with engine(tools, approvers=APPROVERS) as parts:
            workflow_id = await take(parts)
            await drive(parts, workflow_id)
            trust(parts, *KEYS)
            await decide(parts, workflow_id)
            with owners(parts) as sql:
                sql.execute("SET session_replication_role = replica")
                sql.execute("UPDATE call SET arguments = arguments || %s WHERE tool = 'create_return'", (Jsonb(call),))
                sql.execute("UPDATE workflow SET case_body = case_body || %s", (Jsonb(case),))
            state = await drive(parts, workflow_id)
            stored = await rows(parts, "SELECT arguments FROM call WHERE tool = 'create_return'")
        assert stored == [({name: CASE[name] for name in ("order_id", "lines", "reason")} | call,)]
        assert (state.task.state, state.task.reason) == stands
        assert (tools.sent("create_return"), tools.executed) == (0, [])

    run()
