"""What of a case decides which acts it can take: the same conditions that the acts themselves look at. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from host.domain.control import ENDS, Control
from host.domain.workflow import Workflow
from host.handover.ways import Facts

Row = Mapping[str, Any]
COMPENSATION = "COMPENSATION_REQUIRED"
STOPS = frozenset({"new_work", "updates", "reads"})  # what keeps an open case from going on
_UNDOING_NEEDS = frozenset({"updates", "reads"})
_HELD = frozenset({"stopped", "stopped_reads"})
_ADOPTABLE = frozenset({"unverified", "verified"})
_MADE = frozenset({"unverified", "verified", "wrong"})


def facts_of(
    w: Row,
    workflow: Workflow,
    engaged: Iterable[str],
    compensation: Row,
    effects: Iterable[Row],
    outside: Iterable[Row],
) -> Facts:
    """Gather them; what the case made is what stands outside, and an effect of what undoes counts while in doubt."""
    control, stops = Control(w["control_state"]), set(engaged)
    found = {(one["verification"], one["name"] in workflow.effects) for one in outside}
    seen = {verification for verification, own in found if own or verification == "in_doubt"}
    unread = ("unverified", False) in found  # what was to undo something is looked up first, like what is in doubt
    goes_on = "wrong" not in seen and not _ADOPTABLE.isdisjoint(seen)
    undone = compensation["state"] == "done"  # what is left after that, a message, is neither done nor undone again
    waiting = [one for one in compensation["orders"] if one["state"] == "required"]
    return Facts(
        reviewed=control in {Control.NEEDS_HUMAN, Control.FAILED},
        closed=w["review_closed_at"] is not None,
        over=control in ENDS,
        waits=w["state"] == workflow.approval_state,
        compensates=COMPENSATION in {w["state"], w["resume_state"]},
        released=any(one["released_by"] is not None for one in waiting),
        stopped=not STOPS.isdisjoint(stops),
        halted=not _UNDOING_NEEDS.isdisjoint(stops),
        held=w["wake_reason"] in _HELD,
        made=any(effect["outcome"] not in {"absent", "rejected"} for effect in effects),
        in_doubt="in_doubt" in seen,
        adoptable=unread or "in_doubt" in seen or (not undone and goes_on),
        undoable=not undone and not unread and not _MADE.isdisjoint(seen),
    )
