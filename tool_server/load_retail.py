"""Orders of a retail shop, in a format that others publish, read as a seed of a tenant of their own.

    order_id, user_id, status, payments ──► order, customer, status, what was captured and refunded
    items[n] ──► line L<n>, one unit each: an item that stands twice is two lines

The format knows neither dates nor rules. Without a date nothing of it is decided by itself; with one, the overlay and
the rule set `retail-demo-1` are labelled as what they are, in the snapshot's name and in the version's.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared_contracts.base import Identifier, Line
from shared_contracts.orders import OrderStatus
from shared_contracts.retail import POLICY_VERSION, TENANT, snapshot_of
from tool_server.load import SeedError, misread
from tool_server.seed import Seed, SeedAmount, SeedLine, SeedOrder, SeedPolicy, SeedRecipient, SeedRule
from tool_server.seed_checks import check

_NOON = time(18, tzinfo=UTC)
_BEFORE = timedelta(days=5)  # an order is made some days before it arrives
_CATEGORY = "retail"
_UNDATED = datetime(2026, 1, 1, tzinfo=UTC)
_RULES = SeedPolicy(
    version=POLICY_VERSION,
    tenant_id=TENANT,
    owner="a demonstration: no shop has these rules",
    effective_from=_UNDATED,
    effective_until=None,
    zone="America/New_York",
    rules=(SeedRule(category=_CATEGORY, source="demonstration", window_days=30, dangerous=False, final_sale=False),),
    approval_thresholds=(SeedAmount(currency="USD", amount=50_000),),
    return_fees=(),
)
_STATUS = {
    "pending": OrderStatus.PENDING,
    "processed": OrderStatus.SHIPPED,
    "delivered": OrderStatus.DELIVERED,
    "cancelled": OrderStatus.CANCELLED,
}
Dollars = Annotated[Decimal, Field(ge=0, max_digits=15, decimal_places=2)]


class _Read(BaseModel):
    """Others' format: what is not needed of it is left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Item(_Read):
    name: Line
    price_usd: Dollars


class _Payment(_Read):
    type: Literal["payment", "refund"]
    amount_usd: Dollars


class _Order(_Read):
    order_id: Identifier
    user_id: Identifier
    status: Literal["pending", "processed", "delivered", "cancelled"]
    items: Annotated[tuple[_Item, ...], Field(min_length=1, max_length=100)]
    payments: tuple[_Payment, ...]


class _Retail(_Read):
    currency: Literal["USD"]
    orders: tuple[_Order, ...]


def retail_seed(content: bytes, delivered_on: date | None) -> Seed:
    """Read a file's content; everything delivered came on that day (18:00 UTC). Raises SeedError with every problem."""
    try:
        read = _Retail.model_validate_json(content)
    except ValidationError as error:
        raise misread(error) from None
    came = None if delivered_on is None else datetime.combine(delivered_on, _NOON)
    seed = Seed(
        snapshot=snapshot_of(delivered_on),
        policies=(_RULES,),
        orders=tuple(_order(order, came) for order in read.orders),
        recipients=tuple(_recipients(order.user_id for order in read.orders)),
    )
    problems = list(check(seed))
    if problems:
        raise SeedError(problems)
    return seed


def _order(order: _Order, came: datetime | None) -> SeedOrder:
    return SeedOrder(
        tenant_id=TENANT,
        order_id=order.order_id,
        customer_id=order.user_id,
        version=1,
        status=_STATUS[order.status],
        ordered_at=_UNDATED if came is None else came - _BEFORE,
        currency="USD",
        shipping_fee=0,
        discount=0,
        captured=_paid(order, "payment"),
        refunded_outside=_paid(order, "refund"),
        destination_ref=f"address://{TENANT}/{order.user_id}@1",
        note=None,
        lines=tuple(
            _line(number, item, came, delivered=order.status == "delivered")
            for number, item in enumerate(order.items, 1)
        ),
        returns=(),
    )


def _line(number: int, item: _Item, came: datetime | None, *, delivered: bool) -> SeedLine:
    return SeedLine(
        line_id=f"L{number}",
        name=item.name,
        category=_CATEGORY,
        quantity=1,
        unit_price=_cents(item.price_usd),
        delivered_quantity=int(delivered),
        delivered_at=came if delivered else None,
        final_sale=False,
        dangerous=False,
    )


def _paid(order: _Order, kind: str) -> int:
    return sum(_cents(payment.amount_usd) for payment in order.payments if payment.type == kind)


def _cents(dollars: Decimal) -> int:
    return int(dollars * 100)  # two places at most were let in


def _recipients(customers: Iterable[str]) -> Iterable[SeedRecipient]:
    """The format has no addresses, so everybody gets an invented one."""
    for one in sorted(set(customers)):
        yield SeedRecipient(
            tenant_id=TENANT, customer_id=one, email=f"{one.lower()}@mail.example", name=one, language="en"
        )
