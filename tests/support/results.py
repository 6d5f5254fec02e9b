"""One result per tool that fits its contract; invented, of one order A-1."""

from __future__ import annotations

from typing import Any

AT = "2026-07-01T09:00:00+09:00"
REF = "orders://A-1/1"


def _yen(amount: int) -> dict[str, Any]:
    return {"amount": amount, "currency": "JPY"}


_LINE = {
    "line_id": "L1", "name": "Desk lamp", "category": "lighting", "quantity": 2, "delivered_quantity": 2,
    "delivered_at": AT, "returned_quantity": 0, "unit_price": _yen(3000), "paid": _yen(6000),
}  # fmt: skip
_RETURN = {
    "return_id": "R-1", "order_id": "A-1", "status": "created", "reason": "changed_mind",
    "lines": [{"line_id": "L1", "quantity": 1, "refund": _yen(3000)}], "refund": _yen(3000),
    "created_at": AT, "rule_version": "policy-v12", "order_version": 1, "evidence_ref": REF,
}  # fmt: skip
_NOTICE = {
    "message_id": "<n1@mail.example>", "order_id": "A-1", "return_id": "R-1", "kind": "return", "corrects": None,
    "status": "sent", "channel": "maildir", "destination_ref": "customers://C-1/mail", "sent_at": AT,
    "evidence_ref": REF,
}  # fmt: skip

RESULTS: dict[str, dict[str, Any]] = {
    "get_order": {
        "order_id": "A-1", "version": 1, "status": "delivered", "ordered_at": AT, "lines": [_LINE],
        "shipping_fee": _yen(500), "discount": _yen(0), "paid": _yen(6500), "refunded": _yen(0),
        "destination_ref": "address://acme/C-1@1", "note": None, "snapshot": "orders-1", "evidence_ref": REF,
    },
    "create_return": _RETURN,
    "get_return": _RETURN,
    "find_return": {"found": True, "record": _RETURN, "closed_through": 0, "evidence_ref": REF},
    "send_return_notice": _NOTICE,
}  # fmt: skip
