"""Is it true? Read the effect back and compare it with what was asked for and what was answered.

When it is looked for, and how often, is the contract's own: an effect may be seen later than it was answered.
A read that finds another order, line or amount is a wrong effect; one that cannot be made leaves it unverified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from host.domain.control import Execution
from host.domain.outcome import Outcome, Rejected, Success, Unknown
from host.domain.state import CallRecord
from host.domain.step import Step
from host.domain.wait import Wait
from host.domain.workflow import Seen
from host.engine.again import read_again
from host.engine.parts import Parts
from host.engine.settle import conclude, wrong_effect
from shared_contracts.base import dump
from shared_contracts.contract import Tool


def read_arguments(read: Tool, call: CallRecord) -> dict[str, Any]:
    """Fill the reading tool's arguments from the call's answer; what was asked for wins over what was answered."""
    known = {**(call.result if call.result is not None else {}), **call.arguments}
    return {name: known[name] for name in read.arguments.model_fields if name in known}


def _record_in(read: Tool, result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Give what was read: a look-up may have found nothing."""
    return result["record"] if read.looks_up else result


def differences(tool: Tool, call: CallRecord, record: Mapping[str, Any]) -> dict[str, Any]:
    """Name each field in which request, answer and read do not agree; empty means verified."""
    if tool.read_back is None:
        return {}
    answer = call.result if call.result is not None else {}
    names = dict.fromkeys((tool.external_id, *tool.read_back.matches))
    return {
        name: {"asked": call.arguments.get(name), "answered": answer.get(name), "read": record.get(name)}
        for name in names
        if not _agrees(answer.get(name), record.get(name))
        or (name in call.arguments and not _agrees(call.arguments[name], record.get(name)))
    }


def _agrees(expected: Any, actual: Any) -> bool:
    """Hold every member that was expected; lists agree as sets of equal size, since order is no fact."""
    match expected, actual:
        case Mapping(), Mapping():
            return all(name in actual and _agrees(item, actual[name]) for name, item in expected.items())
        case list() | tuple(), list() | tuple():
            rest = list(actual)
            for item in expected:
                found = next((one for one in rest if _agrees(item, one)), None)
                if found is None:
                    return False
                rest.remove(found)
            return not rest
        case _:
            return bool(expected == actual and type(expected) is type(actual))


def verified(parts: Parts, step: Step, tool: Tool, read: Tool, outcome: Outcome) -> Wait | None:
    """Record the read-back of a write that succeeded."""
    match outcome:
        case Success(result):
            step.close_attempt("success")
            record = _record_in(read, result)
            if record is None or tool.pending(record):
                return _again(parts, step, tool, "not_visible")
            if not tool.succeeded(record):  # withdrawn, refused or in doubt since it was answered
                return step.review("unknown_effect", "unverified_effect")
            return judge(step, tool, record)
        case Rejected(error) | Unknown(error):
            step.close_attempt(error.outcome, error)
            return _again(parts, step, tool, error.outcome)


def judge(step: Step, tool: Tool, record: Mapping[str, Any]) -> None:
    """Compare, and move: verified, or a wrong effect that has to be undone. Expects control `observing`."""
    call = step.state.in_hand()
    wrong = differences(tool, call, record) | unapproved(step, tool, record)
    if not wrong:
        step.close_effect("succeeded", verified=True)
        step.mark_call(Execution.VERIFIED, stamps=("verified", "delivered"))
        return conclude(step, tool, Seen(tool.name, call.result, None))
    step.close_effect("succeeded", mismatch=wrong)
    return wrong_effect(step, tool, wrong)


def unapproved(step: Step, tool: Tool, record: Mapping[str, Any]) -> dict[str, Any]:
    """Hold an effect against the yes that it was made with; one that needs none has to look it, too."""
    if tool.approval_required_when == "":
        return {}
    asked = step.state.evidence.asked
    said_yes = asked is not None and asked.decided is not None and asked.decided[1] == "approve"
    approved = asked.action.amount if asked is not None and said_yes and asked.action.tool == tool.name else None
    if not step.workflow.overstepped(step.state.evidence.seen(), record, approved):
        return {}
    return {"approval": {"asked": None if approved is None else dump(approved), "answered": None, "read": None}}


def _again(parts: Parts, step: Step, tool: Tool, code: str) -> Wait | None:
    """Wait for another read-back within the contract's own bound; beyond it the effect stays unverified."""
    own = tool.read_back
    if own is None:
        raise AssertionError("only a contract with a read-back is read back")
    wait = read_again(parts, step, code, own.looks, own.poll_seconds)
    return step.review("unknown_effect", "unverified_effect") if wait is None else wait
