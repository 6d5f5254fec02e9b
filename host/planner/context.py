"""What a planner may see: the case, the state and typed observations. Nothing else is ever put into a view.

No tenant, credential, key, token, approval, budget or authorization detail is an argument of `view`, so none can
leak into one. All of it is copied: what a planner changes in a view, it changes for itself alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from host.domain.proposals import Observation, PlannerFault, PlannerView, ToolCall, ToolDefinition
from host.domain.state import NOT_COUNTED, CallRecord
from shared_contracts.contract import Tool


def view(
    kind: str,
    release: str,
    state: str,
    case: Mapping[str, Any],
    calls: tuple[CallRecord, ...],
    refusals: tuple[tuple[str, str], ...],
) -> PlannerView:
    """Filter the state for a planner."""
    return PlannerView(
        kind=kind,
        release=release,
        state=state,
        turn=len(calls) + len(refusals) + 1,
        case=_copied(case),
        observations=tuple(_observation(call) for call in calls if call.error not in NOT_COUNTED),
        refusals=tuple(PlannerFault(code, message) for code, message in refusals),
    )


def definition(tool: Tool) -> ToolDefinition:
    """Give the wire's own name, summary and schema."""
    return ToolDefinition(tool.name, tool.summary, _copied(tool.input_schema))


def taken(proposal: ToolCall) -> ToolCall | None:
    """Copy what a planner handed in: it may keep its own and change it after it was judged. None: it is no call."""
    named = isinstance(proposal.call_id, str) and isinstance(proposal.name, str)
    if not named or not isinstance(proposal.arguments, dict):
        return None
    try:
        return ToolCall(proposal.call_id, proposal.name, _copied(proposal.arguments))
    except RecursionError:
        return None


def _observation(call: CallRecord) -> Observation:
    result = None if call.error is not None or call.result is None else _copied(call.result)
    return Observation(call.tool, call.call_id, _copied(call.arguments), result, call.error)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
