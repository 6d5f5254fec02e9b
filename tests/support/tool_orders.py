"""Small invented orders and rules, as `load` reads them; every field that a test is not about has a plain value."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

from tool_server.seed import Seed

JST = timezone(timedelta(hours=9))
ASKED_AT = datetime(2026, 7, 30, 12, 0, tzinfo=JST)
DELIVERED_AT = datetime(2026, 7, 20, 10, 0, tzinfo=JST)
RULES = [
    {"category": "kitchen", "source": "shop", "window_days": 30, "dangerous": False, "final_sale": False},
    {"category": "paint", "source": "shop", "window_days": 30, "dangerous": True, "final_sale": False},
    {"category": "swimwear", "source": "shop", "window_days": 30, "dangerous": False, "final_sale": True},
    {"category": "torn", "source": "shop", "window_days": 30, "dangerous": False, "final_sale": False},
    {"category": "torn", "source": "brand", "window_days": 14, "dangerous": False, "final_sale": False},
]


def policy(version: str = "policy-v12", **changes: Any) -> dict[str, Any]:
    plain = {
        "version": version,
        "owner": "returns-desk",
        "effective_from": "2026-01-01T00:00:00+09:00",
        "effective_until": None,
        "zone": "Asia/Tokyo",
        "rules": RULES,
        "approval_thresholds": [{"currency": "JPY", "amount": 50_000}, {"currency": "USD", "amount": 35_000}],
        "return_fees": [{"currency": "JPY", "amount": 500}],
    }
    return plain | changes


def line(line_id: str = "L1", price: int = 3_000, quantity: int = 1, **changes: Any) -> dict[str, Any]:
    plain = {
        "line_id": line_id,
        "name": "マグカップ",
        "category": "kitchen",
        "quantity": quantity,
        "unit_price": price,
        "delivered_quantity": quantity,
        "delivered_at": DELIVERED_AT.isoformat(),
        "final_sale": False,
        "dangerous": False,
    }
    return plain | changes


def order(order_id: str = "A-1", *lines: dict[str, Any], **changes: Any) -> dict[str, Any]:
    bought = list(lines) if lines else [line()]
    plain = {
        "tenant_id": "acme",
        "order_id": order_id,
        "customer_id": "C-1",
        "version": 1,
        "status": "delivered",
        "ordered_at": "2026-07-15T09:00:00+09:00",
        "currency": "JPY",
        "shipping_fee": 0,
        "discount": 0,
        "refunded_outside": 0,
        "destination_ref": f"address://{order_id}",
        "note": None,
        "lines": bought,
        "returns": [],
    }
    made = plain | changes
    gross = sum(one["unit_price"] * one["quantity"] for one in bought)
    return {"captured": gross - made["discount"] + made["shipping_fee"]} | made


def recipient(customer: str = "C-1", **changes: Any) -> dict[str, Any]:
    plain = {
        "tenant_id": "acme",
        "customer_id": customer,
        "email": f"{customer.lower()}@example.com",
        "name": "見本 花子",
        "language": "ja",
    }
    return plain | changes


def seed(*orders: dict[str, Any], **changes: Any) -> Seed:
    people = {(one["tenant_id"], one["customer_id"]) for one in orders}
    plain = {
        "snapshot": "2026-07-30",
        "policies": [policy()],
        "orders": list(orders),
        "recipients": [recipient(customer, tenant_id=tenant) for tenant, customer in sorted(people)],
    }
    return Seed.model_validate_json(json.dumps(plain | changes))
