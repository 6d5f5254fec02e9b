"""What a seed file leaves to be worked out: each line's share of the discount, and what earlier returns gave back.

Invariant: the lines' `paid` and the shipping fee add up to the order's total, and earlier returns follow the same
arithmetic as those that this server makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared_contracts.returns import ReturnFacts, ReturnStatus
from tool_server.seed import SeedOrder, SeedReturn
from tool_server.seed_checks import gross, total
from tool_server.tools.facts import facts_of


@dataclass(frozen=True, slots=True)
class Rules:
    """What earlier returns need of a policy version."""

    version: str
    effective_from: datetime
    effective_until: datetime | None
    tenant_id: str | None
    return_fees: dict[str, int]

    def in_effect(self, tenant_id: str, moment: datetime) -> bool:
        """Tell whether the version holds for the tenant at the moment."""
        begun = self.effective_from <= moment and (self.effective_until is None or moment < self.effective_until)
        return begun and self.tenant_id in {None, tenant_id}


@dataclass(frozen=True, slots=True)
class Settled:
    """One earlier return with its amounts and the rules of its time."""

    made: SeedReturn
    rule_version: str
    facts: ReturnFacts


@dataclass(slots=True)
class _Ledger:
    """What was returned so far, while the returns of one order are gone through."""

    order: SeedOrder
    paid: dict[str, int]
    returned: dict[str, int] = field(default_factory=dict)
    refunded: dict[str, int] = field(default_factory=dict)
    shipping: int = 0
    net: int = 0

    def stated(self, moment: datetime, fee: int) -> dict[str, Any]:
        """State the order as `policies.facts` would at that time; the rules' verdict is not asked for."""
        order = self.order
        return {
            "currency": order.currency, "status": order.status.value, "requested_at": moment.isoformat(), "zone": "UTC",
            "return_fee": fee, "approval_threshold": None, "other_returns": self.net,
            "refundable": order.captured - order.refunded_outside - self.net,
            "shipping_left": order.shipping_fee - self.shipping,
            "lines": {
                line.line_id: {
                    "bought": line.quantity, "delivered": line.delivered_quantity, "paid": self.paid[line.line_id],
                    "returned": self.returned.get(line.line_id, 0), "refunded": self.refunded.get(line.line_id, 0),
                    "held_by": [], "delivered_at": None, "window_days": None, "category_known": True, "conflict": False,
                    "dangerous": line.dangerous, "final_sale": line.final_sale,
                }
                for line in order.lines
            },
        }  # fmt: skip

    def count(self, facts: ReturnFacts) -> None:
        """Count one return that stands."""
        for line in facts.lines:
            self.returned[line.line_id] = self.returned.get(line.line_id, 0) + line.requested
            self.refunded[line.line_id] = self.refunded.get(line.line_id, 0) + line.refund.amount
        self.shipping += facts.shipping_refund.amount
        self.net += facts.refund.amount


def shares(discount: int, amounts: Sequence[int]) -> list[int]:
    """Share a discount out over amounts by largest remainder; of equal remainders the earlier one gives way."""
    whole = sum(amounts)
    if whole == 0:
        return [0] * len(amounts)
    given, remainders = zip(*(divmod(discount * amount, whole) for amount in amounts), strict=True)
    short = discount - sum(given)
    neediest = set(sorted(range(len(amounts)), key=lambda at: -remainders[at])[:short])
    return [share + (at in neediest) for at, share in enumerate(given)]


def paid_by_line(order: SeedOrder) -> dict[str, int]:
    """Give what was paid for each line after the order's discount."""
    amounts = [gross(line) for line in order.lines]
    paid = [amount - share for amount, share in zip(amounts, shares(order.discount, amounts), strict=True)]
    assert sum(paid) + order.shipping_fee == total(order), "the shares add up"  # noqa: S101 — arithmetic of our own
    return {line.line_id: amount for line, amount in zip(order.lines, paid, strict=True)}


def settle_returns(order: SeedOrder, rules: Sequence[Rules]) -> list[Settled]:
    """Give an order's earlier returns their amounts, in the order in which they were made.

    Raises LookupError where no version of the rules was in effect.
    """
    ledger = _Ledger(order, paid_by_line(order))
    settled = []
    for made in sorted(order.returns, key=lambda made: made.created_at):
        valid = [version for version in rules if version.in_effect(order.tenant_id, made.created_at)]
        if not valid:
            raise LookupError(made.return_id)
        newest = max(valid, key=lambda version: (version.tenant_id is not None, version.effective_from))
        fee = newest.return_fees.get(order.currency, 0)
        facts = facts_of(ledger.stated(made.created_at, fee), made.lines, made.reason)
        if made.status is ReturnStatus.CREATED:
            ledger.count(facts)
        settled.append(Settled(made, newest.version, facts))
    return settled
