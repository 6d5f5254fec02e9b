"""The full list of calls, and of proposals that came to nothing, without a word that a planner chose."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from host.domain.limits import Limits
from host.domain.state import NOT_COUNTED
from shared_contracts.base import dump
from shared_contracts.record import Attempt, Call, CallError, EngineRead, Record
from shared_contracts.tools import TOOLS

Row = Mapping[str, Any]
# Only what programs make up: our own ids, UUIDs, and a vendor's, which are long and have no separator for words to
# stand between. The turn in front of it is ours.
_IDENTIFIER = re.compile(
    r"call_[0-9a-f]{16}_[0-9]{1,6}|undo_[0-9]{1,6}_[0-9]{1,6}|t[0-9]{1,6}"
    r"|(?:t[0-9]{1,6}:)?(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?:call|toolu|fc)_(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,64})"
)
_CODE = re.compile(r"[a-z][a-z0-9_]{0,79}")


def identifier(text: str) -> str:
    """Give an id that a planner chose where only a program makes up such a one, otherwise its digest."""
    if _IDENTIFIER.fullmatch(text) is not None:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def code(text: str) -> str:
    """Give a code; what is none is not repeated."""
    return text if _CODE.fullmatch(text) is not None else "unknown_code"


def calls_of(record: Record, row: Row) -> list[dict[str, Any]]:
    """List every call with every request that left for it."""
    undoes = {f"{call['workflow_id']}.{call['step']}": call["undoes"] for call in row["calls"]}
    return [_call(call, undoes[call.step_id], str(record.workflow_id)) for call in record.calls]


def _call(call: Call, undoes: int | None, workflow_id: str) -> dict[str, Any]:
    attempts = [{"n": one.n, **_request(one)} for one in call.attempts]
    return {
        **{name: getattr(call, name) for name in ("step_id", "tool", "contract_version", "execution_state")},
        "call_id": identifier(call.call_id),
        "undoes": None if undoes is None else f"{workflow_id}.{undoes}",
        "error": _fault(call.error),
        "attempts": attempts,
        "retry_times": [one["at"] for one in attempts[1:]],
        "engine_reads": [{"purpose": one.purpose, "tool": one.tool, **_request(one)} for one in call.engine_reads],
        "times": dump(call.times),
    }


def _request(one: Attempt | EngineRead) -> dict[str, Any]:
    return {"at": one.at.isoformat(), "outcome": one.outcome, "error": _fault(one.error)}


def _fault(error: CallError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    reason = error.details.get("reason")
    return {
        "code": code(error.code),
        "category": code(error.category),
        "reason": code(reason) if isinstance(reason, str) else None,
    }


def refused_of(row: Row) -> list[dict[str, Any]]:
    """List the proposals that came to nothing."""
    return [
        {
            "n": one["n"],
            "code": code(one["code"]),
            "tool": one["tool"] if one["tool"] in TOOLS else None,
            "call_id": None if one["call_id"] is None else identifier(one["call_id"]),
            "at": one["at"],
        }
        for one in row["refusals"]
    ]


def spent_on(row: Row, limits: Limits) -> list[dict[str, Any]]:
    """Tell how much of each limit is used up; what undoes something has a limit of its own."""
    w = row["workflow"]
    undoing = {call["step"] for call in row["calls"] if call["undoes"] is not None}
    sent = [a for a in row["attempts"] if a["purpose"] == "call" and a["step"] not in undoing]
    used: dict[str, tuple[float, float | None]] = {
        "calls": (sum(a["outcome"] not in NOT_COUNTED for a in sent), limits.calls),
        "refused_proposals": (len(row["refusals"]), limits.refusals),
        "recoveries": (w["recoveries"], limits.recoveries),
        "active_seconds": (w["active_ms"] / 1000, limits.active_seconds),
        "tokens": (w["tokens"], limits.tokens),
        "cost_micros": (w["cost_micros"], None),
    }
    return [
        {"what": what, "used": float(n), "limit": None if most is None else float(most)}
        for what, (n, most) in used.items()
    ]
