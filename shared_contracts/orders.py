"""The order family on the wire: what was bought, delivered, paid and already returned. No personal data."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from shared_contracts.base import Contract, Identifier, Label, Line, Money, Prose, Quantity, Reference


class OrderStatus(StrEnum):
    """Where an order stands; `refunded` is fully refunded."""

    PENDING = "pending"
    SHIPPED = "shipped"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"
    REFUNDED = "refunded"


class GetOrder(Contract):
    """Arguments of `get_order`."""

    order_id: Identifier


class OrderLine(Contract):
    """One line; quantities are units, `paid` is the line's share after order-level discounts."""

    line_id: Identifier
    name: Line
    category: Label
    quantity: Quantity
    delivered_quantity: Annotated[int, Field(ge=0, le=10_000)]
    delivered_at: AwareDatetime | None
    returned_quantity: Annotated[int, Field(ge=0, le=10_000)]
    unit_price: Money
    paid: Money


class Order(Contract):
    """Result of `get_order`. `note` is untrusted text, `snapshot` the data version that answered.

    `destination_ref` names where money goes back to without telling the account or the address.
    """

    order_id: Identifier
    version: Annotated[int, Field(ge=1)]
    status: OrderStatus
    ordered_at: AwareDatetime
    lines: Annotated[tuple[OrderLine, ...], Field(min_length=1, max_length=100)]
    shipping_fee: Money
    discount: Money
    paid: Money
    refunded: Money
    destination_ref: Reference
    note: Prose | None
    snapshot: Label
    evidence_ref: Reference
