"""Every row of the transition table that no approver, operator or compensation is needed for is reached by driving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from host.domain.outcome import Success
from host.domain.proposals import NeedsHuman, PlannerFault
from host.domain.workflow import RESUME
from host.workflows.returns import RETURNS
from tests.support.engine import advance_clock, asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown
from tests.support.scripted_planner import ScriptedPlanner

BUSY = [rejected("rate_limited")]
STATES = {
    "RECEIVED": "get_order", "ORDER_VERIFIED": "check_return_policy", "ELIGIBLE": "create_return",
    "RETURN_CREATED": "send_return_notice",
}  # fmt: skip
REACHED = """
SELECT DISTINCT business_from, event, business_to, actor FROM checkpoint JOIN legal_transition USING (move_id)
 WHERE business_from <> business_to AND business_from <> ''
"""
Scenario = Callable[[FakeTools], ScriptedPlanner]


def plain(tools: FakeTools) -> ScriptedPlanner:
    return ScriptedPlanner()


def answering(**script: Any) -> Scenario:
    """Honest, but for these answers."""

    def scenario(tools: FakeTools) -> ScriptedPlanner:
        tools.script = {tool: list(answers) for tool, answers in script.items()}
        return ScriptedPlanner()

    return scenario


def high_value(tools: FakeTools) -> ScriptedPlanner:
    tools.refund = 80_000
    return ScriptedPlanner()


def ruled_out(**line: Any) -> Scenario:
    def scenario(tools: FakeTools) -> ScriptedPlanner:
        tools.line = line
        return ScriptedPlanner()

    return scenario


def wrong_notice(tools: FakeTools) -> ScriptedPlanner:
    def other_order(request: Any) -> Any:
        found = tools.honest(request)
        assert isinstance(found, Success)
        return Success({**found.result, "record": {**found.result["record"], "order_id": "A-2"}})

    tools.script["find_notice"] = [other_order]
    return ScriptedPlanner()


def wrong_return(tools: FakeTools) -> ScriptedPlanner:
    tools.script["get_return"] = [tools.but(order_id="A-2")]
    return ScriptedPlanner()


def saying_in(state: str, word: Any) -> Scenario:
    def scenario(_tools: FakeTools) -> ScriptedPlanner:
        turns = list(STATES).index(state)
        return ScriptedPlanner([*[RETURNS.propose] * turns, *[word] * 3])

    return scenario


SCENARIOS: list[tuple[str, Scenario]] = [
    ("normal", plain),
    ("not found", answering(get_order=[rejected("not_found")])),
    ("final sale", ruled_out(final_sale=True)),
    ("dangerous", ruled_out(dangerous=True)),
    ("high value", high_value),
    ("wrong return", wrong_return),
    ("wrong notice", wrong_notice),
    *((f"retry in {state}", answering(**{tool: BUSY})) for state, tool in STATES.items()),
    *((f"exhausted in {state}", answering(**{tool: BUSY * 2})) for state, tool in STATES.items()),
    *((f"denied in {state}", answering(**{tool: [rejected("tool_disabled")]})) for state, tool in STATES.items()),
    *((f"broken in {state}", answering(**{tool: [rejected("invalid_arguments")]})) for state, tool in STATES.items()),
    *((f"no planner in {s}", saying_in(s, PlannerFault("no_call", "-"))) for s in STATES),
    *((f"handed over in {s}", saying_in(s, NeedsHuman("planner_needs_human"))) for s in STATES),
    ("lost return", answering(create_return=[unknown()], find_return=[rejected("no_answer")] * 3)),
    ("lost notice", answering(send_return_notice=[unknown()], find_notice=[rejected("no_answer")] * 3)),
    ("return refused", answering(create_return=[rejected("quantity_gone")])),
    ("notice refused", answering(send_return_notice=[rejected("notice_rejected")])),
    ("seven calls", answering(get_order=BUSY, check_return_policy=BUSY, create_return=BUSY)),
]  # fmt: skip
# Events for which a person, an approval or a compensation has to be there.
ELSEWHERE = {
    "approved", "withdrawn", "approval_void", "approval_expired", "compensation_ordered", "effect_adopted",
    "compensated", "not_compensable", "overdue",
}  # fmt: skip


@asynchronous
async def test_driving_reaches_the_rows_of_the_table_and_none_beside_it():
    reached: set[tuple[str, str, str, str]] = set()
    for name, scenario in SCENARIOS:
        tools = FakeTools()
        planner = scenario(tools)
        async with engine(tools, planner) as parts:
            await settle(parts, await take(parts))
            if name == "high value":
                advance_clock(parts, 24 * 3600 + 1)
                await settle(parts, (await rows(parts, "SELECT workflow_id FROM workflow"))[0][0])
            reached |= set(await rows(parts, REACHED))
    async with engine(FakeTools()) as parts:
        await settle(parts, await take(parts, asks=["refund"]))
        reached |= set(await rows(parts, REACHED))

    table = {
        (str(source), row.on, str(row.target), actor.value)
        for row in RETURNS.transitions
        for source in row.source
        for actor in row.by
    }
    known = {(s, e, t if e != "due" else RESUME, a) for s, e, t, a in reached}
    assert known <= table
    events = {event for _, event, _, _ in table} - ELSEWHERE
    assert {event for _, event, _, _ in known} == events
    for event in (
        "transient",
        "planner_exhausted",
        "planner_needs_human",
        "denied",
        "undecidable",
        "attempts_exhausted",
    ):
        assert {source for source, e, _, _ in known if e == event} >= STATES.keys(), event
    assert {target for _, event, target, _ in reached if event == "due"} == STATES.keys()
    assert {source for source, event, _, _ in known if event == "wrong_effect"} == {"ELIGIBLE", "RETURN_CREATED"}
    assert {source for source, event, _, _ in known if event == "unknown_effect"} == {"ELIGIBLE", "RETURN_CREATED"}
