"""What a crash matrix is about: orders that nobody has returned yet, cheap ones and dear ones, and who asks for them.

Invariant: every cell has an order that no other has touched; the people and addresses are invented.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TENANT = "acme-jp"
APPROVER, OPERATOR = "tanaka", "sato"
INVESTIGATION = Path(__file__).parents[2] / "data" / "crash-investigation.json"  # a kind is data here
CHEAP_YEN, DEAR_YEN = 1_800, 60_000  # below and above what needs nobody's yes
ORDERS = 400  # of either kind, for one place
AS_OF = "2026-07-30T10:00:00+09:00"  # while the goods may still be sent back
_ORDERS_PER_CUSTOMER = 20


def seed() -> dict[str, Any]:
    """Give a file for `kessai-tools load`, under the rules that are loaded already."""
    numbers = range(ORDERS)
    return {
        "snapshot": "2026-07-30T00:00:00+09:00",
        "policies": [],
        "orders": [_order(number, dear=dear) for dear in (False, True) for number in numbers],
        "recipients": [_person(number) for number in range(0, ORDERS, _ORDERS_PER_CUSTOMER)],
    }


def returning(number: int, *, dear: bool) -> dict[str, Any]:
    """Ask for the return of one order."""
    return {
        "kind": "returns", "request_id": f"crash-{_order_id(number, dear=dear)}", "customer_id": _customer(number),
        "order_id": _order_id(number, dear=dear), "lines": [{"line_id": "L1", "quantity": 1}],
        "reason": "changed_mind", "message": "1つ返品したいです。", "requested_at": AS_OF,
    }  # fmt: skip


def investigating(number: int) -> dict[str, Any]:
    """Ask for an investigation over the packaged data, which goes through four reads and writes nothing."""
    asked: dict[str, Any] = json.loads(INVESTIGATION.read_text("utf-8"))
    return {**asked, "request_id": f"crash-investigation-{number}"}


def _order_id(number: int, *, dear: bool) -> str:
    return f"{'KD' if dear else 'KC'}-{number:06}"


def _customer(number: int) -> str:
    return f"CK-{number // _ORDERS_PER_CUSTOMER:05}"


def _person(number: int) -> dict[str, Any]:
    customer = _customer(number)
    return {
        "tenant_id": TENANT, "customer_id": customer, "email": f"{customer.lower()}@mail.example", "name": "試験 見本",
        "language": "ja",
    }  # fmt: skip


def _order(number: int, *, dear: bool) -> dict[str, Any]:
    yen, customer = DEAR_YEN if dear else CHEAP_YEN, _customer(number)
    line = {
        "line_id": "L1", "name": "試験用の品", "category": "kitchen", "quantity": 2, "unit_price": yen,
        "delivered_quantity": 2, "delivered_at": "2026-07-20T10:00:00+09:00", "final_sale": False, "dangerous": False,
    }  # fmt: skip
    return {
        "tenant_id": TENANT, "order_id": _order_id(number, dear=dear), "customer_id": customer, "version": 1,
        "status": "delivered", "ordered_at": "2026-07-15T09:00:00+09:00", "currency": "JPY", "shipping_fee": 0,
        "discount": 0, "captured": 2 * yen, "refunded_outside": 0, "destination_ref": f"address://{TENANT}/{customer}@1",
        "note": None, "lines": [line], "returns": [],
    }  # fmt: skip
