"""The record's words are the engine's own: its closed lists are those of the machines, spelt a second time."""

import json
from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError

from host import generate as host_schemas
from host.domain.control import ENDS, Actor, Control, Execution
from host.domain.reasons import Handover
from host.record import handover_reason, status
from shared_contracts import record
from shared_contracts.base import parse
from shared_contracts.generate import FOLDER, render

PROMISED = {
    "workflow_id", "run_id", "supersedes", "superseded_by", "kind", "release", "state", "status", "held_by",
    "control_state", "version", "reason",
    "handover_reason", "review_closed_at", "customer_message", "step_count", "checkpoints", "calls", "effects",
    "decisions", "approvals", "compensations", "acts", "alerts", "versions", "draft", "result",
}  # fmt: skip
ID = "0198c2f4-0000-7000-8000-000000000000"
EMPTY = {
    "workflow_id": ID, "run_id": ID, "supersedes": None, "superseded_by": None, "kind": "returns",
    "release": "returns-1", "state": "RECEIVED", "status": "running", "held_by": None, "control_state": "created",
    "version": 1, "reason": "received", "handover_reason": None,
    "review_closed_at": None,
    "customer_message": {"ja": "…", "en": "…"}, "step_count": 0, "checkpoints": [], "calls": [], "effects": [],
    "decisions": [], "approvals": [], "compensations": [], "acts": [], "alerts": [], "draft": None, "result": None,
    "versions": {"order_snapshot": "s", "policy": "p", "authz": "a"},
}  # fmt: skip


def test_the_record_has_the_promised_members_and_no_other():
    schema = json.loads((FOLDER / "record.json").read_text(encoding="utf-8"))
    assert set(schema["properties"]) == set(schema["required"]) == PROMISED
    assert schema["additionalProperties"] is False
    assert parse(record.Record, EMPTY).state == "RECEIVED"


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_a_record_that_lacks_a_member_is_none(name):
    with pytest.raises(ValidationError):
        parse(record.Record, {key: value for key, value in EMPTY.items() if key != name})


@pytest.mark.parametrize(
    "wrong",
    [
        {"run_id": "0198c2f4-0000-7000-8000-000000000001"},
        {"step_count": 1},
        {"status": "done"},
        {"approvals": [{}]},
        {"extra": 1},
        {"handover_reason": "somebody"},
    ],
    ids=str,
)
def test_a_record_that_contradicts_itself_is_none(wrong):
    with pytest.raises(ValidationError):
        parse(record.Record, EMPTY | wrong)


ASKED = {
    "version": 9, "action_digest": "0" * 64, "requested_at": "2026-07-30T10:00:00Z",
    "expires_at": "2026-07-31T10:00:00Z", "event_id": None, "approver": None, "decision": None, "reason": None,
    "decided_at": None, "approval_seconds": None,
    "action": {
        "tenant_id": "t-1", "resource": "A-1", "tool": "create_return", "contract_version": "1", "arguments": {},
        "amount": {"amount": 80_000, "currency": "JPY"}, "destination_ref": "address://acme/C-1@1",
        "order_version": 1, "policy_version": "policy-v12",
    },
}  # fmt: skip
DECIDED = {
    "event_id": "e-1", "approver": "tanaka", "decision": "deny", "reason": "", "decided_at": "2026-07-30T11:00:00Z",
    "approval_seconds": 0,
}  # fmt: skip


@pytest.mark.parametrize("name", DECIDED)
def test_a_decision_is_recorded_whole_or_not_at_all(name):
    assert parse(record.Approval, ASKED).decision is None
    assert parse(record.Approval, ASKED | DECIDED).reason == ""
    for half in (ASKED | DECIDED | {name: None}, ASKED | {name: DECIDED[name]}):
        with pytest.raises(ValidationError):
            parse(record.Approval, half)


@pytest.mark.parametrize(
    ("words", "machine"),
    [
        (record.ControlState, Control),
        (record.ExecutionState, Execution),
        (record.Actor, Actor),
        (record.HandoverReason, Handover),
    ],
)
def test_the_records_words_are_those_of_the_machines(words, machine):
    assert set(get_args(words)) == {member.value for member in machine}


@pytest.mark.parametrize("control", Control)
@pytest.mark.parametrize("wake_reason", [None, "accepted", "approval", "retry", "stopped"])
@pytest.mark.parametrize("held", [True, False])
def test_every_place_of_the_control_machine_has_one_status(control, wake_reason, held):
    found = status(control.value, wake_reason, held=held)
    if control in ENDS:
        assert found.value == control.value
    else:
        assert (found is record.Status.RUNNING) == (held or wake_reason == "accepted")


def test_only_what_a_person_has_got_carries_a_handover_reason():
    for control in Control:
        expected = "rule_exception" if control in {Control.NEEDS_HUMAN, Control.FAILED} else None
        assert handover_reason(control.value, "dangerous_goods") == expected


@pytest.mark.parametrize("name", host_schemas.schemas())
def test_the_committed_schema_of_a_command_or_a_case_is_the_one_that_the_code_generates(name):
    assert (FOLDER / name).read_text(encoding="utf-8") == render(host_schemas.schemas()[name])


def test_the_generator_writes_every_schema_of_the_host(tmp_path: Path):
    host_schemas.write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(host_schemas.schemas())
