"""From what the tables say to the facts of one request: windows, refunds, fees. Pure arithmetic in minor units.

The database states the order and the rules (`policies.facts`); the arithmetic is `shared_contracts.returns`.
Invariant: a refund is never above what was captured and not yet paid back, on whatever way.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared_contracts.base import Money
from shared_contracts.orders import OrderStatus
from shared_contracts.returns import (
    SELLER_FAULT,
    LineFacts,
    ReturnFacts,
    ReturnLine,
    ReturnReason,
    net_refund,
    refund_for,
    window_ends_at,
)

Stated = Mapping[str, Any]
_HOLDERS_MAX = 100  # as many as the contract's field takes; a customer is told a few


def facts_of(stated: Stated, lines: tuple[ReturnLine, ...], reason: ReturnReason) -> ReturnFacts:
    """Give the facts of a request over what `policies.facts` stated."""
    currency = stated["currency"]
    of_lines = tuple(_line(stated, line) for line in lines)
    shipping = _shipping(stated, lines, reason)
    fee = 0 if reason in SELLER_FAULT else stated["return_fee"]
    net = net_refund(sum(line.refund.amount for line in of_lines), shipping, fee)
    threshold = stated["approval_threshold"]
    return ReturnFacts(
        order_status=OrderStatus(stated["status"]),
        reason=reason,
        requested_at=datetime.fromisoformat(stated["requested_at"]),
        lines=of_lines,
        return_fee=Money(amount=fee, currency=currency),
        shipping_refund=Money(amount=shipping, currency=currency),
        refund=Money(amount=min(net, stated["refundable"]), currency=currency),
        other_returns=Money(amount=stated["other_returns"], currency=currency),
        earlier_returns=_holders(stated, lines),
        approval_threshold=None if threshold is None else Money(amount=threshold, currency=currency),
    )


def _line(stated: Stated, asked: ReturnLine) -> LineFacts:
    line = stated["lines"].get(asked.line_id)
    if line is None:
        return _unknown_line(asked, stated["currency"])
    delivered_at = None if line["delivered_at"] is None else datetime.fromisoformat(line["delivered_at"])
    days = line["window_days"]
    refund = refund_for(line["paid"], line["bought"], line["returned"], line["refunded"], asked.quantity)
    return LineFacts(
        line_id=asked.line_id,
        requested=asked.quantity,
        known=True,
        left=line["delivered"] - line["returned"],
        delivered=line["delivered"],
        delivered_at=delivered_at,
        window_ends_at=(
            None if delivered_at is None or days is None else window_ends_at(delivered_at, days, stated["zone"])
        ),
        category_known=line["category_known"],
        rules_conflict=line["conflict"],
        dangerous=line["dangerous"],
        final_sale=line["final_sale"],
        refund=Money(amount=refund, currency=stated["currency"]),
    )


def _unknown_line(asked: ReturnLine, currency: str) -> LineFacts:
    return LineFacts(
        line_id=asked.line_id, requested=asked.quantity, known=False, left=0, delivered=0, delivered_at=None,
        window_ends_at=None, category_known=False, rules_conflict=False, dangerous=False, final_sale=False,
        refund=Money(amount=0, currency=currency),
    )  # fmt: skip


def _holders(stated: Stated, lines: tuple[ReturnLine, ...]) -> tuple[str, ...]:
    """Name the returns that hold units of the requested lines, each once, the oldest of a line first."""
    known = [stated["lines"][line.line_id]["held_by"] for line in lines if line.line_id in stated["lines"]]
    return tuple(dict.fromkeys(number for numbers in known for number in numbers))[:_HOLDERS_MAX]


def _shipping(stated: Stated, lines: tuple[ReturnLine, ...], reason: ReturnReason) -> int:
    """Give back the shipping fee once, when the seller is at fault and nothing of the order stays bought."""
    asked = {line.line_id: line.quantity for line in lines}
    whole = all(line["returned"] + asked.get(line_id, 0) == line["bought"] for line_id, line in stated["lines"].items())
    return int(stated["shipping_left"]) if whole and reason in SELLER_FAULT else 0
