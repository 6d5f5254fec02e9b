"""Rows become the record: pure, and the only place that decides what a person reads of a workflow.

Invariant: `status`, `customer_message` and `result` follow from states and verified effects alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from host.domain.control import ENDS, Control
from host.domain.draft import drafted
from host.domain.reasons import handover_class
from host.domain.state import State, from_row
from host.domain.workflow import Ended, Language, Seen, Workflow, pinned
from shared_contracts.base import dump, parse
from shared_contracts.errors import ERRORS
from shared_contracts.record import HandoverReason, Record, Status
from shared_contracts.tools import TOOLS

Row = Mapping[str, Any]

NOT_PEOPLES = frozenset({"workflow_ended", "alert", "stop"})  # the engine's own entries


def assemble(row: Row, workflow: Workflow) -> Record:
    """Give the record of what `store.record.read` has read; `workflow` is the release that it runs under."""
    state = _state(row)
    task, ids = state.task, external_ids(state)
    seen = state.evidence.seen()
    w = row["workflow"]
    document = {
        "workflow_id": w["workflow_id"],
        "run_id": w["workflow_id"],
        "supersedes": w["supersedes"],
        "superseded_by": None if row["superseded_by"] is None else str(row["superseded_by"]),
        **{name: w[name] for name in ("kind", "release", "state", "control_state", "version", "reason")},
        "status": status(w["control_state"], w["wake_reason"], held=row["held"]),
        "held_by": row["held_by"],
        "handover_reason": handover_reason(w["control_state"], w["reason"]),
        "customer_message": {
            language: workflow.message(task.state, task.reason, language, ids, seen) for language in Language
        },
        "review_closed_at": w["review_closed_at"],
        "step_count": sum(call["undoes"] is None for call in row["calls"]),
        "checkpoints": [_checkpoint(move, row["offers"]) for move in row["checkpoints"]],
        "calls": [_call(call, [a for a in row["attempts"] if a["step"] == call["step"]]) for call in row["calls"]],
        "effects": [_effect(effect, str(task.workflow_id)) for effect in row["effects"]],
        "decisions": [_without(decision, "workflow_id") for decision in row["decisions"]],
        "approvals": row["approvals"],
        "compensations": [_compensation(one, str(task.workflow_id)) for one in row["compensations"]],
        "acts": [_act(entry) for entry in row["audit"] if entry["action"] not in NOT_PEOPLES],
        "alerts": [_alert(entry) for entry in row["audit"] if entry["action"] == "alert"],
        "versions": {name: v if name in pinned(workflow) else None for name, v in state.evidence.versions.items()},
        "draft": _draft(state, row, workflow),
        "result": _result(row, workflow, ids, seen),
    }
    return parse(Record, document)


def status(control_state: str, wake_reason: str | None, *, held: bool) -> Status:
    """Say in one word where the work stands.

    What was accepted and not yet begun counts as running, and so does what a driver holds, or held when it died.
    """
    control = Control(control_state)
    if control in ENDS:
        return Status(control.value)
    return Status.RUNNING if held or wake_reason == "accepted" else Status.WAITING


def handover_reason(control_state: str, reason: str) -> HandoverReason | None:
    """Give the class of the reason for which a person has the case; None while nobody has."""
    handed_over = Control(control_state) in {Control.NEEDS_HUMAN, Control.FAILED}
    return handover_class(reason).value if handed_over else None


def external_ids(state: State) -> dict[str, str]:
    """Give the ids of verified effects under the names that their contracts call them by."""
    return {TOOLS[name].external_id: external_id for name, external_id in state.evidence.verified_ids().items()}


def _state(row: Row) -> State:
    """Read the layers; stops, timers and the day's costs have no place in what is only read."""
    unread = dict.fromkeys(("updates_stopped", "reads_stopped", "asleep", "leased"), False)
    return from_row(
        {**row, **unread, "cost_today": 0, "approval": None, "compensation": None, "decisions": len(row["decisions"])}
    )


def _checkpoint(move: Row, offers: Row) -> dict[str, Any]:
    before = {"control_state": move["control_from"], "state": move["business_from"]}
    return {
        **{name: move[name] for name in ("seq", "at", "event", "actor", "reason", "evidence")},
        "from": None if move["control_from"] == "" else before,
        "to": {"control_state": move["control_to"], "state": move["business_to"]},
        "turn": None if move["offered"] is None else _turn(move, offers),
    }


def _turn(move: Row, offers: Row) -> dict[str, Any]:
    shown = [definition["name"] for definition in offers[move["offered"]]]
    return {"offered": shown, "offered_sha256": move["offered"], "said": move["said"]}


def _call(call: Row, attempts: Iterable[Row]) -> dict[str, Any]:
    tried = list(attempts)
    sends = [a for a in tried if a["purpose"] == "call"]
    reads = [a for a in tried if a["purpose"] != "call"]
    names = ("step_id", "call_id", "tool", "contract_version", "execution_state", "fingerprint")
    times = ("proposed", "authorized", "started", "returned", "delivered", "verified")
    return {
        **{name: call[name] for name in names},
        "undoes": None if call["undoes"] is None else f"{call['workflow_id']}.{call['undoes']}",
        "error": None if call["execution_state"] == "verified" else _error(call["error"]),
        "attempts": [{"n": n, **_attempt(a)} for n, a in enumerate(sends, 1)],
        "engine_reads": [{"purpose": a["purpose"], "tool": a["tool"], **_attempt(a)} for a in reads],
        "times": {name: call[f"{name}_at"] for name in times},
    }


def _compensation(row: Row, workflow_id: str) -> dict[str, Any]:
    names = ("n", "ordered_by", "reason", "ordered_at", "due_at", "state", "ended_at", "released_by", "released_at")
    return {"step_id": f"{workflow_id}.{row['step']}", **{name: row[name] for name in names}}


def _attempt(attempt: Row) -> dict[str, Any]:
    outcome = _outcome(attempt["tool"], attempt["outcome"])
    return {"at": attempt["started_at"], "outcome": outcome, "error": _error(attempt["error"])}


def _error(error: Row | None) -> dict[str, Any] | None:
    """Give the error as it was kept; an older row has no details."""
    return None if error is None else {"details": {}, **error}


def _act(entry: Row) -> dict[str, Any]:
    told = {name: entry["details"].get(name) for name in ("os_user", "authz", "reason")}
    return {"at": entry["at"], "actor": entry["actor"], "act": entry["action"], **told}


def _alert(entry: Row) -> dict[str, Any]:
    return {"code": entry["result"], **{name: entry[name] for name in ("at", "actor", "resource", "details")}}


def _outcome(tool: str, said: str | None) -> str | None:
    """Sort the code that an attempt was closed with: only a write can be in doubt."""
    if said in {None, "success", "cut_off"}:
        return said
    doubtful = said in ERRORS and not ERRORS[said].outcome_known
    return "unknown" if doubtful and TOOLS[tool].writes else "rejected"


def _effect(effect: Row, workflow_id: str) -> dict[str, Any]:
    names = ("name", "attempt", "idempotency_key", "outcome", "external_id", "verified_at")
    return {**{name: effect[name] for name in names}, "step_id": f"{workflow_id}.{effect['step']}"}


def _result(row: Row, workflow: Workflow, ids: Mapping[str, str], seen: tuple[Seen, ...]) -> dict[str, Any] | None:
    """Give what came of it, once it has ended; the evidence is that of every move of the business."""
    w = row["workflow"]
    if not workflow.is_end(w["state"]):
        return None
    references = dict.fromkeys(reference for move in row["checkpoints"] for reference in move["evidence"])
    ended = Ended(w["case_body"], w["state"], w["reason"], ids, seen, tuple(references))
    return dump(workflow.result(ended))


def _draft(state: State, row: Row, workflow: Workflow) -> dict[str, Any] | None:
    found = drafted(workflow, TOOLS, state, [move["business_to"] for move in row["checkpoints"]])
    return None if found is None else dump(found)


def _without(row: Row, name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}
