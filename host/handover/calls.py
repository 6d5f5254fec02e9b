"""The full list of calls, without a word that a planner chose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from host.domain.limits import Limits
from host.domain.state import NOT_COUNTED
from host.domain.unworded import code, identifier
from shared_contracts.base import dump
from shared_contracts.record import Attempt, Call, CallError, EngineRead, Record

Row = Mapping[str, Any]


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
