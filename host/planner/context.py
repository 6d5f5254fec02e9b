"""What a planner may see: the case, the state and typed observations. Nothing else is ever put into a view.

No tenant, credential, key, token, approval, budget or authorization detail is an argument of `view`, so none can
leak into one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from host.domain.proposals import Observation, PlannerFault, PlannerView, ToolDefinition
from host.domain.state import NOT_COUNTED, CallRecord
from shared_contracts.contract import Tool


def view(
    kind: str,
    state: str,
    case: Mapping[str, Any],
    calls: tuple[CallRecord, ...],
    refusals: tuple[tuple[str, str], ...],
) -> PlannerView:
    """Filter the state for a planner."""
    return PlannerView(
        kind=kind,
        state=state,
        case=dict(case),
        observations=tuple(_observation(call) for call in calls if call.error not in NOT_COUNTED),
        refusals=tuple(PlannerFault(code, message) for code, message in refusals),
    )


def definition(tool: Tool) -> ToolDefinition:
    """Give the wire's own name, summary and schema."""
    return ToolDefinition(tool.name, tool.summary, tool.input_schema)


def _observation(call: CallRecord) -> Observation:
    result = None if call.error is not None or call.result is None else dict(call.result)
    return Observation(call.tool, call.call_id, dict(call.arguments), result, call.error)
