"""A retail shop's file becomes a seed: the mapping, the two labels, and what is refused."""

from __future__ import annotations

import json
import re
from datetime import date
from typing import Any

import pytest

from shared_contracts.orders import OrderStatus
from shared_contracts.retail import POLICY_VERSION, TENANT
from tool_server.load import SeedError
from tool_server.load_retail import retail_seed

DAY = date(2026, 7, 20)
ORDER = {
    "order_id": "#W1",
    "user_id": "U-1",
    "status": "delivered",
    "items": [
        {"item_id": "7", "name": "Desk Lamp", "price_usd": 349.48, "options": {"colour": "black"}},
        {"item_id": "7", "name": "Desk Lamp", "price_usd": 349.48},
    ],
    "payments": [
        {"type": "payment", "amount_usd": 698.96, "method": "gift"},
        {"type": "refund", "amount_usd": 0.1, "method": "gift"},
    ],
    "fulfillments": [],
}


def file_of(*orders: dict[str, Any], **differs: Any) -> bytes:
    return json.dumps({"source": "others", "currency": "USD", "orders": orders, "returns": []} | differs).encode()


def test_an_order_keeps_its_cents_and_an_item_that_stands_twice_is_two_lines():
    (order,) = retail_seed(file_of(ORDER), DAY).orders
    assert (order.tenant_id, order.customer_id, order.status) == (TENANT, "U-1", OrderStatus.DELIVERED)
    assert [(line.line_id, line.unit_price) for line in order.lines] == [("L1", 34948), ("L2", 34948)]
    assert {line.quantity for line in order.lines} == {1}
    assert (order.captured, order.refunded_outside, order.currency) == (69896, 10, "USD")


def test_dates_and_rules_that_the_format_does_not_have_are_labelled_as_what_they_are():
    dated, undated = retail_seed(file_of(ORDER), DAY), retail_seed(file_of(ORDER), None)
    assert dated.snapshot == "retail, overlay: all deliveries on 2026-07-20"
    assert undated.snapshot == "retail, no delivery dates"
    assert {line.delivered_at for line in undated.orders[0].lines} == {None}
    assert {str(line.delivered_at) for line in dated.orders[0].lines} == {"2026-07-20 18:00:00+00:00"}
    ((threshold,),) = [one.approval_thresholds for one in dated.policies]
    assert (dated.policies[0].version, threshold.currency, threshold.amount) == (POLICY_VERSION, "USD", 50_000)


@pytest.mark.parametrize(
    ("status", "delivered"), [("pending", 0), ("processed", 0), ("cancelled", 0), ("delivered", 1)]
)
def test_only_what_was_delivered_has_units_that_could_go_back(status: str, delivered: int):
    refund = {"type": "refund", "amount_usd": 698.96}
    payments = [ORDER["payments"][0], refund] if status == "cancelled" else ORDER["payments"]
    (order,) = retail_seed(file_of(ORDER | {"status": status, "payments": payments}), DAY).orders
    assert {line.delivered_quantity for line in order.lines} == {delivered}


def test_everybody_gets_an_invented_address():
    people = retail_seed(file_of(ORDER, ORDER | {"order_id": "#W2"}), DAY).recipients
    assert [(one.customer_id, one.email) for one in people] == [("U-1", "u-1@mail.example")]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "the file"),
        (file_of(ORDER, currency="EUR"), "currency"),
        (file_of(ORDER | {"status": "lost"}), "orders[0].status"),
        (file_of(ORDER | {"items": []}), "orders[0].items"),
        (file_of(ORDER | {"items": [{"name": "x", "price_usd": 1.005}]}), "price_usd"),
        (file_of(ORDER | {"items": [{"name": "x", "price_usd": -1}]}), "price_usd"),
        (file_of({**ORDER, "order_id": "a b"}), "orders[0].order_id"),
        (file_of(ORDER, ORDER), "#W1"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(content: bytes, told: str):
    with pytest.raises(SeedError, match=re.escape(told)):
        retail_seed(content, DAY)
