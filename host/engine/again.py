"""Whether and when a request is made once more: every bound on sends and on the engine's own reads, in one place.

A send or a read that never left has the bound of recoveries; every other one counts against its own.
"""

from __future__ import annotations

from host.domain.control import NEXT_ATTEMPT, Execution
from host.domain.limits import BACKOFF_CAP_SECONDS, BACKOFF_JITTER_SECONDS, backoff_seconds
from host.domain.outcome import CallError
from host.domain.severe import Severe
from host.domain.state import NOT_COUNTED
from host.domain.step import Step
from host.domain.wait import Wait
from host.engine.parts import Parts
from shared_contracts.contract import Ambiguous, Tool


def sends_max(tool: Tool) -> int:
    """Give the total of sends: the contract's attempts, and the one resend of a write proved absent."""
    resend = 2 if tool.ambiguous_failure is Ambiguous.RECONCILE_THEN_RESEND_ONCE else 1
    return max(tool.attempts_max, resend)


def retry(parts: Parts, step: Step, tool: Tool, error: CallError, *, retry_allowed: bool) -> Wait | None:
    """Wait and try again, where every bound allows it."""
    if tool.writes:
        step.close_effect("absent")
    if error.cut_off:
        step.recovered()
    reason = retry_forbidden(step, tool, error.outcome, retry_allowed=retry_allowed)
    if reason is not None:
        if reason == "limit":
            stop_at_seventh(parts, step)
        step.fail_call(error)
        return step.review("limit" if reason == "limit" else "attempts_exhausted", reason)
    step.mark_call(Execution.REQUESTED, error=error)
    if step.workflow.retry_state is None:
        step.go(NEXT_ATTEMPT, error.code)
    else:
        step.business("transient", NEXT_ATTEMPT, error.code)
    own = backoff_seconds(step.state.in_hand().sends() - 1, parts.jitter.random())
    wished = own if error.retry_after_seconds is None else max(own, error.retry_after_seconds)
    # the longest that the table allows a wait
    return Wait("retry", min(wished, BACKOFF_CAP_SECONDS + BACKOFF_JITTER_SECONDS))


def stop_at_seventh(parts: Parts, step: Step) -> None:
    """A case that needs more calls than any of its kind should stops the others too, until somebody has looked."""
    limits, undoing = step.workflow.limits, step.state.evidence.undoing
    stops = parts.call_limit_stops == "system" and limits.calls_stop_others and undoing is None
    if stops and step.state.calls_made() >= limits.calls:
        step.stop(Severe.CALL_LIMIT, f"the case needs more than {limits.calls} calls")


def retry_forbidden(step: Step, tool: Tool, code: str, *, retry_allowed: bool) -> str | None:
    """Name the bound that forbids another send, or None. A send that never left has the bound of recoveries."""
    limits = step.workflow.limits
    if code in NOT_COUNTED:
        if code == "unreachable":  # a crash was counted when it was found
            step.recovered()
        if step.state.control.recoveries > limits.recoveries:
            return "recoveries_exhausted"
        return None if retry_allowed or code != "unreachable" else "retry_suspended"
    if step.state.in_hand().counted() >= sends_max(tool):
        return "attempts_exhausted"
    if not step.state.calls_left(tool.name, limits):
        return "limit"
    return None if retry_allowed else "retry_suspended"


def read_again(parts: Parts, step: Step, code: str, looks: int, poll_seconds: float) -> Wait | None:
    """Wait for another read of the purpose of the last one; None where its bound is spent. `code` is what it gave."""
    call, limits = step.state.in_hand(), step.workflow.limits
    purpose = call.attempts[-1].purpose
    if code in NOT_COUNTED:
        step.recovered()
    spent = call.engine_reads(purpose) >= min(looks, limits.engine_reads_per_send)
    if spent or step.state.control.recoveries > limits.recoveries:
        return None
    tries = sum(attempt.purpose == purpose for attempt in call.attempts)
    return Wait(purpose, backoff_seconds(tries - 1, parts.jitter.random(), poll_seconds))
