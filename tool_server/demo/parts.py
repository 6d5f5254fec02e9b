"""What orders are put together from: lines, deliveries, returns and draws that a key alone decides.

Invariant: a draw depends on its key and on nothing else, so that adding an order changes no other order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

from shared_contracts.orders import OrderStatus
from shared_contracts.returns import ReturnLine, ReturnReason, ReturnStatus
from tool_server.seed import SeedLine, SeedOrder, SeedReturn
from tool_server.seed_checks import gross, total

JST = timezone(timedelta(hours=9))
SNAPSHOT = datetime(2026, 7, 30, tzinfo=JST)
_SERIES = "demo-1"

Item = TypeVar("Item")


def below(limit: int, *key: object) -> int:
    """Draw a number from 0 up to `limit`, which it never reaches."""
    name = "/".join(str(part) for part in (_SERIES, *key))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % limit


def pick(choices: Sequence[Item], *key: object) -> Item:
    """Draw one of the choices."""
    return choices[below(len(choices), *key)]


def at(text: str) -> datetime:
    """Read a time of the shop's wall clock, `2026-07-20T14:05`; another offset may stand in the text."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=JST)


def line(number: int, name: str, category: str, price: int, **differs: Any) -> SeedLine:
    """Give one ordered line: one unit, on its way, unless told otherwise."""
    fields: dict[str, Any] = {
        "line_id": f"L{number}", "name": name, "category": category, "quantity": 1, "unit_price": price,
        "delivered_quantity": 0, "delivered_at": None, "final_sale": False, "dangerous": False,
    }  # fmt: skip
    return SeedLine(**(fields | differs))


def delivered(item: SeedLine, when: str | datetime, units: int | None = None) -> SeedLine:
    """Give the line as delivered, whole unless `units` says how much."""
    moment = at(when) if isinstance(when, str) else when
    quantity = item.quantity if units is None else units
    return item.model_copy(update={"delivered_quantity": quantity, "delivered_at": moment})


def goods(lines: Sequence[SeedLine]) -> int:
    """Sum up what the lines cost before discounts and fees, in minor units."""
    return sum(gross(item) for item in lines)


def order(tenant: str, number: str, customer: str, lines: Sequence[SeedLine], **differs: Any) -> SeedOrder:
    """Give one order in yen, ordered three days before its first delivery and paid in full."""
    dates = [item.delivered_at for item in lines if item.delivered_at is not None]
    ordered_at = min(dates, default=SNAPSHOT) - timedelta(days=3)
    fields: dict[str, Any] = {
        "tenant_id": tenant, "order_id": number, "customer_id": customer, "version": 1,
        "status": OrderStatus.DELIVERED, "ordered_at": ordered_at.replace(second=0), "currency": "JPY",
        "shipping_fee": 0, "discount": 0, "captured": 0, "refunded_outside": 0,
        "destination_ref": f"address://{tenant}/{customer}@1", "note": None, "lines": tuple(lines),
        "returns": (),
    }  # fmt: skip
    made = SeedOrder(**(fields | differs))
    return made if "captured" in differs else made.model_copy(update={"captured": total(made)})


def returned(
    number: str,
    when: str,
    lines: dict[str, int],
    reason: ReturnReason = ReturnReason.CHANGED_MIND,
    status: ReturnStatus = ReturnStatus.CREATED,
) -> SeedReturn:
    """Give a return that exists already; `lines` maps a line to its units."""
    units = tuple(ReturnLine(line_id=line_id, quantity=quantity) for line_id, quantity in lines.items())
    return SeedReturn(return_id=number, status=status, reason=reason, created_at=at(when), lines=units)
