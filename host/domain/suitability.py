"""Whether a kind may act at all: five conditions over its table, its tools' contracts and who may approve. Pure.

Invariant: where one of them fails the kind reads and drafts, and every update of it is a person's to make; nothing
that a planner, a customer or a tool says has a part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from host.domain.control import Actor, Control
from host.domain.principals import AuthorizationSet
from host.domain.workflow import RESUME, Workflow, states
from shared_contracts.contract import Tool

Registry = Mapping[str, Tool]


class Condition(StrEnum):
    """What can be wrong with a kind."""

    STATES_UNDEFINED = "states_undefined"
    UPDATE_NOT_RECOVERABLE = "update_not_recoverable"
    APPROVAL_NOT_KEPT = "approval_not_kept"
    ONE_CREDENTIAL = "one_credential"
    NO_WAY_TO_WAIT = "no_way_to_wait"


MEANINGS: dict[Condition, str] = {
    Condition.STATES_UNDEFINED: "What counts as done, under way or over, or who answers for it, is not defined.",
    Condition.UPDATE_NOT_RECOVERABLE: "An update lacks its idempotency key, its look-up, or what takes it back.",
    Condition.APPROVAL_NOT_KEPT: "A person's approval cannot be kept as an authenticated event.",
    Condition.ONE_CREDENTIAL: "One strong credential serves what reads and what updates.",
    Condition.NO_WAY_TO_WAIT: "Nothing waits out an outage, or no person is there to go on by hand.",
}


@dataclass(frozen=True, slots=True)
class Failing:
    """A condition that fails; each sentence of `why` names one thing that is missing, and of what."""

    condition: Condition
    why: tuple[str, ...]


class _Kind(NamedTuple):
    workflow: Workflow
    registry: Registry
    authorization: AuthorizationSet


def failing(workflow: Workflow, registry: Registry, authorization: AuthorizationSet) -> tuple[Failing, ...]:
    """Name the conditions that fail, in their order; a kind that none fails for may act by itself."""
    kind = _Kind(workflow, registry, authorization)
    found = ((condition, tuple(check(kind))) for condition, check in _CHECKS.items())
    return tuple(Failing(condition, why) for condition, why in found if why)


def is_update(workflow: Workflow, registry: Registry, name: str) -> bool:
    """Tell whether a tool changes anything; one that has no contract does where the kind counts it as an effect."""
    tool = registry.get(name)
    return name in workflow.effects if tool is None else tool.writes


def updates(workflow: Workflow, registry: Registry) -> tuple[str, ...]:
    """Name the kind's updates: what its states offer and what its success is made of."""
    return tuple(name for name in _tools(workflow) if is_update(workflow, registry, name))


def _tools(workflow: Workflow) -> tuple[str, ...]:
    offered = (name for names in workflow.tools.values() for name in names)
    return tuple(dict.fromkeys((*offered, *workflow.effects)))


def _states(kind: _Kind) -> Iterator[str]:
    workflow, known = kind.workflow, states(kind.workflow)
    yield from _success(workflow)
    if not set(known) - set(workflow.ends) - {workflow.initial}:
        yield "No state lies between the first one and the ends."
    for state in known:
        if not workflow.owners.get(state, "").strip():
            yield f"{state} has no owner."
        if state not in workflow.ends and not any(state in row.source for row in workflow.transitions):
            yield f"{state} is no end, and no move leads out of it."


def _success(workflow: Workflow) -> Iterator[str]:
    if not workflow.ends:
        yield "No state ends a case."
    elif workflow.success == "":
        yield "No state means that a case is done."
    elif Control.COMPLETED not in workflow.ends.get(workflow.success, ()):
        yield f"{workflow.success} means done, and is no end that completes a case."
    elif workflow.success not in _reached(workflow):
        yield f"No moves lead from {workflow.initial} to {workflow.success}."


def _reached(workflow: Workflow) -> set[str]:
    """Follow the moves from the first state to the ends; what a person takes up again after an end is no way there."""
    reached, last = {workflow.initial}, set[str]()
    while reached != last:
        last = set(reached)
        left = last - set(workflow.ends)
        reached |= {row.target for row in workflow.transitions if left & set(row.source) and row.target != RESUME}
    return reached


def _recoverable(kind: _Kind) -> Iterator[str]:
    for name in updates(kind.workflow, kind.registry):
        tool = kind.registry.get(name)
        if tool is None:
            yield f"{name} has no contract."
            continue
        if not tool.idempotency_key:
            yield f"{name} has no idempotency key."
        look_up = kind.registry.get(tool.reconcile_with)
        if look_up is None or not look_up.looks_up or look_up.writes:
            yield f"{name} has no look-up that tells what a lost answer was."
        undo = kind.registry.get(tool.compensate_with)
        if undo is None or not undo.writes or tool.compensate_within_hours <= 0:
            yield f"{name} can be neither cancelled nor compensated."


def _approval(kind: _Kind) -> Iterator[str]:
    workflow = kind.workflow
    known = (kind.registry.get(name) for name in _tools(workflow))
    asking = [tool.name for tool in known if tool is not None and tool.approval_required_when != ""]
    if not asking:
        return
    waiting = workflow.approval_state
    if waiting is None or waiting not in states(workflow):
        yield f"{asking[0]} may need an approval, and no state waits for one."
    elif workflow.transition(waiting, "approved", Actor.APPROVER) is None:
        yield f"No move out of {waiting} is an approver's."
    if workflow.approvable is None:
        yield f"Nothing says what a person would approve of {asking[0]}."
    if not kind.authorization.approvers:
        yield f"The authorization set {kind.authorization.version} has no approver."


def _credentials(kind: _Kind) -> Iterator[str]:
    """Include what the engine reads by itself about an update: it travels under a credential of its own too."""
    workflow, registry = kind.workflow, kind.registry
    writing = [registry[name] for name in updates(workflow, registry) if name in registry]
    about = (name for tool in writing for name in (tool.reconcile_with, tool.verify.tool if tool.verify else ""))
    used = [registry[name] for name in dict.fromkeys((*_tools(workflow), *about)) if name in registry]
    if not writing:
        return
    if len({tool.family for tool in used}) == 1:
        yield f"Every tool of it is of one family, {used[0].family}, and runs under that family's one credential."
    scopes = {tool.scope for tool in writing}
    for tool in used:
        if not tool.writes and tool.scope in scopes:
            yield f"{tool.name} only reads, under {tool.scope.value}, which also updates."


def _waiting(kind: _Kind) -> Iterator[str]:
    workflow = kind.workflow
    if workflow.retry_state is None:
        yield "No state waits until something can be tried again."
    elif workflow.transition(workflow.retry_state, "due", Actor.TIMER) is None:
        yield f"Nothing ends the wait in {workflow.retry_state}."
    handed_over = [state for state, ends in workflow.ends.items() if Control.NEEDS_HUMAN in ends]
    if not handed_over:
        yield "No end hands a case over to a person."
    for state in handed_over:
        if not workflow.owners.get(state, "").strip():
            yield f"Nobody owns {state}, where cases are handed over."


_CHECKS: dict[Condition, Callable[[_Kind], Iterator[str]]] = {
    Condition.STATES_UNDEFINED: _states,
    Condition.UPDATE_NOT_RECOVERABLE: _recoverable,
    Condition.APPROVAL_NOT_KEPT: _approval,
    Condition.ONE_CREDENTIAL: _credentials,
    Condition.NO_WAY_TO_WAIT: _waiting,
}
