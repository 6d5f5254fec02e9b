"""More defects: a bound that holds no more, a guard of a database that is gone, a fault that does not happen."""

from __future__ import annotations

from tests.support.defects import UNBOUND, Defect, Plant

_STEPS = "host/store/migrations/0003_commit_steps.sql"
_GUARDS = "host/store/migrations/0002_guard_history.sql"
_RULED = "_ruled(number, stated, facts), permitted)"
_WRONG = '{**_ruled(number, stated, facts), **({"reason": "other"} if call.details.resource == "A-1107" else {})}'

BOUNDS = (
    Defect(
        "a fault is to happen and does not",
        (
            Plant(
                "host/evaluation/wire.py",
                "return fault.kind if fault.nth <= nth < fault.nth + fault.times else None",
                "return None if fault.nth <= nth < fault.nth + fault.times else None",
            ),
        ),
        ("midway-fault-05", "normal-01"),
        "midway-fault-05",
        ("fault_not_proved",),
        refused=("fault_not_proved",),
    ),
    Defect(
        "what waits to be tried again is woken after hours, so that a case never ends",
        (
            Plant(
                _STEPS,
                "wake_at = v_at + make_interval(secs => s.wake_after)",
                "wake_at = v_at + make_interval(secs => 10000 * s.wake_after)",
            ),
            Plant("host/evaluation/watch.py", "CASE_SECONDS_MAX = 150.0", "CASE_SECONDS_MAX = 25.0"),
        ),
        ("midway-fault-01", "normal-01"),
        "midway-fault-01",
        ("not_ended",),
        beside=("reason_differs", "path_differs", "return_missing", "notice_missing", "retries_differ", "told_differs"),
    ),
    Defect(
        "a planner is asked again however often what it gave was refused",
        (
            Plant(
                "host/engine/propose.py",
                "if control.refusals_in_a_row >= limits.refusals_in_a_row or len(control.refusals) >= limits.refusals:",
                "if control.refusals_in_a_row < 0:",
            ),
            Plant(
                "host/planner/conformance.py",
                "        return Reply(self._workflows[state.kind, state.release].propose(state), NOTHING_USED)\n",
                '        if state.case["order_id"] == "A-1107" and len(state.refusals) < 8:\n'
                "            return Reply(None, NOTHING_USED)  # type: ignore[arg-type]\n"
                "        return Reply(self._workflows[state.kind, state.release].propose(state), NOTHING_USED)\n",
            ),
        ),
        ("normal-01", "normal-02"),
        "normal-01",
        ("over_limit",),
    ),
    Defect(
        "what has to be undone is due before anybody can",
        (
            Plant("tool_server/tools/returns.py", _RULED, f"{_WRONG}, permitted)"),
            Plant(
                _STEPS,
                "v_at + make_interval(hours => s.hours), 'required'",
                "v_at + make_interval(secs => 0.001), 'required'",
            ),
        ),
        ("normal-01", "missing-order-01"),
        "normal-01",
        ("compensation_overdue",),
        beside=("state_differs", "reason_differs", "path_differs", "notice_missing", "wrong_return"),
        refused=("stop_unasked",),
    ),
    Defect(
        "a return is written down for another customer",
        (
            Plant(
                "tool_server/store/migrations/0009_move_returns.sql",
                "call ->> 'resource', call ->> 'customer', call ->> 'key', 'created'",
                "call ->> 'resource', 'C-1199', call ->> 'key', 'created'",
            ),
            UNBOUND,
        ),
        ("normal-01", "out-of-period-01"),
        "normal-01",
        ("wrong_return",),
        beside=("state_differs", "reason_differs", "path_differs", "notice_missing"),
    ),
    Defect(
        "the move that an approval makes is not written down",
        (
            Plant(
                _GUARDS,
                "CREATE TRIGGER checkpoint_chain AFTER INSERT ON checkpoint\n"
                "    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION check_chain();\n",
                "",
            ),
            Plant(
                _GUARDS,
                "CREATE CONSTRAINT TRIGGER workflow_fold\n"
                "    AFTER INSERT OR UPDATE OF seq, state, control_state, resume_state, kind, release ON workflow\n"
                "    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION check_fold();\n",
                "",
            ),
            Plant(
                _STEPS,
                "reason text, evidence text[], offered text, said jsonb);",
                "reason text, evidence text[], offered text, said jsonb)\n"
                "         WHERE NOT EXISTS (SELECT FROM legal_transition m\n"
                "                            WHERE m.move_id = s.move_id AND m.event = 'approved');",
            ),
        ),
        ("high-value-01", "normal-01"),
        "high-value-01",
        ("history_broken",),
    ),
)
