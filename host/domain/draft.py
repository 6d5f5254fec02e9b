"""What a person would do next with a case that was handed over: the updates that the rules allowed. Pure.

Invariant: a draft is made of the run's own bound values, never of a planner's or a customer's words; and there is none
where a rule spoke against the update, where what it rests on is not certain, or where one may have happened already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from host.domain.control import Control
from host.domain.reasons import Handover, handover_class
from host.domain.state import Effect, State
from host.domain.suitability import is_update
from host.domain.workflow import Workflow
from shared_contracts.contract import Tool
from shared_contracts.digest import canonical_json
from shared_contracts.record import Draft, DraftedCall

# The rules said no, or what they said it of is not certain any more.
_SPOKEN_AGAINST = frozenset({Handover.RULE_EXCEPTION, Handover.DATA_MISSING})
# It may have been done, by this case or by another one; or somebody reached for what is not theirs.
_NOT_NOW = frozenset(
    {"unknown_effect", "unsettled_elsewhere", "foreign_tenant", "foreign_resource", "foreign_arguments"}
)
# The tool server holds that a person has to agree, whatever the rules here found.
_APPROVAL_WANTED = frozenset({"approval_required", "approval_refused"})


def drafted(workflow: Workflow, registry: Mapping[str, Tool], state: State, passed: Sequence[str]) -> Draft | None:
    """Draft what is left of a case that a person has; `passed` are its business states so far, in their order."""
    reason = state.task.reason
    if state.control.control not in {Control.NEEDS_HUMAN, Control.FAILED}:
        return None
    if handover_class(reason) in _SPOKEN_AGAINST or reason in _NOT_NOW:
        return None
    left = _left(workflow, registry, passed)
    if not left or _uncertain(state.evidence.effects, left):
        return None
    case, seen = state.task.case, state.evidence.seen()
    bound = workflow.bindings(case, seen)
    conditions = {name: registry[name].approval_required_when for name in left if name in registry}
    asking = {name for name, condition in conditions.items() if workflow.needs_approval(condition, seen, case)}
    asking |= {left[0]} if reason in _APPROVAL_WANTED else set()
    return Draft(calls=tuple(_call(name, registry.get(name), bound, name in asking) for name in left))


def _left(workflow: Workflow, registry: Mapping[str, Tool], passed: Sequence[str]) -> tuple[str, ...]:
    """Name the updates from the state at which work ended on; none where that state is no update's turn."""
    worked = next((state for state in reversed(passed) if state in workflow.tools), None)
    offered = () if worked is None else workflow.tools[worked]
    first = next((name for name in offered if is_update(workflow, registry, name)), None)
    if first is None:
        return ()
    effects = workflow.effects
    return effects[effects.index(first) :] if first in effects else (first,)


def _uncertain(effects: Iterable[Effect], left: tuple[str, ...]) -> bool:
    """Tell whether an effect is in doubt, was not confirmed, or stands where it would be made again."""
    return any(
        effect.outcome in {None, "succeeded"} and (not effect.verified or effect.name in left) for effect in effects
    )


def _call(name: str, tool: Tool | None, bound: Mapping[str, Any], needs_approval: bool) -> DraftedCall:
    fields = tuple(bound) if tool is None else tuple(tool.arguments.model_fields)
    chosen = () if tool is None else tool.proposed_arguments
    known = {field: bound[field] for field in fields if field in bound and field not in chosen}
    return DraftedCall(
        tool=name,
        arguments=known,
        open_arguments=tuple(field for field in fields if field not in known),
        needs_approval=needs_approval,
    )


def steps(draft: Draft | None) -> tuple[str, ...]:
    """Write a draft down for a person, a line for each step."""
    return () if draft is None else tuple(_step(call) for call in draft.calls)


def _step(call: DraftedCall) -> str:
    arguments = " ".join(f"{name}={_written(value)}" for name, value in call.arguments.items())
    later = "".join(f" {name}=(still open)" for name in call.open_arguments)
    asked = "; it needs a person's approval" if call.needs_approval else ""
    return f"{call.tool} {arguments}{later}{asked}"


def _written(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value).decode()
