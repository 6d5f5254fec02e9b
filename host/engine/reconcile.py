"""What became of a write whose answer was lost: look it up by its key before anything else.

Found: its id is adopted. Proved absent (the look-up closed the key for every attempt so far, and its provider still
remembers it): one resend under the same key, where the contract allows it. Neither: `unknown`, and a person; it is
never sent again by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from host.domain.control import ANSWERED, NEXT_ATTEMPT, Execution
from host.domain.outcome import CallError, Outcome, Rejected, Success, Unknown
from host.domain.state import NOT_COUNTED
from host.domain.step import Step
from host.domain.wait import Wait
from host.engine.again import read_again, retry_forbidden
from host.engine.parts import Parts
from host.engine.verify import judge
from shared_contracts.contract import Ambiguous, Tool
from shared_contracts.errors import Category

LOOK_SECONDS = 1.0  # before the second look; each next one waits twice as long


def looked_up(parts: Parts, step: Step, tool: Tool, outcome: Outcome, *, retry_allowed: bool) -> Wait | None:
    """Record a look-up and settle the call, as far as it tells. Expects control `tool_running`."""
    match outcome:
        case Success(result):
            step.close_attempt("success")
            record = result["record"]
            if result["found"] is not (record is not None):
                return _look_again(parts, step, "bad_output")
            if record is not None:
                return _found(parts, step, tool, record)
            return _not_found(parts, step, tool, result["closed_through"], retry_allowed=retry_allowed)
        case Rejected(error) | Unknown(error):
            step.close_attempt(error.outcome, error)
            return _look_again(parts, step, error.outcome)


def _found(parts: Parts, step: Step, tool: Tool, record: Mapping[str, Any]) -> Wait | None:
    if tool.pending(record):
        step.mark_call(Execution.RUNNING)
        return _look_again(parts, step, "in_progress")
    if tool.doubtful(record):
        return _unknown(step)
    if not tool.succeeded(record):
        step.close_effect("rejected")
        error = CallError("not_success", Category.BUSINESS, "the effect that was found is no success")
        step.fail_call(error, stamps=("delivered",))
        return step.review("create_rejected", "create_rejected")
    step.close_effect("succeeded", external_id=str(record[tool.external_id]))
    step.mark_call(Execution.SUCCEEDED, result=record)
    step.go(ANSWERED, "adopted", (str(record["evidence_ref"]),))
    return judge(step, tool, record)


def _not_found(parts: Parts, step: Step, tool: Tool, closed_through: int, *, retry_allowed: bool) -> Wait | None:
    effect = step.state.effect_in_hand()
    if effect is None or closed_through < effect.attempt:
        return _look_again(parts, step, "not_closed")
    if step.state.key_age(effect.idempotency_key) >= timedelta(days=tool.idempotency_retention_days):
        return _unknown(step)  # the provider may have forgotten it: nothing found proves nothing
    step.close_effect("absent")
    last = next(a for a in reversed(step.state.in_hand().attempts) if a.purpose == "call")
    reason = retry_forbidden(step, tool, str(last.outcome), retry_allowed=retry_allowed)
    may_resend = tool.ambiguous_failure is Ambiguous.RECONCILE_THEN_RESEND_ONCE or last.outcome in NOT_COUNTED
    if reason is None and may_resend:
        step.mark_call(Execution.REQUESTED)
        return step.go(NEXT_ATTEMPT, "proved_absent")
    error = CallError("proved_absent", Category.TRANSIENT, "nothing was executed, and no send is left")
    step.fail_call(error, stamps=("delivered",))
    return step.review("attempts_exhausted", "attempts_exhausted" if reason is None else reason)


def _look_again(parts: Parts, step: Step, code: str) -> Wait | None:
    """Wait for another look-up within its own bound; beyond it nobody knows."""
    wait = read_again(parts, step, code, step.workflow.limits.engine_reads_per_send, LOOK_SECONDS)
    return _unknown(step) if wait is None else wait


def _unknown(step: Step) -> None:
    step.mark_call(Execution.UNKNOWN)
    step.review("unknown_effect", "unknown_effect")
