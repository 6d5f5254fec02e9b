"""Rows become the handover sheet: pure. Which case has one, and what the next person is told of it.

Invariant: what a customer or a planner wrote is not carried over: codes are looked up, identifiers are told by their
form, and messages, arguments and notes stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any
from uuid import UUID

from host.domain.control import ENDS, Control
from host.domain.unworded import refused_of
from host.domain.workflow import Workflow
from host.handover.agreement import disagreements
from host.handover.calls import calls_of, spent_on
from host.handover.compensation import compensation_of
from host.handover.facts import COMPENSATION, STOPS, facts_of
from host.handover.impact import effects_of, impact
from host.handover.ways import Facts, possible
from host.handover.why import why
from host.record import NOT_PEOPLES, assemble
from shared_contracts.base import dump, parse
from shared_contracts.handover import Handover, Possible
from shared_contracts.record import Record, Status

Row = Mapping[str, Any]
_HANDED_OVER = frozenset({Status.NEEDS_HUMAN, Status.FAILED, Status.STOPPED})
_COPIED = (
    "workflow_id", "tenant_id", "request_id", "supersedes", "kind", "release", "customer", "resource", "state",
    "control_state", "version", "review_closed_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NoHandover:
    """The case is nobody's to take over; `what` says where it is, `possible` what can be done with it."""

    what: str
    possible: tuple[Possible, ...]


def is_a_persons(record: Record) -> bool:
    """Tell whether somebody has to take the case over, whatever is stopped."""
    return record.status in _HANDED_OVER or record.state == COMPENSATION


def hand_over(
    row: Row, around: Row, workflow: Workflow, kinds: Mapping[tuple[str, str], Workflow]
) -> Handover | NoHandover:
    """Make the sheet of what `store.handover.read` has read; `kinds` are those that other cases may be of."""
    record, laid = assemble(row, workflow), _laid_out(row, around, workflow, kinds)
    facts, ways = laid.facts, possible(laid.facts, record.workflow_id, record.state)
    if not (is_a_persons(record) or facts.compensates or facts.held or (facts.stopped and not facts.over)):
        return NoHandover(_elsewhere(record), ways)
    found = {
        "why": why(record, facts, [scope for scope in laid.engaged if scope in STOPS]),
        "possible": [dump(one) for one in ways],
        "effects": laid.effects,
        "compensation": laid.undoing,
        "impact": laid.reach,
    }
    return parse(Handover, {**_copied(row, record, around, workflow), **found})


def ways_of(
    row: Row, around: Row, workflow: Workflow, kinds: Mapping[tuple[str, str], Workflow]
) -> tuple[Possible, ...]:
    """List what the case can take as it stands, whether or not there is a sheet of it."""
    w = row["workflow"]
    return possible(_laid_out(row, around, workflow, kinds).facts, UUID(w["workflow_id"]), w["state"])


@dataclass(frozen=True, slots=True)
class _LaidOut:
    facts: Facts
    engaged: list[str]
    effects: list[dict[str, Any]]
    undoing: dict[str, Any]
    reach: dict[str, Any]


def _laid_out(row: Row, around: Row, workflow: Workflow, kinds: Mapping[tuple[str, str], Workflow]) -> _LaidOut:
    engaged = [stop["scope"] for stop in around["stops"] if stop["engaged"]]
    effects, undoing = effects_of(row), compensation_of(row, around["compensations"])
    reach = impact(row, effects, around["others"], workflow, kinds)
    facts = facts_of(row["workflow"], workflow, engaged, undoing, effects, reach["outside"])
    return _LaidOut(facts, engaged, effects, undoing, reach)


def _copied(row: Row, record: Record, around: Row, workflow: Workflow) -> dict[str, Any]:
    """Take over what only has to be told."""
    w = row["workflow"]
    return {
        **{name: w[name] for name in _COPIED},
        "superseded_by": None if record.superseded_by is None else str(record.superseded_by),
        "owner": workflow.owners[w["state"]],
        "accepted_at": w["created_at"],
        "since": _since(record, w),
        "made_at": around["made_at"].isoformat(),
        "versions": dump(record.versions),
        "draft": None if record.draft is None else dump(record.draft),
        "spent": spent_on(row, workflow.limits),
        "calls": calls_of(record, row),
        "refused": refused_of(row),
        "approvals": [_approval(one) for one in row["approvals"]],
        "stops": {
            "engaged": [_named(stop, "scope", "actor", "reason", "at") for stop in around["stops"] if stop["engaged"]],
            "operations": around["operations"],
        },
        "disagreements": disagreements(row),
        "acts": [
            _named(entry, "at", "actor", "action", "result")  # without the words, which go no further than the record
            for entry in row["audit"]
            if entry["action"] not in NOT_PEOPLES  # stops have a part of theirs
        ],
        "alerts": [{"code": entry.code, "at": entry.at.isoformat()} for entry in record.alerts],
    }


def _elsewhere(record: Record) -> str:
    """Say where a case is that nobody has to take over."""
    if Control(record.control_state) in ENDS:
        return f"the case has ended as {record.state} ({record.reason}); nobody has to take it over"
    return f"the case stands in {record.state} and nothing is stopped; nobody has to take it over"


def _since(record: Record, w: Row) -> str:
    """Tell when the case came where it stands: into the review, or into its business state."""
    if w["review_since"] is not None:
        return str(w["review_since"])
    latest = list(takewhile(lambda point: point.to.state == record.state, reversed(record.checkpoints)))
    return latest[-1].at.isoformat()


def _approval(one: Row) -> dict[str, Any]:
    names = (
        "version", "action_digest", "requested_at", "expires_at", "event_id", "approver", "decision", "decided_at",
        "approval_seconds",
    )  # fmt: skip
    about = ("tool", "contract_version", "amount", "order_version", "policy_version")
    return {**_named(one, *names), **_named(one["action"], *about)}


def _named(row: Row, *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}
