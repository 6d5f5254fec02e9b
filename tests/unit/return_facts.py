"""Facts of a return request for tests: an eligible one, and what to change in it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shared_contracts.base import Money
from shared_contracts.orders import OrderStatus
from shared_contracts.returns import LineFacts, ReturnFacts, ReturnReason

ASKED_AT = datetime(2026, 7, 30, 1, tzinfo=UTC)
DELIVERED_AT = ASKED_AT - timedelta(days=9)


def money(amount: int, currency: str = "JPY") -> Money:
    return Money(amount=amount, currency=currency)


def line(**differs: Any) -> LineFacts:
    """One delivered, ordinary line inside its window, with two of two units left."""
    ordinary = {
        "line_id": "L1", "requested": 1, "known": True, "left": 2, "delivered": 2, "delivered_at": DELIVERED_AT,
        "window_ends_at": ASKED_AT + timedelta(days=21), "category_known": True, "rules_conflict": False,
        "dangerous": False, "final_sale": False, "refund": money(1_800),
    }  # fmt: skip
    return LineFacts(**(ordinary | differs))


def facts(*lines: LineFacts, **differs: Any) -> ReturnFacts:
    """An eligible request for one line, unless told otherwise."""
    ordinary = {
        "order_status": OrderStatus.DELIVERED, "reason": ReturnReason.CHANGED_MIND, "requested_at": ASKED_AT,
        "lines": lines or (line(),), "return_fee": money(550), "shipping_refund": money(0),
        "refund": money(1_250), "other_returns": money(0), "earlier_returns": (),
        "approval_threshold": money(50_000),
    }  # fmt: skip
    return ReturnFacts(**(ordinary | differs))
