"""Approvers of the tests' own: their keys, and decisions signed with them."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.domain.state import State
from host.engine.approve import Desk, take_decision
from host.engine.drive import load
from host.engine.parts import Parts
from shared_contracts.approval import LIFETIME, ApprovalEvent, Approver, jwk_of, sign
from shared_contracts.base import Money
from tests.support.engine import no_wake, owners

KEYS = {name: Ed25519PrivateKey.generate() for name in ("tanaka", "suzuki", "stranger", "returns-desk@acme-jp")}
KIDS = {name: jwk_of(key.public_key()).kid for name, key in KEYS.items()}


def approver(name: str, limit: int, *substitutes: str, after: int = 3600) -> Approver:
    return Approver(
        name=name, tenant_id="acme-jp", limit=Money(amount=limit, currency="JPY"), substitutes=substitutes,
        substitutes_after_seconds=after,
    )  # fmt: skip


APPROVERS = (approver("tanaka", 500_000, "suzuki"), approver("suzuki", 2_000_000))


def trust(parts: Parts, *names: str) -> None:
    """Let these approvers' keys count."""
    with owners(parts) as sql:
        for name in names:
            x = jwk_of(KEYS[name].public_key()).x
            sql.execute("SELECT trust_approver(%s, %s, %s, 'test')", (KIDS[name], name, x))


def decision(state: State, by: str = "tanaka", /, **differs: Any) -> ApprovalEvent:
    """What an approver who looks at the waiting case right now would sign."""
    asked = state.evidence.asked
    assert asked is not None
    plain = {
        "event_id": uuid4().hex, "workflow_id": str(state.task.workflow_id), "version": asked.version,
        "tenant_id": state.task.tenant_id, "subject": state.task.principal, "tool": asked.action.tool,
        "resource": asked.action.resource, "action_digest": asked.action_digest, "decision": "approve", "reason": "",
        "approver": by, "requested_at": asked.expires_at - LIFETIME, "decided_at": asked.read_at,
        "expires_at": asked.expires_at,
    }  # fmt: skip
    return ApprovalEvent(**(plain | differs))


def desk(parts: Parts) -> Desk:
    return Desk(parts.pool, parts.kinds, parts.authorization, no_wake)


async def decide(parts: Parts, workflow_id: UUID, by: str = "tanaka", /, **differs: Any) -> ApprovalEvent:
    """Sign and hand in a decision on a waiting case."""
    event = decision(await load(parts, workflow_id), by, **differs)
    return await take_decision(desk(parts), sign(event, KEYS[by], KIDS[by]), 12.5)
