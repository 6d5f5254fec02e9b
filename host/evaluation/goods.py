"""Orders and people made up for a trial, as `kessai-tools load` takes them, under the rules that are loaded already.

Invariant: an order is delivered, of one line, and may still be sent back on the day that trials are of; the people and
addresses are invented.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def file(orders: Iterable[dict[str, Any]], people: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Give what is loaded."""
    taken = "2026-07-30T00:00:00+09:00"
    return {"snapshot": taken, "policies": [], "orders": list(orders), "recipients": list(people)}


def person(tenant: str, customer: str) -> dict[str, Any]:
    """Give a customer with an address that nobody has."""
    return {
        "tenant_id": tenant, "customer_id": customer, "email": f"{customer.lower()}@mail.example", "name": "試験 見本",
        "language": "ja",
    }  # fmt: skip


def order(tenant: str, order_id: str, customer: str, yen: int, quantity: int) -> dict[str, Any]:
    """Give an order of so many of one thing, each at this price."""
    line = {
        "line_id": "L1", "name": "試験用の品", "category": "kitchen", "quantity": quantity, "unit_price": yen,
        "delivered_quantity": quantity, "delivered_at": "2026-07-20T10:00:00+09:00", "final_sale": False,
        "dangerous": False,
    }  # fmt: skip
    return {
        "tenant_id": tenant, "order_id": order_id, "customer_id": customer, "version": 1, "status": "delivered",
        "ordered_at": "2026-07-15T09:00:00+09:00", "currency": "JPY", "shipping_fee": 0, "discount": 0,
        "captured": quantity * yen, "refunded_outside": 0, "destination_ref": f"address://{tenant}/{customer}@1",
        "note": None, "lines": [line], "returns": [],
    }  # fmt: skip
