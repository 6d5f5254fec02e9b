"""What a person's look by its key says of an effect of a case that was handed over, and what is written down of it.

Nothing is sent again by it, and what may have been forgotten is not called absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any

from host.domain.control import Execution
from host.domain.outcome import CallError, Outcome, Success
from host.domain.state import Effect
from host.domain.step import Step
from host.engine.settle import call_it_wrong
from host.engine.verify import differences, unapproved
from shared_contracts.contract import Tool
from shared_contracts.errors import Category

ABSENT = CallError("proved_absent", Category.TRANSIENT, "nothing was executed, and no send is left")
NOT_SUCCESS = CallError("not_success", Category.BUSINESS, "the effect that was found is no success")


class Known(StrEnum):
    """What a look by its key says of an effect."""

    VERIFIED = "verified"
    WRONG = "wrong"
    REJECTED = "rejected"
    ABSENT = "absent"
    UNKNOWN = "unknown"


def looked(step: Step, tool: Tool, outcome: Outcome) -> Known:
    """Write down what the look says of the effect in hand."""
    effect = step.state.effect_in_hand()
    if not isinstance(outcome, Success):
        step.close_attempt(outcome.error.outcome, outcome.error)
        return Known.UNKNOWN
    step.close_attempt("success")
    record = outcome.result["record"]
    if effect is None or outcome.result["found"] is not (record is not None):
        return Known.UNKNOWN
    if record is None:
        return _not_found(step, tool, effect, outcome.result["closed_through"])
    if tool.succeeded(record):
        return _found(step, tool, effect, record)
    if tool.pending(record) or tool.doubtful(record) or effect.outcome is not None:
        return Known.UNKNOWN
    step.close_effect("rejected")
    step.mark_call(Execution.FAILED, error=NOT_SUCCESS)
    return Known.REJECTED


def _not_found(step: Step, tool: Tool, effect: Effect, closed_through: int) -> Known:
    old = step.state.key_age(effect.idempotency_key) >= timedelta(days=tool.idempotency_retention_days)
    if effect.outcome is not None or closed_through < effect.attempt or old:
        return Known.UNKNOWN  # what was made and is not found, or may have been forgotten
    step.close_effect("absent")
    step.mark_call(Execution.FAILED, error=ABSENT)
    return Known.ABSENT


def _found(step: Step, tool: Tool, effect: Effect, record: Mapping[str, Any]) -> Known:
    if step.state.in_hand().result is None:
        step.mark_call(Execution.SUCCEEDED, result=record)
    wrong = differences(tool, step.state.in_hand(), record) | unapproved(step, tool, record)
    external_id = str(record[tool.external_id])
    if wrong:
        step.close_effect("succeeded", external_id=external_id, mismatch=wrong)
        call_it_wrong(step, tool, wrong)
        return Known.WRONG
    if not effect.verified:
        step.close_effect("succeeded", external_id=external_id, verified=True)
        step.mark_call(Execution.VERIFIED, stamps=("verified",))
    return Known.VERIFIED
