"""A workflow kind of one update tool alone, so that its contract is tried on the engine itself: read, call, verify.

    READY → READ → DONE          from any: RETRY_WAIT (and back), NEEDS_REVIEW; from READ: COMPENSATION_REQUIRED

Invariant: it is made from the tool's row and knows no tool by name; what the call is about stands in its case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, Literal

from host.domain.control import NEXT_ATTEMPT, WAITED, Actor, Control
from host.domain.limits import Limits
from host.domain.proposals import NeedsHuman, PlannerDecision, PlannerView, ToolCall
from host.domain.severe import Severe
from host.domain.undo import Impossible, Undo
from host.domain.workflow import RESUME, Ended, Finding, Language, Seen, T, Transition, Version, Workflow
from shared_contracts.base import Contract, Identifier
from shared_contracts.contract import Tool
from shared_contracts.record import Result

KIND: Final = "contract-test"


class ContractCase(Contract):
    """One call of the tool. `number` tells two cases with the same arguments apart."""

    kind: Literal["contract-test"] = KIND
    number: Identifier
    customer_id: Identifier
    arguments: dict[str, Any]


class S(StrEnum):
    """Where the one call stands."""

    READY = "READY"
    READ = "READ"
    RETRY_WAIT = "RETRY_WAIT"
    COMPENSATION_REQUIRED = "COMPENSATION_REQUIRED"
    DONE = "DONE"
    NEEDS_REVIEW = "NEEDS_REVIEW"


ENGINE, TIMER, CLOCK = (Actor.ENGINE,), (Actor.TIMER,), (Actor.ENGINE, Actor.TIMER)
ROW, ACTIVE, RETRY, DAY = (Version.ROW,), 90.0, 30.5, 24 * 3600.0
_WORKING = (S.READY, S.READ, S.COMPENSATION_REQUIRED)
_OPEN = (*_WORKING, S.RETRY_WAIT)
_REVIEW_EVENTS = (
    "limit", "attempts_exhausted", "unknown_effect", "undecidable", "out_of_scope", "create_rejected", "denied",
    "planner_exhausted", "planner_needs_human",
)  # fmt: skip
TRANSITIONS: tuple[Transition, ...] = (
    T(S.READY, "read", S.READ, ENGINE, ROW, ACTIVE),
    T(S.READ, "verified", S.DONE, ENGINE, ROW, ACTIVE),
    T(_WORKING, "transient", S.RETRY_WAIT, ENGINE, ROW, RETRY, NEXT_ATTEMPT),
    T(S.RETRY_WAIT, "due", RESUME, TIMER, ROW, RETRY, WAITED),
    T(S.READ, "wrong_effect", S.COMPENSATION_REQUIRED, ENGINE, ROW, None),
    *(T(_OPEN, event, S.NEEDS_REVIEW, ENGINE, ROW, ACTIVE) for event in _REVIEW_EVENTS),
    *(
        T(S.COMPENSATION_REQUIRED, event, S.NEEDS_REVIEW, CLOCK, ROW, DAY)
        for event in ("compensated", "not_compensable", "overdue")
    ),
)
LIMITS = Limits(
    calls=6,
    calls_stop_others=False,  # a tool that is tried and fails stops no other's tests
    calls_per_tool=2,
    compensation_calls=1,
    active_seconds=ACTIVE,
    tokens=1,
    call_ceiling_seconds=20,
    refusals_in_a_row=1,
    refusals=1,
    empty_in_a_row=3,
    recoveries=2,
    engine_reads_per_send=2,  # the second look tells that the first was not the last
    repeats=1,
)


def alone(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Give the rows without what orders an update into a business: the read comes before it, and nobody approves it."""
    return {
        name: replace(tool, after=(read_before(tool, tools).name,), approval_required_when="") if tool.writes else tool
        for name, tool in tools.items()
    }


def read_before(tool: Tool, tools: Mapping[str, Tool]) -> Tool:
    """Give the read of the object that the tool is about: one that may come first, and needs no more than its name."""
    reads = (one for one in tools.values() if not one.writes and one.resource_argument == tool.resource_argument)
    return next(one for one in reads if one.after == () and set(one.arguments.model_fields) == {tool.resource_argument})


def contract_kind(tool: Tool, tools: Mapping[str, Tool]) -> Workflow:
    """Make the kind of one tool."""
    read = read_before(tool, tools)

    def interpret(_: Mapping[str, Any], seen: Seen) -> Finding | None:
        if seen.result is None:
            return None
        return Finding("read", "read") if seen.tool == read.name else Finding("verified", "verified")

    def propose(view: PlannerView) -> PlannerDecision:
        asked = {S.READY.value: read, S.READ.value: tool}.get(view.state)
        if asked is None:
            return NeedsHuman("planner_needs_human")
        given = view.case["arguments"]
        arguments = {tool.resource_argument: given[tool.resource_argument]} if asked is read else given
        return ToolCall(f"call_{view.case['number']}_{view.turn}", asked.name, dict(arguments))

    return Workflow(
        kind=KIND,
        release=f"{tool.name}-{tool.version}",
        initial=S.READY,
        case=ContractCase,
        transitions=TRANSITIONS,
        tools={S.READY: (read.name,), S.READ: (tool.name,), S.COMPENSATION_REQUIRED: ()},
        ends={S.DONE: (Control.COMPLETED,), S.NEEDS_REVIEW: (Control.NEEDS_HUMAN, Control.FAILED)},
        limits=LIMITS,
        effects=(tool.name,),
        success=S.DONE,
        retry_state=S.RETRY_WAIT,
        approval_state=None,
        compensation_state=S.COMPENSATION_REQUIRED,
        resource=lambda case: str(case["arguments"][tool.resource_argument]),
        customer=lambda case: str(case["customer_id"]),
        units=lambda case: (str(case["number"]),),
        bindings=lambda case, _: case["arguments"],
        interpret=interpret,
        needs_approval=lambda *_: False,
        approvable=None,
        propose=propose,
        undo=_not_by_code,
        overstepped=lambda *_: False,
        severe=lambda *_: Severe.OUTSIDE_PERMISSION,
        message=_nobody_is_told,
        outcome=Result,
        result=_result,
        owners=dict.fromkeys(S, "operations"),
    )


def _not_by_code(*_: Any) -> Undo:
    return Impossible("not_compensable")


def _nobody_is_told(
    _state: str, _reason: str, _language: Language, _ids: Mapping[str, str], _seen: tuple[Seen, ...]
) -> str:
    return ""


def _result(ended: Ended) -> Result:
    return Result(outcome=ended.state.lower(), evidence_refs=ended.evidence_refs)
