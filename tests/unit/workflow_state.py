"""A workflow as it stands, for tests of the pure core: a received return, and what differs from it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from host.domain.state import State, from_row
from host.domain.step import Step
from host.domain.workflow import Move, legal_moves
from host.workflows.returns import RETURNS

WORKFLOW_ID = UUID(int=7)
CASE: dict[str, Any] = {
    "kind": "returns", "customer_id": "C-1", "order_id": "A-1", "lines": [{"line_id": "1", "quantity": 1}],
    "reason": "changed_mind", "message": "", "requested_at": None, "asks": [],
}  # fmt: skip
MOVES: dict[Move, int] = {move: number for number, move in enumerate(sorted(legal_moves(RETURNS)), 1)}
AT = "2026-07-30T00:00:00+09:00"


def state(
    business: str = "RECEIVED",
    control: str = "planning",
    *,
    calls: tuple[dict[str, Any], ...] = (),
    attempts: tuple[dict[str, Any], ...] = (),
    effects: tuple[dict[str, Any], ...] = (),
    refusals: tuple[dict[str, str], ...] = (),
    **differs: Any,
) -> State:
    """Read a state out of rows as the ledger gives them."""
    row = {
        "workflow_id": str(WORKFLOW_ID), "kind": "returns", "release": "returns-1", "tenant_id": "acme-jp",
        "principal": "returns-desk@acme-jp", "request_id": "q-1", "customer": "C-1", "resource": "A-1",
        "case_body": CASE, "requested_at": AT, "state": business, "resume_state": None, "reason": "received",
        "control_state": control, "order_snapshot": AT, "policy": "policy-v12", "authz": "authz-v7", "active_ms": 0,
        "entered_active_ms": 0, "tokens": 0, "cost_micros": 0, "refusals_in_a_row": 0, "recoveries": 0, "version": 1,
        "fence": 1, "seq": 1, "lease_owner": None, "review_closed_at": None, **differs,
    }  # fmt: skip
    return from_row(
        {
            "workflow": row, "calls": list(calls), "attempts": list(attempts), "effects": list(effects),
            "refusals": list(refusals), "decisions": 0, "cost_today": 0, "approval": None, "compensation": None,
            "updates_stopped": False, "reads_stopped": False, "leased": False, "asleep": False,
        }
    )  # fmt: skip


def call(step: int, tool: str, execution: str = "verified", **differs: Any) -> dict[str, Any]:
    """One row of the ledger's calls."""
    return {
        "step": step, "undoes": None, "call_id": f"call_{step}", "tool": tool, "arguments": {"order_id": "A-1"},
        "fingerprint": "0" * 64, "execution_state": execution, "result": {}, "error": None,
        "contract_version": "1", **differs,
    }  # fmt: skip


def attempt(step: int, n: int, purpose: str, outcome: str | None) -> dict[str, Any]:
    """One row of the ledger's attempts."""
    return {"step": step, "n": n, "purpose": purpose, "tool": "-", "jti": f"{step}.{n}", "outcome": outcome}


def effect(step: int, name: str, outcome: str | None, *, number: int = 1, verified: bool = False) -> dict[str, Any]:
    """One row of the ledger's effects."""
    return {
        "step": step, "attempt": number, "name": name, "idempotency_key": f"k:{name}", "outcome": outcome,
        "external_id": f"id-{name}" if outcome == "succeeded" else None, "verified_at": AT if verified else None,
        "opened_at": AT,
    }  # fmt: skip


def step(at: State, *, active_ms: float = 0.0) -> Step:
    """Begin a durable step at a state."""
    return Step(at, RETURNS, MOVES, claim=False, active_ms=active_ms)
