"""From `planning` to a dispatched call, a wait or an end: the planner proposes, the rules decide.

Order, each with a failure of its own: limits · tools for the state · the planner · exactly one proposal · schema ·
authorization · prior effect · intent. Output that is no allowed proposal is recorded, told to the planner and
counted; reaching for another's object goes to a person at once.
"""

from __future__ import annotations

from typing import Any

import structlog

from host.domain.authorization import ALERTED, TOLD_TO_PLANNER, Decision, Verdict
from host.domain.control import AUTHORIZED, NO_PROPOSAL, PROPOSED, REFUSED, Actor, Execution
from host.domain.proposals import (
    Final,
    NeedsHuman,
    PlannerFault,
    PlannerView,
    Reply,
    ToolCall,
    ToolDefinition,
    Usage,
)
from host.domain.reasons import FROM_PLANNER, HANDOVER
from host.domain.state import CallRecord
from host.domain.step import Step
from host.domain.uttered import masked
from host.domain.wait import APPROVAL, Wait, halted
from host.domain.workflow import Version, told, unmet
from host.engine.again import stop_at_seventh
from host.engine.approval import action_of, void
from host.engine.compensate import await_tool, halt
from host.engine.decide import Proposed, authorise, offered, turns_left
from host.engine.finish import finish
from host.engine.parts import Parts, new_jti
from host.engine.settle import OUTDATED, approval_expired, ask_again
from host.engine.wellformed import fault_of, fault_of_arguments
from host.planner.context import definition, taken, view
from shared_contracts.approval import Void
from shared_contracts.contract import Tool

log = structlog.get_logger()
_WORTHLESS = frozenset({Void.MALFORMED, Void.UNKNOWN_KEY, Void.BAD_SIGNATURE, Void.OTHER_KEY})  # though it was recorded
_NO_DECISION = PlannerFault("not_a_decision", "Answer with one tool call, a final answer or a hand-over.")
_FAILED = PlannerFault("planner_failed", "The planner broke down; nothing was proposed.")


async def ask_planner(parts: Parts, step: Step) -> Wait | None:
    """Make one turn with the planner and move the step by what it says."""
    if not turns_left(parts, step):
        return step.review("limit", "limit")
    if _nothing_found(step):
        return step.review("planner_exhausted", "evidence_insufficient")
    names = offered(parts, step)
    if not names:
        return _nothing_offered(parts, step)
    match await _turn(parts, step, names):
        case ToolCall() as proposal:
            return _judge(parts, step, proposal)
        case NeedsHuman(reason):
            return step.review("planner_needs_human", reason if reason in FROM_PLANNER else "planner_needs_human")
        case Final() as final:
            fault = finish(step, final)
            return None if fault is None else _refuse(step, fault)
        case PlannerFault() as fault:
            return _refuse(step, fault)
        case _:
            return _refuse(step, _NO_DECISION)


def _nothing_found(step: Step) -> bool:
    """Tell whether the last rounds brought no evidence: a planner that guesses on is not asked again."""
    last = step.state.evidence.seen()[-step.workflow.limits.empty_in_a_row :]
    return len(last) == step.workflow.limits.empty_in_a_row and all(one.result is None for one in last)


async def _turn(parts: Parts, step: Step, names: frozenset[str]) -> Any:
    """Give what the planner says, and count what it used; without that, it has said nothing."""
    state = step.state
    tools = tuple(definition(parts.registry[name]) for name in sorted(names))
    shown = parts.offer(names)
    task = state.task
    seen = view(task.kind, task.release, task.state, task.case, state.evidence.calls, state.control.refusals)
    said, raw = await _said(parts, step, seen, tools)
    step.turn(shown, masked(said, raw, parts.registry), kept=shown.sha256 in parts.commits.kept)
    return said


async def _said(parts: Parts, step: Step, seen: PlannerView, tools: tuple[ToolDefinition, ...]) -> tuple[Any, Any]:
    """Give what the planner says, and what that was read out of."""
    try:
        reply: Any = await parts.planner.decide(seen, tools)
    except Exception as error:  # noqa: BLE001 - a planner is foreign code: whatever it raises is output that is none
        log.warning("planner_failed", workflow_id=str(step.state.task.workflow_id), error=type(error).__name__)
        return _FAILED, None
    if not isinstance(reply, Reply) or not _counted(reply.usage):
        return None, None
    step.spend(reply.usage)
    return reply.said, reply.raw


def _counted(usage: Any) -> bool:
    """Tell whether a planner said in whole numbers what it used; a negative one would give budget back."""
    return isinstance(usage, Usage) and all(type(n) is int and n >= 0 for n in (usage.tokens, usage.cost_micros))


def _nothing_offered(parts: Parts, step: Step) -> Wait | None:
    """Say which factor left nothing: a stop is waited for, anything else needs a person."""
    state = step.state
    wanted = step.workflow.tools[state.task.state][0]
    bound = step.workflow.bindings(state.task.case, state.evidence.seen())
    tool = parts.registry.get(wanted)
    names = () if tool is None else tool.arguments.model_fields
    arguments = {name: bound[name] for name in names if name in bound}
    _, decision = authorise(parts, step, Proposed(wanted, arguments, None))
    if decision.verdict is Verdict.HALT:
        return halted(reads=decision.reason == "reads_stopped")
    return _denied(parts, step, decision.reason if decision.reason in HANDOVER else "no_tool_left")


def _judge(parts: Parts, step: Step, offered_call: ToolCall) -> Wait | None:
    proposal = taken(offered_call)
    if proposal is None:
        return _refuse(step, _NO_DECISION)
    tool = parts.registry.get(proposal.name)
    if tool is None:
        return _refuse(step, _not_allowed(step, "unknown_tool"), proposal)
    fault = fault_of(step, tool, proposal)
    if fault is not None:
        return _refuse(step, fault, proposal)
    number, decision = authorise(parts, step, Proposed(proposal.name, proposal.arguments, None))
    if decision.verdict is Verdict.DENY and decision.reason in TOLD_TO_PLANNER:
        return _refuse(step, _not_allowed(step, decision.reason), proposal)
    return _take(parts, step, tool, proposal, number, decision)


def _take(parts: Parts, step: Step, tool: Tool, proposal: ToolCall, number: int, decision: Decision) -> Wait | None:
    match decision.verdict:
        case Verdict.DENY:
            step.refuse(_not_allowed(step, decision.reason), proposal)
            step.go(PROPOSED, decision.reason)
            if decision.reason in ALERTED:
                step.alert(decision.reason, {"tool": tool.name, "call_id": proposal.call_id})
            return _denied(parts, step, decision.reason)
        case Verdict.REQUIRE_APPROVAL if _versions_moved(parts, step):
            return step.review("undecidable", "version_changed")
        case Verdict.REQUIRE_APPROVAL:
            return _ask_approval(step, tool, proposal, decision.reason)
        case Verdict.ALLOW | Verdict.HALT:
            step.open_call(proposal, tool, Execution.REQUESTED)
            step.go(PROPOSED)
            if decision.verdict is Verdict.HALT:
                return halted(reads=decision.reason == "reads_stopped")
            return dispatch(step, tool, number, None)


def _ask_approval(step: Step, tool: Tool, proposal: ToolCall, reason: str) -> Wait | None:
    """Store the call as it was proposed; what runs, if somebody says yes, is this one."""
    step.open_call(proposal, tool, Execution.WAITING_FOR_APPROVAL)
    action = action_of(step.workflow, step.state, tool, step.state.in_hand())
    step.business("approval_required", PROPOSED, reason)
    if action is None:
        return step.review("undecidable", "evidence_insufficient")
    step.ask_approval(action)
    return APPROVAL


def _versions_moved(parts: Parts, step: Step) -> bool:
    """Tell whether the request for an approval would rest on other versions than the case."""
    task, evidence, workflow = step.state.task, step.state.evidence, step.workflow
    row = workflow.transition(task.state, "approval_required", Actor.ENGINE)
    known = {**told(workflow, task.case, evidence.seen()), Version.AUTHZ: parts.authorization.version}
    return row is not None and unmet(row, known, evidence.versions) != ()


def dispatch(step: Step, tool: Tool, decision_n: int, approved_version: int | None) -> None:
    """Move an allowed call to running; the commit that follows writes the intent before anything leaves."""
    if tool.writes and step.state.effect_of(tool.name) is not None:
        return step.review("unknown_effect", "unverified_effect")  # it exists: a person looks, nothing is sent
    step.instead = step.fork()
    step.go(AUTHORIZED)
    return step.dispatch(tool, new_jti(), decision_n, approved_version)


def redispatch(parts: Parts, step: Step) -> Wait | None:
    """Authorise the stored call again, as the world is now, and send it; the planner is not asked."""
    call = step.state.in_hand()
    tool = parts.registry.get(call.tool)
    if tool is None:
        _, decision = authorise(parts, step, Proposed(call.tool, call.arguments, call.step))
        return _denied(parts, step, "draft_only" if decision.reason == "draft_only" else "no_tool_left")
    if _outdated(call, tool):
        step.mark_call(Execution.FAILED, error=OUTDATED)
        return step.review("undecidable", "version_changed")
    proposed, undoing = Proposed(call.tool, call.arguments, call.step), step.state.evidence.undoing
    number, decision = authorise(parts, step, proposed)
    match decision.verdict:
        case Verdict.ALLOW:
            asked = step.state.evidence.asked  # it may be of an earlier call: a notice needs no approval
            of_this = asked is not None and asked.action.tool == tool.name
            return dispatch(step, tool, number, asked.version if asked is not None and of_this else None)
        case Verdict.HALT:
            return halt(step, reads=decision.reason == "reads_stopped")
        case Verdict.REQUIRE_APPROVAL:
            return _unapproved(parts, step, tool, call)
        case Verdict.DENY if decision.reason == "tool_unavailable" and undoing is not None:
            return await_tool(undoing)
        case Verdict.DENY:
            return _denied(parts, step, decision.reason)


def _unapproved(parts: Parts, step: Step, tool: Tool, call: CallRecord) -> Wait | None:
    """An approval that has run out ends the case; one that is worth nothing is asked for again."""
    why = void(parts, step.state, tool, call)
    if why in _WORTHLESS:
        log.error("approval_void", workflow_id=str(step.state.task.workflow_id), reason=why)
    if why is Void.EXPIRED and step.workflow.transition(step.state.task.state, "approval_expired", Actor.ENGINE):
        return approval_expired(step)
    asked = step.state.evidence.asked
    if asked is None or not step.workflow.transition(step.state.task.state, "approval_void", Actor.ENGINE):
        return _denied(parts, step, "approval_required")
    return ask_again(step, asked.action)


def _outdated(call: CallRecord, tool: Tool) -> bool:
    """A stored write is sent only under the contract that it was judged by; a read, where it fits today's as well."""
    changed = call.contract_version != tool.version
    return (changed and tool.writes) or fault_of_arguments(tool, call.arguments) is not None


def _not_allowed(step: Step, reason: str) -> PlannerFault:
    allowed = ", ".join(step.workflow.tools.get(step.state.task.state, ())) or "none"
    return PlannerFault(reason, f"{reason}: the tools of this state are: {allowed}.")


def _refuse(step: Step, fault: PlannerFault, proposal: ToolCall | None = None) -> None:
    """Record, tell and count; too many of them end the planner's part."""
    step.refuse(fault, proposal)
    code = step.state.control.refusals[-1][0]
    for edge in (NO_PROPOSAL,) if proposal is None else (PROPOSED, REFUSED):
        step.go(edge, code)
    limits, control = step.workflow.limits, step.state.control
    if control.refusals_in_a_row >= limits.refusals_in_a_row or len(control.refusals) >= limits.refusals:
        step.review("planner_exhausted", "planner_exhausted")


def _denied(parts: Parts, step: Step, reason: str) -> None:
    if reason == "limit":
        stop_at_seventh(parts, step)
    step.review("limit" if reason == "limit" else "denied", reason)
