"""A retail shop's own data as a seed file, with an overlay of delivery dates that the data does not have.

The overlay is labelled in the snapshot's name: everything delivered came on one day, and no rule of the shop's
own is claimed. One item is one line of one unit, so that an item that stands twice in an order is two lines.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from shared_contracts.orders import OrderStatus
from tool_server.seed import Seed, SeedAmount, SeedLine, SeedOrder, SeedPolicy, SeedRecipient, SeedRule

TENANT = "retail"
SNAPSHOT = "retail, overlay: all deliveries on 2026-07-20"
DELIVERED_AT = datetime(2026, 7, 20, 18, tzinfo=UTC)
ORDERED_AT = datetime(2026, 7, 15, 18, tzinfo=UTC)
STATUS = {
    "pending": OrderStatus.PENDING,
    "processed": OrderStatus.SHIPPED,
    "delivered": OrderStatus.DELIVERED,
    "cancelled": OrderStatus.CANCELLED,
}
POLICY = SeedPolicy(
    version="retail-overlay",
    owner="nobody: an overlay for measuring effects",
    effective_from=datetime(2026, 1, 1, tzinfo=UTC),
    effective_until=None,
    zone="America/New_York",
    rules=(SeedRule(category="retail", source="overlay", window_days=30, dangerous=False, final_sale=False),),
    approval_thresholds=(SeedAmount(currency="USD", amount=10**9),),
    return_fees=(),
)


def read_retail(file: Path) -> dict[str, Any]:
    """Read the file with decimal amounts: no binary fraction ever holds one."""
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
    return data


def cents(amount: Decimal | int) -> int:
    """Give an amount in cents; one that has parts of a cent is no amount."""
    exact = Decimal(amount) * 100
    assert exact == exact.to_integral_value(), amount
    return int(exact)


def _line(number: int, item: dict[str, Any], *, delivered: bool) -> SeedLine:
    return SeedLine(
        line_id=f"L{number}",
        name=item["name"],
        category="retail",
        quantity=1,
        unit_price=cents(item["price_usd"]),
        delivered_quantity=1 if delivered else 0,
        delivered_at=DELIVERED_AT if delivered else None,
        final_sale=False,
        dangerous=False,
    )


def _order(order: dict[str, Any]) -> SeedOrder:
    paid = {kind: sum(cents(p["amount_usd"]) for p in order["payments"] if p["type"] == kind) for kind in _KINDS}
    delivered = order["status"] == "delivered"
    return SeedOrder(
        tenant_id=TENANT,
        order_id=order["order_id"],
        customer_id=order["user_id"],
        version=1,
        status=STATUS[order["status"]],
        ordered_at=ORDERED_AT,
        currency="USD",
        shipping_fee=0,
        discount=0,
        captured=paid["payment"],
        refunded_outside=paid["refund"],
        destination_ref=f"address://{TENANT}/{order['user_id']}@1",
        note=None,
        lines=tuple(_line(number, item, delivered=delivered) for number, item in enumerate(order["items"], 1)),
        returns=(),
    )


_KINDS = ("payment", "refund")


def retail_seed(data: dict[str, Any]) -> Seed:
    """Give the whole file as a seed; every customer gets an invented address."""
    customers = sorted({order["user_id"] for order in data["orders"]})
    return Seed(
        snapshot=SNAPSHOT,
        policies=(POLICY,),
        orders=tuple(_order(order) for order in data["orders"]),
        recipients=tuple(
            SeedRecipient(
                tenant_id=TENANT, customer_id=one, email=f"{one.lower()}@mail.example", name=one, language="en"
            )
            for one in customers
        ),
    )


def lines_of(order: dict[str, Any], item_ids: list[str]) -> dict[str, int]:
    """Name the lines of the wanted items; an item that stands twice is taken once for each time it is wanted."""
    open_lines = {f"L{number}": item["item_id"] for number, item in enumerate(order["items"], 1)}
    wanted: dict[str, int] = {}
    for item_id in item_ids:
        line_id = next(line_id for line_id, item in open_lines.items() if item == item_id)
        del open_lines[line_id]
        wanted[line_id] = 1
    return wanted
