"""The bench's own shop: simple orders of invented people, one return each, and the case that asks for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SNAPSHOT = "2026-07-30T00:00:00+09:00"
TENANT = "acme-jp"
PRINCIPAL = "returns-desk@acme-jp"
_ORDERS_PER_CUSTOMER = 20


def write_seed(file: Path, orders: int) -> None:
    """Write what `kessai-tools load` reads; the return rules are those of the demo's shop."""
    customers = sorted({customer(number) for number in range(orders)})
    seed = {
        "snapshot": SNAPSHOT,
        "policies": [],
        "orders": [_order(number) for number in range(orders)],
        "recipients": [
            {"tenant_id": TENANT, "customer_id": name, "email": f"{name.lower()}@mail.example", "name": "試験 花",
             "language": "ja"}
            for name in customers
        ],
    }  # fmt: skip
    file.write_text(json.dumps(seed, ensure_ascii=False), encoding="utf-8")


def case(number: int, *, quantity: int = 1) -> dict[str, Any]:
    """Ask for a normal return of one order; it needs no approval and goes through."""
    return {
        "kind": "returns",
        "request_id": f"bench-{number}",
        "customer_id": customer(number),
        "order_id": order_id(number),
        "lines": [{"line_id": "L2", "quantity": quantity}],
        "reason": "changed_mind",
        "message": "マグカップを1つ返品したいです。色が思っていたものと違いました。",
        "requested_at": "2026-07-30T10:00:00+09:00",
    }


def order_id(number: int) -> str:
    """Name an order."""
    return f"B-{number:06}"


def customer(number: int) -> str:
    """Name whose an order is."""
    return f"CB-{number // _ORDERS_PER_CUSTOMER:05}"


def customer_of(order: str) -> str:
    """The same by the order's name."""
    return customer(int(order.removeprefix("B-")))


def _order(number: int) -> dict[str, Any]:
    return {
        "tenant_id": TENANT, "order_id": order_id(number), "customer_id": customer(number), "version": 1,
        "status": "delivered", "ordered_at": "2026-07-18T14:05:00+09:00", "currency": "JPY", "shipping_fee": 550,
        "discount": 500, "captured": 8630, "refunded_outside": 0,
        "destination_ref": f"address://{TENANT}/{customer(number)}@1", "note": None, "returns": [],
        "lines": [_line("L1", "電気ケトル 1.0L", "appliances", 1, 4980), _line("L2", "マグカップ", "kitchen", 2, 1800)],
    }  # fmt: skip


def _line(line_id: str, name: str, category: str, quantity: int, unit_price: int) -> dict[str, Any]:
    return {
        "line_id": line_id, "name": name, "category": category, "quantity": quantity, "unit_price": unit_price,
        "delivered_quantity": quantity, "delivered_at": "2026-07-21T14:05:00+09:00", "final_sale": False,
        "dangerous": False,
    }  # fmt: skip
