"""Who changes what of a workflow's state; a test holds every line of the host against it."""

from __future__ import annotations

from enum import StrEnum


class Owner(StrEnum):
    """The module that may change a field; LOADED is nobody: it is as the row has it."""

    LOADED = "host.domain.state"
    STEP = "host.domain.step"  # a move, an answer or a refusal that the step in hand records
    COMMIT = "host.engine.drive"  # what the database gave back, through `after`


# fmt: off
OWNERS: dict[str, Owner] = {
    **dict.fromkeys((f"Task.{name}" for name in (
        "workflow_id", "kind", "release", "tenant_id", "principal", "request_id", "customer", "resource", "case",
        "requested_at")), Owner.LOADED),
    **dict.fromkeys(("Task.state", "Task.resume_state", "Task.reason"), Owner.STEP),
    "State.proposal": Owner.STEP,
    "Evidence.calls": Owner.STEP, "Evidence.effects": Owner.STEP,
    "Evidence.versions": Owner.LOADED, "Evidence.asked": Owner.LOADED, "Evidence.undoing": Owner.STEP,
    **dict.fromkeys((f"ControlLayer.{name}" for name in (
        "control", "tokens", "cost_micros", "cost_today", "refusals_in_a_row", "refusals", "recoveries")), Owner.STEP),
    **dict.fromkeys(("ControlLayer.active_ms", "ControlLayer.entered_active_ms"), Owner.COMMIT),
    **dict.fromkeys(("ControlLayer.updates_stopped", "ControlLayer.reads_stopped"), Owner.STEP),  # by what it finds
    **dict.fromkeys((f"ControlLayer.{name}" for name in ("leased", "abandoned", "asleep", "closed")), Owner.LOADED),
    "Trace.version": Owner.COMMIT, "Trace.fence": Owner.COMMIT, "Trace.committed_at": Owner.COMMIT,
    "Trace.seq": Owner.STEP, "Trace.decisions": Owner.STEP,
}
# fmt: on
