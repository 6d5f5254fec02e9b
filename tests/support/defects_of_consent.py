"""More defects: a yes that is not looked at again where it acts, and what was to be undone and is not, or too late."""

from __future__ import annotations

from tests.support.defects import UNBOUND, Defect, Plant

_STEPS = "host/store/migrations/0003_commit_steps.sql"
_APPROVAL = "shared_contracts/approval.py"
_CANCELLED = '        if cancelled is None:\n            return NextCall("cancel_return", about)\n'

CONSENT = (
    Defect(
        "what was approved is not held against the order as it is when it acts",
        (
            Plant(
                "tool_server/tools/approval.py",
                "why = held_against(event, _asked(call, version, action), [one.approver for one in trusted], now)",
                "why = None",
            ),
        ),
        ("high-value-02", "normal-01"),
        "high-value-02",
        ("approval_bypassed", "effect_not_allowed"),
        beside=("state_differs", "reason_differs", "path_differs", "too_many_calls", "told_differs"),
    ),
    Defect(
        "an approver's key counts on after it was revoked",
        (
            Plant(
                "tool_server/store/migrations/0019_trust_approvers.sql",
                "FROM returns.approvers WHERE ended_at IS NULL;\n",
                "FROM returns.approvers;\n",
            ),
        ),
        ("high-value-08", "normal-01"),
        "high-value-08",
        ("approval_bypassed", "effect_not_allowed"),
        beside=("state_differs", "reason_differs", "path_differs", "too_many_calls", "told_differs"),
    ),
    Defect(
        "an approval acts after its time",
        (
            Plant(_APPROVAL, " and now < event.expires_at, Void.EXPIRED)", ", Void.EXPIRED)"),
            Plant("host/engine/approval.py", "asked.expires_at <= asked.read_at", "asked.expires_at is None"),
            Plant(_STEPS, "AND a.decision = 'approve' AND r.expires_at > v_at", "AND a.decision = 'approve'"),
        ),
        ("midway-fault-06", "normal-01"),
        "midway-fault-06",
        ("approval_bypassed", "effect_not_allowed"),
        beside=("state_differs", "reason_differs", "path_differs", "too_many_calls", "told_differs"),
    ),
    Defect(
        "an approver of another tenant counts",
        (
            Plant(
                _APPROVAL,
                "for one in approvers if one.tenant_id == event.tenant_id}",
                "for one in approvers}",
            ),
            Plant(
                "tool_server/store/approvals.sql",
                "WHERE a.tenant_id = %(tenant)s",
                "WHERE %(tenant)s::text IS NOT NULL",
            ),
            UNBOUND,
        ),
        ("high-value-12", "normal-01"),
        "high-value-12",
        ("approval_bypassed", "effect_not_allowed"),
        beside=("state_differs", "reason_differs", "path_differs", "too_many_calls"),
    ),
    Defect(
        "what is to be undone is said to be and is not",
        (
            Plant("host/workflows/returns.py", _CANCELLED, ""),
            Plant(
                "host/store/migrations/0007_hold_compensations.sql",
                "WHEN (NEW.state = 'done') EXECUTE FUNCTION check_undone()",
                "WHEN (false) EXECUTE FUNCTION check_undone()",
            ),
        ),
        ("midway-fault-02", "normal-01"),
        "midway-fault-02",
        ("compensation_missing",),
    ),
    Defect(
        "what a person has ordered undone is undone too late",
        (
            Plant(
                _STEPS,
                "v_at + make_interval(hours => s.hours), 'required'",
                "v_at + make_interval(secs => 0.001), 'required'",
            ),
        ),
        ("midway-fault-02", "normal-01"),
        "midway-fault-02",
        ("compensation_overdue",),
        beside=("reason_differs",),
        refused=("stop_unasked",),
    ),
)
