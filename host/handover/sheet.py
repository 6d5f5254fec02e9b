"""Rows become the handover sheet: pure. Which case has one, and what the next person is told of it.

Invariant: what a customer or a planner wrote is not carried over: codes are looked up, identifiers are told by their
form, and messages, arguments and notes stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any
from uuid import UUID

from host.domain.control import ENDS, Control
from host.domain.workflow import Workflow
from host.handover.calls import calls_of, refused_of, spent_on
from host.handover.compensation import compensation_of
from host.handover.impact import effects_of, impact
from host.handover.ways import Facts, possible
from host.record import assemble
from host.runbook_texts import explained
from shared_contracts.base import parse
from shared_contracts.handover import Handover
from shared_contracts.record import Record, Status

Row = Mapping[str, Any]
COMPENSATION = "COMPENSATION_REQUIRED"
STOPS = ("new_work", "updates", "reads")  # what keeps an open case from going on
_NOT_PEOPLES = frozenset({"workflow_ended", "alert", "stop"})  # the engine's own entries; stops have a part of theirs


@dataclass(frozen=True, slots=True)
class NoHandover:
    """The case is nobody's to take over; `what` says where it is."""

    what: str


def hand_over(
    row: Row, around: Row, workflow: Workflow, kinds: Mapping[tuple[str, str], Workflow]
) -> Handover | NoHandover:
    """Make the sheet of what `store.handover.read` has read; `kinds` are those that other cases may be of."""
    record = assemble(row, workflow)
    w = row["workflow"]
    engaged = [stop for stop in around["stops"] if stop["engaged"]]
    stopped = any(stop["scope"] in STOPS for stop in engaged)
    compensates = COMPENSATION in {w["state"], w["resume_state"]}
    control = Control(w["control_state"])
    if not (is_a_persons(record) or compensates or (stopped and control not in ENDS)):
        return NoHandover(_elsewhere(record))
    effects, compensation = effects_of(row), compensation_of(row, around["compensations"])
    reach = impact(row, effects, around["others"], workflow, kinds)
    facts = Facts(
        reviewed=record.handover_reason is not None,
        closed=w["review_closed_at"] is not None,
        over=control in ENDS,
        waits=w["state"] == workflow.approval_state,
        compensates=compensates,
        released=any(one["state"] == "required" and one["released_by"] is not None for one in compensation["orders"]),
        stopped=stopped,
        made=any(effect["outcome"] not in {"absent", "rejected"} for effect in effects),
        unproved=any(one["standing"] in {"in_doubt", "unverified"} for one in reach["outside"]),
        undoable=compensation["state"] != "done" and any(one["standing"] in _TO_UNDO for one in reach["outside"]),
    )
    return parse(
        Handover,
        {
            **{name: w[name] for name in _COPIED},
            "owner": workflow.owners[w["state"]],
            "accepted_at": w["created_at"],
            "since": _since(record, w),
            "review_closed_at": w["review_closed_at"],
            "made_at": around["made_at"].isoformat(),
            "versions": record.versions.model_dump(),
            "why": _why(record, compensates=compensates, engaged=[stop["scope"] for stop in engaged]),
            "possible": [one.model_dump() for one in possible(facts, UUID(w["workflow_id"]))],
            "draft": None if record.draft is None else record.draft.model_dump(mode="json"),
            "spent": spent_on(row, workflow.limits),
            "calls": calls_of(record, row),
            "refused": refused_of(row),
            "approvals": [_approval(one) for one in row["approvals"]],
            "effects": effects,
            "compensation": compensation,
            "stops": {"engaged": [_engaged(stop) for stop in engaged], "operations": around["operations"]},
            "impact": reach,
            "acts": [_act(entry) for entry in row["audit"] if entry["action"] not in _NOT_PEOPLES],
            "alerts": [{"code": entry.code, "at": entry.at.isoformat()} for entry in record.alerts],
        },
    )


_TO_UNDO = frozenset({"verified", "wrong"})
_COPIED = (
    "workflow_id", "tenant_id", "request_id", "supersedes", "kind", "release", "customer", "resource", "state",
    "control_state", "version",
)  # fmt: skip


def is_a_persons(record: Record) -> bool:
    """Tell whether somebody has to take the case over, whatever is stopped."""
    return record.status in _HANDED_OVER or record.state == COMPENSATION


_HANDED_OVER = frozenset({Status.NEEDS_HUMAN, Status.FAILED, Status.STOPPED})


def _elsewhere(record: Record) -> str:
    """Say where a case is that nobody has to take over."""
    if Control(record.control_state) in ENDS:
        return f"the case has ended as {record.state} ({record.reason}); nobody has to take it over"
    return f"the case is at work, in {record.state}, and nothing is stopped; nobody has to take it over"


def _since(record: Record, w: Row) -> str:
    """Tell when the case came where it stands: into the review, or into its business state."""
    if w["review_since"] is not None:
        return str(w["review_since"])
    latest = list(takewhile(lambda point: point.to.state == record.state, reversed(record.checkpoints)))
    return latest[-1].at.isoformat()


def _why(record: Record, *, compensates: bool, engaged: Iterable[str]) -> dict[str, Any]:
    """Say in one sentence why somebody has to look, and in one what about it."""
    reason = record.reason
    if record.handover_reason is not None:
        sentence, advice = explained(reason)
    elif compensates:
        sentence = "Something that stands outside has to be undone, by a finding or by a person's order."
        advice = "It is undone by itself within its deadline; under a stop a person releases it."
    elif record.control_state == "stopped":
        sentence, advice = "Nobody said yes in time; nothing was done after that.", "Ask anew where it is still wanted."
    else:
        reason, scopes = "stopped", ", ".join(engaged)
        sentence = (
            f"Work is stopped ({scopes}) while the case stands in {record.state}; it goes on by itself after the stop."
        )
        advice = "Find out why it was stopped; see what the case had done by then."
    return {"code": reason, "handover_reason": record.handover_reason, "sentence": sentence, "advice": advice}


def _approval(one: Row) -> dict[str, Any]:
    names = (
        "version", "action_digest", "requested_at", "expires_at", "event_id", "approver", "decision", "decided_at",
        "approval_seconds",
    )  # fmt: skip
    about = ("tool", "contract_version", "amount", "order_version", "policy_version")
    return {**{name: one[name] for name in names}, **{name: one["action"][name] for name in about}}


def _engaged(stop: Row) -> dict[str, Any]:
    return {name: stop[name] for name in ("scope", "actor", "reason", "at")}


def _act(entry: Row) -> dict[str, Any]:
    return {name: entry[name] for name in ("at", "actor", "action", "result")}
