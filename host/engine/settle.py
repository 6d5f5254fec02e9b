"""What an answer does to the call in hand: success, refusal or doubt, each by its class. Pure but for the step.

A success is what the contract calls one, not what arrived; a refusal of the transient class is tried again within
its bounds; a write without a trustworthy answer is in doubt and is looked up, never repeated by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from host.domain.control import ANSWERED, NEXT_ATTEMPT, OBSERVED, WAITED, Actor, Control, Execution
from host.domain.outcome import CallError
from host.domain.severe import Severe
from host.domain.step import Step
from host.domain.wait import APPROVAL, Wait
from host.domain.workflow import Seen, Transition, Version, unmet
from host.engine.again import retry
from host.engine.parts import Parts, new_jti
from shared_contracts.approval import Action
from shared_contracts.base import dump, parse
from shared_contracts.contract import Tool
from shared_contracts.errors import ERRORS, Category

EXPIRED = CallError("expired", Category.AUTHORIZATION, "nobody approved it in time")
OUTDATED = CallError("contract_changed", Category.CONTRACT, "the tool's contract has changed since the call was made")
CUT_OFF = CallError("cut_off", Category.TRANSIENT, "this host died while the request was under way")


def answered(step: Step, tool: Tool, result: Mapping[str, Any]) -> Wait | None:
    """Record a well-formed answer to the call, and open the read-back or the look that it asks for now."""
    step.close_attempt("success")
    if _of_another(step, tool, result) and (not tool.writes or tool.succeeded(result)):
        return _foreign_answer(step, tool, result)
    if tool.succeeded(result):
        return _succeeded(step, tool, result)
    if tool.pending(result) or tool.doubtful(result):
        step.mark_call(Execution.UNKNOWN if tool.doubtful(result) else Execution.RUNNING, stamps=("returned",))
        return step.open_attempt("reconciliation", tool.reconcile_with, new_jti())
    not_success = CallError("not_success", Category.BUSINESS, "the answer does not meet the contract's success")
    return _refused_write(step, not_success)


def _succeeded(step: Step, tool: Tool, result: Mapping[str, Any]) -> Wait | None:
    evidence, read_back = _evidence(result), tool.read_back
    if tool.writes:
        step.close_effect("succeeded", external_id=str(result[tool.external_id]), verified=read_back is None)
    if read_back is not None:
        step.mark_call(Execution.SUCCEEDED, result=result, stamps=("returned",))
        step.go(ANSWERED, "answered", evidence)
        if read_back.delay_seconds > 0:
            return Wait("verification", read_back.delay_seconds)
        return step.open_attempt("verification", read_back.tool, new_jti())
    step.mark_call(Execution.VERIFIED, result=result, stamps=("returned", "verified", "delivered"))
    step.go(ANSWERED, "answered", evidence)
    return conclude(step, tool, Seen(tool.name, result, None))


def _of_another(step: Step, tool: Tool, result: Mapping[str, Any]) -> bool:
    """Tell whether the answer is about another object than the one that was asked for."""
    name = tool.resource_argument
    return name in result and result[name] != step.state.in_hand().arguments.get(name)


def _foreign_answer(step: Step, tool: Tool, result: Mapping[str, Any]) -> None:
    """Facts about another's order decide no case; an effect on another's order has to be undone."""
    if tool.writes:
        name = tool.resource_argument
        asked = step.state.in_hand().arguments.get(name)
        wrong = {name: {"asked": asked, "answered": result[name], "read": None}}
        step.close_effect("succeeded", external_id=str(result[tool.external_id]), mismatch=wrong)
        return wrong_effect(step, tool, wrong)
    error = CallError("foreign_answer", Category.PROTOCOL, "the answer is about another object")
    step.fail_call(error)
    step.alert("foreign_answer", {"tool": tool.name})
    step.stop(Severe.FOREIGN_DATA, f"{tool.name} answered about another object")
    return step.review(*_review_of(error))


def wrong_effect(step: Step, tool: Tool, wrong: Mapping[str, Any]) -> None:
    """What was made is not what was asked for: record it, tell somebody, and have it undone."""
    call = step.state.in_hand()
    call_it_wrong(step, tool, wrong)
    if step.state.control.control is Control.TOOL_RUNNING:
        step.go(ANSWERED, "wrong_effect")
    row = step.workflow.transition(step.state.task.state, "wrong_effect", Actor.ENGINE)
    if step.state.evidence.undoing is not None:  # what was to undo it did something else
        return step.review("not_compensable", "wrong_effect")
    if row is not None and _unmet(step, tool, row, {}):  # compared by another contract: a person looks first
        return step.review("undecidable", "version_changed")
    step.business("wrong_effect", OBSERVED, "wrong_effect")
    return step.open_compensation(call.step, tool.compensate_within_hours, "engine", "wrong_effect")


def call_it_wrong(step: Step, tool: Tool, wrong: Mapping[str, Any]) -> None:
    """Record that the effect of the call in hand is a wrong one, and let nothing new begin."""
    differs = f"{tool.name} differs in {', '.join(sorted(wrong))}"
    step.mark_call(Execution.FAILED, error=CallError("wrong_effect", Category.BUSINESS, differs), stamps=("delivered",))
    step.alert("wrong_effect", wrong)
    step.stop(step.workflow.severe(tool.name, wrong), differs)


def conclude(step: Step, tool: Tool, seen: Seen) -> None:
    """Make the business move that the observation means, if the versions that it reads and its time allow it."""
    task, workflow = step.state.task, step.workflow
    finding = workflow.interpret(task.case, seen)
    if finding is None:
        return step.go(OBSERVED)
    step.found(finding)
    row = workflow.transition(task.state, finding.event, Actor.ENGINE)
    if row is not None and finding.versions is not None and _unmet(step, tool, row, finding.versions):
        return step.review("undecidable", "version_changed")
    if row is not None and row.within_seconds is not None and _active_here(step) > row.within_seconds:
        return step.review("limit", "limit")
    if finding.contested:
        step.instead = step.fork()
        step.contest()
    target = "" if row is None else row.target
    evidence = _evidence(seen.result)
    if target not in workflow.ends:
        return step.business(finding.event, OBSERVED, finding.reason, evidence=evidence)
    if Control.COMPLETED not in workflow.ends[target]:
        return step.review(finding.event, finding.reason, evidence)
    step.go(OBSERVED)
    return step.end(finding.event, finding.reason, Control.COMPLETED, evidence)


def _unmet(step: Step, tool: Tool, row: Transition, versions: Mapping[Version, str]) -> bool:
    """Compare what the answer told with the workflow's own; the contract is the one that the call was made under."""
    held = step.state.evidence.versions
    if Version.CONTRACT not in row.reads:
        return unmet(row, versions, held) != ()
    made_under = {Version.CONTRACT: step.state.in_hand().contract_version}
    return unmet(row, {**versions, **made_under}, {**held, Version.CONTRACT: tool.version}) != ()


def _active_here(step: Step) -> float:
    """Seconds at work since the business state was entered."""
    return (step.active_ms - step.state.control.entered_active_ms) / 1000


def rejected(parts: Parts, step: Step, tool: Tool, error: CallError, *, retry_allowed: bool) -> Wait | None:
    """Record a refusal: nothing happened. By class: again, an observation, or a person."""
    step.close_attempt(error.outcome, error)
    if error.category is Category.TRANSIENT:
        return retry(parts, step, tool, error, retry_allowed=retry_allowed)
    if error.category is Category.AUTHORIZATION and error.code.startswith("token_for_other"):
        step.alert(error.code, {"tool": tool.name})
    action = _changed(step, error)
    if action is not None:
        step.close_effect("rejected")
        step.go(NEXT_ATTEMPT, error.code)
        return ask_again(step, action)
    if tool.writes:
        return _refused_write(step, error)
    step.fail_call(error)
    if error.category is Category.BUSINESS:
        return conclude(step, tool, Seen(tool.name, None, error.code))
    return step.review(*_review_of(error))


def expire(step: Step) -> None:
    """Nobody decided in time: the case ends by the clock."""
    step.mark_call(Execution.FAILED, error=EXPIRED)
    step.end("expired", "expired", Control.STOPPED, actor=Actor.TIMER)


def approval_expired(step: Step) -> None:
    """Nobody acted in time: the case ends, and nothing may come of it ever after."""
    step.mark_call(Execution.FAILED, error=EXPIRED)
    step.end("approval_expired", "approval_expired", Control.STOPPED)


def ask_again(step: Step, action: Action) -> Wait:
    """Void an approval: the same call waits for another one, about the action as it is now."""
    step.mark_call(Execution.WAITING_FOR_APPROVAL)
    step.business("approval_void", WAITED, "approval_void")
    step.ask_approval(action)
    return APPROVAL


def _changed(step: Step, error: CallError) -> Action | None:
    """Read what the tool server says the approved action would be today; it has executed nothing."""
    asked, now = step.state.evidence.asked, error.details.get("action")
    again = step.workflow.transition(step.state.task.state, "approval_void", Actor.ENGINE)
    if error.code != "approval_refused" or asked is None or again is None or not isinstance(now, Mapping):
        return None
    try:
        action = parse(Action, {**dump(asked.action), **now})
    except ValidationError:
        return None
    moved = {name: getattr(asked.action, name) for name in _MAY_MOVE}
    return action if action.model_copy(update=moved) == asked.action else None


# What the shop may have changed since an approval was asked for; the call itself is the stored one.
_MAY_MOVE = ("amount", "destination_ref", "order_version", "policy_version")


def _refused_write(step: Step, error: CallError) -> None:
    step.close_effect("rejected")
    step.fail_call(error)
    if error.category is Category.BUSINESS:
        step.review("create_rejected", error.code if error.code in ERRORS else "create_rejected")
    else:
        step.review(*_review_of(error))


def _review_of(error: CallError) -> tuple[str, str]:
    match error.category:
        case Category.AUTHORIZATION:
            return "denied", error.code
        case Category.CONTRACT:
            return "undecidable", "contract_broken"
        case Category.PROTOCOL:
            return "attempts_exhausted", "protocol"
        case Category.BUSINESS | Category.TRANSIENT | Category.UNKNOWN_EFFECT:
            return "attempts_exhausted", error.code


def in_doubt(step: Step, tool: Tool, error: CallError) -> None:
    """Record `unknown` first; the look-up that follows is committed with it."""
    step.close_attempt(error.outcome, error)
    if error.cut_off:
        step.recovered()
    step.mark_call(Execution.UNKNOWN, error=error)
    if tool.reconcile_with:
        step.open_attempt("reconciliation", tool.reconcile_with, new_jti())
    else:
        step.review("unknown_effect", "unknown_effect")


def _evidence(result: Mapping[str, Any] | None) -> tuple[str, ...]:
    reference = None if result is None else result.get("evidence_ref")
    return () if reference is None else (str(reference),)
