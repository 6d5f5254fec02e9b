"""A shop that holds a person's decision against its own keys and today's price, as a tool server does.

Invariant: above the threshold nothing is made without a decision of that case's newest request, by a key that counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from host.domain.outcome import Outcome, Rejected
from host.engine.parts import Request
from shared_contracts.approval import Action, action_digest, opened
from shared_contracts.base import Money
from tests.support.fake_tools import FakeTools, failure, yen

THRESHOLD = 50_000
DESTINATION = "address://acme/C-1@1"


@dataclass
class CarefulShop(FakeTools):
    """`keys`: of whom the shop takes a decision right now, by the key's id."""

    keys: dict[str, tuple[str, Ed25519PublicKey]] = field(default_factory=dict)
    used: dict[str, tuple[UUID, int | None]] = field(default_factory=dict)  # which case a decision came with

    def honest(self, request: Request) -> Outcome:
        if request.tool.name == "create_return" and request.idempotency_key not in self.returns:
            today = self.amount(request.resource)
            if today["amount"] > THRESHOLD:
                refused = self._held(request, today["amount"])
                if refused is not None:
                    return refused
        return super().honest(request)

    def _held(self, request: Request, today: int) -> Outcome | None:
        """Refuse what has moved since it was decided; what could come of no honest host is a fault."""
        assert request.approval is not None, "a return above the threshold was asked for without a decision"
        event = opened(request.approval, self.keys.get)  # a key that does not count raises
        about = (event.workflow_id, event.version, event.subject, event.resource, event.decision)
        asked = (str(request.workflow_id), request.approved_version, request.subject, request.resource, "approve")
        assert about == asked
        case = (request.workflow_id, request.approved_version)
        assert self.used.setdefault(event.event_id, case) == case, "a decision came with two cases"
        now = Action(
            tenant_id=request.tenant_id, resource=request.resource, tool=request.tool.name,
            contract_version=request.tool.version, arguments=dict(request.arguments),
            amount=Money(amount=today, currency="JPY"), destination_ref=DESTINATION, order_version=1,
            policy_version="policy-v12",
        )  # fmt: skip
        if event.action_digest == action_digest(now):
            return None
        return Rejected(replace(failure("approval_refused"), details={"action": {"amount": yen(today)}}))
