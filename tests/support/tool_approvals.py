"""Approvers whom a shop's tool server trusts, and their signatures: everything that the host's half would bring.

tanaka = Person.named("tanaka")
await trusted(shop, tanaka)
action = await action_now(tools, arguments)                   # as a host reads it, over the tools
await approve(tools, tanaka.signs(action), arguments)         # create_return with that approval
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from shared_contracts.approval import (
    LIFETIME,
    Action,
    ApprovalEvent,
    Approver,
    TrustedApprover,
    action_digest,
    jwk_of,
    sign,
)
from shared_contracts.base import Money
from shared_contracts.tools import TOOLS
from tests.support.tool_shop import Shop, ask, given
from tool_server.approvers import trust
from tool_server.call import Answer
from tool_server.dispatch import Dispatcher

VERSION, WORKFLOW, REQUESTER = 9, "W-1", "desk@example.com"  # the token's, as `tool_shop.caller` mints it


@dataclass(frozen=True)
class Person:
    """A key and the terms on which it would be trusted."""

    key: Ed25519PrivateKey
    approver: Approver

    @classmethod
    def named(cls, name: str, limit: int = 500_000, *, currency: str = "JPY", **terms: Any) -> Person:
        plain = {"tenant_id": "acme", "substitutes": (), "substitutes_after_seconds": 3600}
        money = Money(amount=limit, currency=currency)
        return cls(Ed25519PrivateKey.generate(), Approver(name=name, limit=money, **(plain | terms)))

    def on(self, **terms: Any) -> Person:
        """The same key on other terms."""
        return Person(self.key, self.approver.model_copy(update=terms))

    @property
    def kid(self) -> str:
        return jwk_of(self.key.public_key()).kid

    @property
    def public(self) -> TrustedApprover:
        return TrustedApprover(approver=self.approver, key=jwk_of(self.key.public_key()))

    def file(self, directory: Path) -> Path:
        path = directory / f"{self.approver.name}.json"
        path.write_text(self.public.model_dump_json(), encoding="utf-8")
        return path

    def event(self, action: Action, *, waited: int = 300, **differs: Any) -> ApprovalEvent:
        """A yes to this action, `waited` seconds after it was asked for, given a minute ago."""
        decided = datetime.now(UTC) - timedelta(minutes=1)
        asked = decided - timedelta(seconds=waited)
        plain = {
            "event_id": uuid.uuid4().hex, "workflow_id": WORKFLOW, "version": VERSION, "tenant_id": action.tenant_id,
            "subject": REQUESTER, "tool": action.tool, "resource": action.resource,
            "action_digest": action_digest(action), "decision": "approve", "reason": "",
            "approver": self.approver.name, "requested_at": asked, "decided_at": decided,
            "expires_at": asked + LIFETIME,
        }  # fmt: skip
        return ApprovalEvent(**(plain | differs))

    def signs(self, action: Action, **differs: Any) -> str:
        return sign(self.event(action, **differs), self.key, self.kid)


async def trusted(shop: Shop, *people: Person) -> None:
    """What an operator does for each of them."""
    for person in people:
        await trust(shop.database.owner, person.public, "operator")


async def action_now(tools: Dispatcher, arguments: Mapping[str, Any], **token: Any) -> Action:
    """The action as a host sees it: from what the tools answer, never from the tables."""
    order = given(await ask(tools, "get_order", {"order_id": arguments["order_id"]}, **token))
    policy = given(await ask(tools, "check_return_policy", arguments, **token))
    return Action(
        tenant_id=token.get("tenant", "acme"),
        resource=arguments["order_id"],
        tool="create_return",
        contract_version=TOOLS["create_return"].version,
        arguments=dict(arguments),
        amount=Money(**policy["facts"]["refund"]),
        destination_ref=order["destination_ref"],
        order_version=order["version"],
        policy_version=policy["rule_version"],
    )


async def approve(tools: Dispatcher, approval: str, arguments: Mapping[str, Any], **token: Any) -> Answer:
    """Ask for the return with this approval; `key` is K unless another is named."""
    bound = {"key": "K", "approval": approval, "approved_version": VERSION}
    return await ask(tools, "create_return", arguments, **(bound | token))
