"""Whether a proposal is well formed, which is less than allowed: its id, and its arguments against the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs
from pydantic import BaseModel

from host.domain.kept import kept_text, usable_call_id
from host.domain.proposals import PlannerFault, ToolCall
from host.domain.step import Step
from shared_contracts.base import parse
from shared_contracts.contract import Tool
from shared_contracts.digest import canonical_json

_CALL_ID = PlannerFault("call_id_invalid", "The call's id is empty, too long or cannot be stored; make the call again.")
_REUSED = PlannerFault("call_id_reused", "This call id belongs to an earlier call; use a fresh one.")
_compiled: dict[type[BaseModel], jsonschema_rs.Validator] = {}


def fault_of(step: Step, tool: Tool, proposal: ToolCall) -> PlannerFault | None:
    """Name what is wrong with a proposal's form; None where nothing is."""
    if not usable_call_id(proposal.call_id):
        return _CALL_ID
    if any(call.call_id == proposal.call_id for call in step.state.evidence.calls):
        return _REUSED
    return fault_of_arguments(tool, proposal.arguments)


def fault_of_arguments(tool: Tool, arguments: Mapping[str, Any]) -> PlannerFault | None:
    """Name what does not fit the contract as it is now."""
    validator = _compiled.get(tool.arguments)
    if validator is None:
        validator = _compiled[tool.arguments] = jsonschema_rs.validator_for(tool.input_schema)
    try:
        canonical_json(arguments)
        validator.validate(arguments)
        parse(tool.arguments, arguments)
    except (ValueError, TypeError) as error:  # all that the three of them raise
        return PlannerFault("arguments_invalid", f"The arguments do not fit {tool.name}: {kept_text(str(error), 300)}")
    return None
