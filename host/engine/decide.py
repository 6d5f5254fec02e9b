"""Authorise a call: gather the facts as they are now and ask the rules. The same for a proposal and a stored call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from host.domain.authorization import Decision, Facts, decide, effective_tools
from host.domain.control import Execution
from host.domain.principals import Principal
from host.domain.state import State
from host.domain.step import Step
from host.domain.suitability import is_update
from host.domain.undo import NextCall
from host.engine.approval import void
from host.engine.compensate import plan
from host.engine.parts import Parts
from shared_contracts.contract import Tool, offerable
from shared_contracts.digest import NotCanonicalError, action_fingerprint, canonical_json


@dataclass(frozen=True, slots=True)
class Proposed:
    """A call to be judged; `step` is its own step where it is stored already."""

    name: str
    arguments: Mapping[str, Any]
    step: int | None


def authorise(parts: Parts, step: Step, proposed: Proposed) -> tuple[int, Decision]:
    """Judge a call against the state as it is, not as it was when the tool was offered; gives the decision's number."""
    facts = _facts(parts, step, proposed)
    decision = decide(facts)
    return step.decided(facts, decision), decision


def offered(parts: Parts, step: Step) -> frozenset[str]:
    """Name the tools that a planner may be shown: every factor can remove one, an empty one removes all."""
    state = step.state
    principal = _principal_of(parts, state)
    if principal is None or principal.tenant_id != state.task.tenant_id:
        return frozenset()  # the catalogue is a tenant's: in another's cases there is nothing for them
    stops, drafts = state.control, parts.unfit[state.task.kind, state.task.release] != ()
    complete = {name: tool for name, tool in parts.registry.items() if offerable(tool)}
    return effective_tools(
        principal.tools,
        frozenset(name for name, tool in complete.items() if tool.scope in principal.scopes),
        frozenset(name for name in step.workflow.tools.get(state.task.state, ()) if _in_turn(parts, state, name)),
        frozenset(name for name, tool in complete.items() if not (tool.writes and drafts)),
        frozenset(n for n, t in complete.items() if not (stops.reads_stopped or (t.writes and stops.updates_stopped))),
        parts.tools.available(),
    )


def _principal_of(parts: Parts, state: State) -> Principal | None:
    """Find the requester as the authorization set has it today."""
    return parts.authorization.by_name().get(state.task.principal)


def _facts(parts: Parts, step: Step, proposed: Proposed) -> Facts:
    workflow, state = step.workflow, step.state
    tool = parts.registry.get(proposed.name)
    principal = _principal_of(parts, state)
    undoing = _undoing(step)
    bindings = workflow.bindings(state.task.case, state.evidence.seen()) if undoing is None else undoing.arguments
    return Facts(
        tool_name=proposed.name,
        tool_known=tool is not None and offerable(tool),
        writes=tool is not None and tool.writes,
        draft_only=_draft_only(parts, step, proposed.name),
        updates_stopped=state.control.updates_stopped,
        reads_stopped=state.control.reads_stopped,
        in_catalogue=principal is not None and proposed.name in principal.tools,
        in_state=_in_state(parts, step, proposed.name) if undoing is None else proposed.name == undoing.tool,
        available=proposed.name in parts.tools.available(),
        same_tenant=principal is not None and principal.tenant_id == state.task.tenant_id,
        on_resource=tool is not None and proposed.arguments.get(tool.resource_argument) == state.task.resource,
        bound_arguments_hold=tool is not None and _bound(tool, proposed.arguments, bindings),
        scope_held=tool is not None and principal is not None and tool.scope in principal.scopes,
        budget_left=state.calls_left(proposed.name, workflow.limits)
        and (undoing is not None or turns_left(parts, step)),
        repeated=undoing is None and _repeats(state, proposed) >= workflow.limits.repeats,
        needs_approval=tool is not None
        and workflow.needs_approval(tool.approval_required_when, state.evidence.seen(), state.task.case),
        approved=tool is not None and _approved(parts, state, tool, proposed),
    )


def _draft_only(parts: Parts, step: Step, name: str) -> bool:
    """Tell whether the state asks for an update that is a person's; what it does not ask for is denied anyway."""
    task, workflow = step.state.task, step.workflow
    drafts = parts.unfit[task.kind, task.release] != ()
    return drafts and name in workflow.tools.get(task.state, ()) and is_update(workflow, parts.registry, name)


def _approved(parts: Parts, state: State, tool: Tool, proposed: Proposed) -> bool:
    """Only a call that was stored while a person looked at it can have been approved."""
    call = state.proposal
    return call is not None and proposed.step == call.step and void(parts, state, tool, call) is None


def turns_left(parts: Parts, step: Step) -> bool:
    """Tell whether time, tokens and money are left; a planner that costs money works only under a daily limit."""
    limits, control = step.workflow.limits, step.state.control
    daily = 0 if parts.daily_cost_micros is None else parts.daily_cost_micros
    free = control.cost_micros == 0 and (parts.planner.deterministic or control.cost_today == 0)
    affordable = free or control.cost_today < daily
    return step.active_ms < limits.active_seconds * 1000 and control.tokens < limits.tokens and affordable


def _undoing(step: Step) -> NextCall | None:
    """Give the one call that undoing asks for; None where nothing is undone, or no call is asked for."""
    undoing = step.state.evidence.undoing
    asked = None if undoing is None else plan(step.workflow, step.state, undoing)
    return asked if isinstance(asked, NextCall) else None


def _in_state(parts: Parts, step: Step, name: str) -> bool:
    return name in step.workflow.tools.get(step.state.task.state, ()) and _in_turn(parts, step.state, name)


def _in_turn(parts: Parts, state: State, name: str) -> bool:
    """Tell whether all that the contract wants answered first was."""
    tool = parts.registry.get(name)
    answered = {one.tool for one in state.evidence.seen() if one.result is not None}
    return tool is not None and answered.issuperset(tool.after)


def _bound(tool: Tool, arguments: Mapping[str, Any], bindings: Mapping[str, Any]) -> bool:
    """Hold every argument that is not the planner's to choose against the run's own value; no value, no match."""
    bound = (name for name in tool.arguments.model_fields if name not in tool.proposed_arguments)
    return all(name in bindings and _same(arguments.get(name), bindings[name]) for name in bound)


def _same(left: Any, right: Any) -> bool:
    try:
        return canonical_json(left) == canonical_json(right)
    except NotCanonicalError:
        return False


def _repeats(state: State, proposed: Proposed) -> int:
    """Count how often this very action has succeeded; attempts of one call and cut-off calls are no repeats."""
    try:
        fingerprint = action_fingerprint(proposed.name, proposed.arguments)
    except NotCanonicalError:
        return 0
    succeeded = {Execution.SUCCEEDED, Execution.VERIFIED}
    return sum(
        call.fingerprint == fingerprint and call.execution in succeeded and call.step != proposed.step
        for call in state.evidence.calls
    )
