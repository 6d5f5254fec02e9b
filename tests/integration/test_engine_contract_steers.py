"""A row of the tool table steers what the engine does: for each field, another value is another course of a case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest

from host.domain.principals import Principal
from host.domain.proposals import PlannerView, Reply, ToolDefinition
from shared_contracts.contract import Ambiguous, Equals, ExecutesAt, ReadBack, Risk, Scope, Tool, Verification
from shared_contracts.tools import TOOLS
from tests.support.engine import DESK, asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown
from tests.support.scripted_planner import ScriptedPlanner, Word, honest, with_arguments

WITHOUT_NOTICES = DESK.model_copy(update={"scopes": frozenset(Scope) - {Scope.NOTICES_WRITE}})


@dataclass(frozen=True)
class Change:
    """One field of one row with another value, and the case in which that matters."""

    tool: str
    value: Any
    tools: Callable[[], FakeTools] = FakeTools
    principal: Principal = DESK
    script: tuple[Word, ...] = ()


@dataclass
class Watching:
    """What is said, and every definition that was shown."""

    planner: ScriptedPlanner
    deterministic: bool = True
    definitions: list[ToolDefinition] = field(default_factory=list)

    async def decide(self, state: PlannerView, tools: tuple[ToolDefinition, ...]) -> Reply:
        self.definitions += tools
        return await self.planner.decide(state, tools)


def scripted(**answers: Any) -> Callable[[], FakeTools]:
    return lambda: FakeTools(script={name: list(planned) for name, planned in answers.items()})


def on_its_way(status: str) -> Callable[[], FakeTools]:
    def tools() -> FakeTools:
        made = FakeTools()
        made.script["send_return_notice"] = [made.but(status=status)]
        return made

    return tools


CHANGES: dict[str, Change] = {
    "name": Change("get_order", "other"),
    "version": Change("get_order", "2"),
    "summary": Change("get_order", "Read an order."),
    "arguments": Change("get_order", TOOLS["get_return"].arguments),
    "result": Change("get_order", TOOLS["get_return"].result),
    "scope": Change("get_order", Scope.NOTICES_WRITE, principal=WITHOUT_NOTICES),
    "risk": Change("get_order", Risk.REVERSIBLE_WRITE),
    "targets": Change("get_order", ""),
    "timeout_seconds": Change("get_order", 3),
    "attempts_max": Change("get_order", 1, scripted(get_order=[rejected("no_answer")])),
    "evidence": Change("get_order", ()),
    "owner": Change("get_order", ""),
    "business_owner": Change("create_return", ""),
    "resource_argument": Change("get_order", "customer_id"),
    "proposed_arguments": Change("create_return", ("reason",), script=(honest, honest, with_arguments(reason="other"))),
    "after": Change("create_return", ("get_order", "get_return_links")),
    "preconditions": Change("create_return", ()),
    "side_effect": Change("create_return", ""),
    "idempotency_key": Change("create_return", ""),
    "idempotency_retention_days": Change("create_return", 0),
    "looks_up": Change("find_notice", False),
    "reconcile_with": Change("create_return", "find_notice", scripted(create_return=[unknown()])),
    "ambiguous_failure": Change("create_return", Ambiguous.RECONCILE_THEN_STOP, scripted(create_return=[unknown()])),
    "success_when": Change("create_return", Equals("status", "done")),
    "pending_values": Change("send_return_notice", (), on_its_way("queued")),
    "doubtful_values": Change("send_return_notice", (), on_its_way("unknown")),
    "external_id": Change("create_return", "evidence_ref"),
    "verification": Change("create_return", Verification.RESPONSE),
    "verify": Change("create_return", ReadBack("find_return", matches=("order_id",))),
    "compensate_with": Change("create_return", ""),
    "compensate_within_hours": Change("create_return", 0),
    "approval_required_when": Change("create_return", "", lambda: FakeTools(refund=80_000)),
    "forbidden_when": Change("create_return", ()),
    "executes_at": Change("create_return", ExecutesAt.LOCAL),
    "audit_items": Change("create_return", ()),
}


async def course(change: Change, row: Tool) -> tuple[Any, ...]:
    """Run a return under a row: where it ends, what it sent, what it recorded, and what both sides compare."""
    others = {name: tool for name, tool in TOOLS.items() if name != change.tool}
    tools, planner = change.tools(), Watching(ScriptedPlanner(list(change.script)))
    async with engine(tools, planner, principal=change.principal) as plain:
        parts = replace(plain, registry={**others, row.name: row})
        state = await settle(parts, await take(parts))
        recorded = await rows(parts, "SELECT tool, contract_version, execution_state FROM call ORDER BY step")
        effects = await rows(parts, "SELECT name, outcome, external_id FROM effect ORDER BY step, attempt")
    sent = [(r.tool.name, r.timeout_seconds, r.idempotency_key is None, r.attempt) for r in tools.requests]
    end = (state.task.state, state.task.reason, state.control.control)
    return end, sent, recorded, effects, planner.definitions, row.schema_digest


def test_every_field_of_a_row_is_among_them():
    assert set(CHANGES) == {one.name for one in fields(Tool)}


@pytest.mark.parametrize("name", CHANGES)
def test_another_value_of_a_field_is_another_course_of_a_case(name):
    @asynchronous
    async def run() -> None:
        change = CHANGES[name]
        row = TOOLS[change.tool]
        changed = replace(row, **{name: change.value})
        assert await course(change, changed) != await course(change, row)

    run()
