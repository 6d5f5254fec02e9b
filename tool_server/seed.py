"""The file that `kessai-tools load` reads: orders, rules and recipients of one snapshot.

Amounts are integer minor units of the order's currency. Each line's share of the order-level discount is
allocated when the file is loaded (largest remainder), so that the lines' `paid` and the shipping fee add up
to what was paid.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from shared_contracts.base import Contract, Identifier, Label, Line, Prose, Quantity, Reference
from shared_contracts.orders import OrderStatus
from shared_contracts.returns import ReturnLine, ReturnReason, ReturnStatus

Minor = Annotated[int, Field(ge=0, le=10**15)]
Count = Annotated[int, Field(ge=0, le=10_000)]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]


class SeedRule(Contract):
    """The return rule of one category. Two rows that disagree on a category are a conflict, not a choice."""

    category: Label
    source: Label
    window_days: Annotated[int, Field(ge=0, le=3650)]
    dangerous: bool
    final_sale: bool


class SeedAmount(Contract):
    """An amount per currency."""

    currency: Currency
    amount: Minor


class SeedPolicy(Contract):
    """One version of the rules, with who answers for it and when it holds; a change is a new version.

    One that names a tenant is that tenant's alone, and wins there over those that are everybody's.
    """

    version: Label
    tenant_id: Identifier | None = None
    owner: Label
    effective_from: AwareDatetime
    effective_until: AwareDatetime | None
    zone: Label
    rules: Annotated[tuple[SeedRule, ...], Field(min_length=1)]
    approval_thresholds: tuple[SeedAmount, ...]
    return_fees: tuple[SeedAmount, ...]


class SeedLine(Contract):
    """One order line; `final_sale` and `dangerous` add to the category's rule, the stricter wins."""

    line_id: Identifier
    name: Line
    category: Label
    quantity: Quantity
    unit_price: Minor
    delivered_quantity: Count
    delivered_at: AwareDatetime | None
    final_sale: bool
    dangerous: bool


class SeedReturn(Contract):
    """A return that exists already in the snapshot."""

    return_id: Identifier
    status: ReturnStatus
    reason: ReturnReason
    created_at: AwareDatetime
    lines: Annotated[tuple[ReturnLine, ...], Field(min_length=1)]


class SeedOrder(Contract):
    """One order. `captured` is what was really received; `refunded_outside` what went back on other ways."""

    tenant_id: Identifier
    order_id: Identifier
    customer_id: Identifier
    version: Annotated[int, Field(ge=1)]
    status: OrderStatus
    ordered_at: AwareDatetime
    currency: Currency
    shipping_fee: Minor
    discount: Minor
    captured: Minor
    refunded_outside: Minor
    destination_ref: Reference
    note: Prose | None
    lines: Annotated[tuple[SeedLine, ...], Field(min_length=1, max_length=100)]
    returns: tuple[SeedReturn, ...]


class SeedRecipient(Contract):
    """Where a customer's notices go; only the notice family ever reads it."""

    tenant_id: Identifier
    customer_id: Identifier
    email: Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+$")]
    name: Line
    language: Annotated[str, Field(pattern=r"^(ja|en)$")]


class Seed(Contract):
    """A whole file. `snapshot` is the data version that `get_order` answers with."""

    snapshot: Label
    policies: tuple[SeedPolicy, ...]
    orders: tuple[SeedOrder, ...]
    recipients: tuple[SeedRecipient, ...]
