"""What a crash matrix is about: orders that nobody has returned yet, cheap ones and dear ones, and who asks for them.

Invariant: every cell has an order that no other has touched.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from host.evaluation import goods

TENANT = "acme-jp"
APPROVER, OPERATOR = "tanaka", "sato"
INVESTIGATION = Path(__file__).parents[2] / "data" / "crash-investigation.json"  # a kind is data here
CHEAP_YEN, DEAR_YEN = 1_800, 60_000  # below and above what needs nobody's yes
ORDERS = 400  # of either kind, for one place
AS_OF = "2026-07-30T10:00:00+09:00"  # while the goods may still be sent back
_ORDERS_PER_CUSTOMER = 20


def seed() -> dict[str, Any]:
    """Give a file for `kessai-tools load`, under the rules that are loaded already."""
    orders = (_order(number, dear=dear) for dear in (False, True) for number in range(ORDERS))
    people = (goods.person(TENANT, _customer(number)) for number in range(0, ORDERS, _ORDERS_PER_CUSTOMER))
    return goods.file(orders, people)


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


def _order(number: int, *, dear: bool) -> dict[str, Any]:
    yen = DEAR_YEN if dear else CHEAP_YEN
    return goods.order(TENANT, _order_id(number, dear=dear), _customer(number), yen, 2)
