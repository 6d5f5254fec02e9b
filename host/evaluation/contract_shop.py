"""What the contract tests are about: a tenant of their own with an order for each trial, and good arguments for a tool.

Invariant: every trial has an order that no other has touched; the people and addresses are invented.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from shared_contracts.contract import Tool

TENANT, CUSTOMER, PRINCIPAL = "contract-test", "CT-C1", "contract-test"
ASKED_AT = datetime(2026, 7, 30, 3, 0, tzinfo=UTC)
LINES = [{"line_id": "L1", "quantity": 1}]
ORDERS, DEAR = 120, "CT-DEAR"
CHEAP_YEN, DEAR_YEN = 1_000, 90_000  # below and above every threshold of the packaged rules
# what has to be made first for an argument to be good: the tool that makes it
MADE_BY = {"return_id": "create_return", "corrects": "send_return_notice"}


def seed() -> dict[str, Any]:
    """Give a file for `kessai-tools load`: orders and their one customer, under the rules that are loaded already."""
    orders = [_order(f"CT-{number}", CHEAP_YEN) for number in range(1, ORDERS + 1)]
    person = {
        "tenant_id": TENANT, "customer_id": CUSTOMER, "email": "contract.test@mail.example", "name": "試験 見本",
        "language": "ja",
    }  # fmt: skip
    return {
        "snapshot": "2026-07-30T00:00:00+09:00",
        "policies": [],
        "orders": [*orders, _order(DEAR, DEAR_YEN)],
        "recipients": [person],
    }


def _order(order_id: str, yen: int) -> dict[str, Any]:
    line = {
        "line_id": "L1", "name": "試験用の品", "category": "kitchen", "quantity": 5, "unit_price": yen,
        "delivered_quantity": 5, "delivered_at": "2026-07-20T10:00:00+09:00", "final_sale": False, "dangerous": False,
    }  # fmt: skip
    return {
        "tenant_id": TENANT, "order_id": order_id, "customer_id": CUSTOMER, "version": 1, "status": "delivered",
        "ordered_at": "2026-07-15T09:00:00+09:00", "currency": "JPY", "shipping_fee": 0, "discount": 0,
        "captured": 5 * yen, "refunded_outside": 0, "destination_ref": f"address://{TENANT}/{CUSTOMER}@1",
        "note": None, "lines": [line], "returns": [],
    }  # fmt: skip


@dataclass
class Shelf:
    """Orders that no trial has had yet."""

    _numbers: Iterator[int] = field(default_factory=lambda: itertools.cycle(range(1, ORDERS + 1)))

    def order(self) -> str:
        """Take the next."""
        return f"CT-{next(self._numbers)}"


def arguments(tool: Tool, order_id: str, made: Mapping[str, str]) -> dict[str, Any]:
    """Fill a tool's arguments; `made` are the ids of what was made for it. KeyError: nobody has named a value."""
    good: dict[str, Any] = {"order_id": order_id, "lines": LINES, "reason": "changed_mind", **made}
    return {name: good[name] for name in tool.arguments.model_fields}
