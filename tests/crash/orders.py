"""The orders that crash tests return, one each, in a file as `kessai-tools load` reads it, and the cases that ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support import tool_orders

TENANT = "acme-jp"
PRINCIPAL = "returns-desk@acme-jp"
_ORDERS_PER_CUSTOMER = 20


def write_orders(file: Path, numbers: range) -> None:
    """One line of two cups each; the return rules are those that the demo's shop has brought along."""
    orders = [_order(number) for number in numbers]
    people = sorted({order["customer_id"] for order in orders})
    seed = {
        "snapshot": "2026-07-30T00:00:00+09:00",
        "policies": [],
        "orders": orders,
        "recipients": [tool_orders.recipient(name, tenant_id=TENANT) for name in people],
    }
    file.write_text(json.dumps(seed, ensure_ascii=False), encoding="utf-8")


def case(number: int) -> dict[str, Any]:
    """A normal return of one order: it needs no approval and ends as COMPLETED."""
    return {
        "kind": "returns",
        "request_id": f"crash-{number}",
        "customer_id": _customer(number),
        "order_id": order_id(number),
        "lines": [{"line_id": "L1", "quantity": 1}],
        "reason": "changed_mind",
        "message": "マグカップを1つ返品したいです。",
        "requested_at": "2026-07-30T10:00:00+09:00",
    }


def order_id(number: int) -> str:
    return f"K-{number:06}"


def _customer(number: int) -> str:
    return f"CK-{number // _ORDERS_PER_CUSTOMER:05}"


def _order(number: int) -> dict[str, Any]:
    line = tool_orders.line(price=1_800, quantity=2)
    return tool_orders.order(order_id(number), line, tenant_id=TENANT, customer_id=_customer(number))
