"""The demo shop is what it claims: every feature is counted from the data itself, never from a label."""

import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC
from pathlib import Path

import pytest

from shared_contracts.orders import OrderStatus
from shared_contracts.returns import ReturnStatus
from tests.support.shop import (
    JST,
    SNAPSHOT,
    local_day,
    order_total,
    paid_by_line,
    policy_at,
    read_shop,
    units_returned,
    units_worth,
)
from tool_server.demo.generate import SHOP, render, shop
from tool_server.seed import SeedLine, SeedOrder

SEED = read_shop()
POLICY = policy_at(SEED, SNAPSHOT)
STEERING_WORDS = re.compile(r"approve|approved|policy waived|承認を省略|without any call", re.IGNORECASE)


def _readings(line: SeedLine) -> set[tuple[int, bool, bool]]:
    return {
        (rule.window_days, rule.dangerous, rule.final_sale) for rule in POLICY.rules if rule.category == line.category
    }


def _on_last_day(line: SeedLine) -> bool:
    if line.delivered_at is None or len(_readings(line)) != 1:
        return False
    ((days, _, _),) = _readings(line)
    return (local_day(SNAPSHOT) - local_day(line.delivered_at)).days == days


def _dates_differ(line: SeedLine) -> bool:
    return line.delivered_at is not None and local_day(line.delivered_at) != (line.delivered_at.astimezone(UTC).date())


def _just_before_midnight(line: SeedLine) -> bool:
    at = None if line.delivered_at is None else line.delivered_at.astimezone(JST)
    return at is not None and (at.hour, at.minute) == (23, 59)


def _any_line(test: Callable[[SeedLine], bool]) -> Callable[[SeedOrder], bool]:
    return lambda order: any(test(line) for line in order.lines)


def _returned(order: SeedOrder) -> int:
    return sum(units_returned(order, line.line_id) for line in order.lines)


def _delivered(order: SeedOrder) -> int:
    return sum(line.delivered_quantity for line in order.lines)


def _bought(order: SeedOrder) -> int:
    return sum(line.quantity for line in order.lines)


def _spent_outside(order: SeedOrder) -> bool:
    return 0 < order.refunded_outside < order.captured


def _open(order: SeedOrder) -> bool:
    return order.status not in {OrderStatus.CANCELLED, OrderStatus.REFUNDED}


FEATURES: dict[str, Callable[[SeedOrder], bool]] = {
    "several lines": lambda order: len(order.lines) >= 2,
    "quantities": _any_line(lambda line: line.quantity >= 2),
    "order-level discount": lambda order: order.discount > 0,
    "discount that does not divide": lambda order: (
        order.discount > 0 and any(paid_by_line(order)[x.line_id] % x.quantity for x in order.lines)
    ),
    "shipping fee": lambda order: order.shipping_fee > 0,
    "partly returned": lambda order: 0 < _returned(order) < _delivered(order),
    "wholly returned": lambda order: 0 < _delivered(order) == _returned(order),
    "return cancelled": lambda order: any(x.status is ReturnStatus.CANCELLED for x in order.returns),
    "undelivered": lambda order: _open(order) and _delivered(order) == 0,
    "partly delivered": lambda order: _open(order) and 0 < _delivered(order) < _bought(order),
    "cancelled": lambda order: order.status is OrderStatus.CANCELLED,
    "refunded": lambda order: order.status is OrderStatus.REFUNDED,
    "no delivery date": _any_line(lambda line: line.delivered_quantity > 0 and line.delivered_at is None),
    "delivery in the future": _any_line(lambda line: line.delivered_at is not None and line.delivered_at > SNAPSHOT),
    "dangerous by its rule": _any_line(lambda line: any(danger for _, danger, _ in _readings(line))),
    "dangerous by its line": _any_line(lambda line: line.dangerous),
    "final sale by its rule": _any_line(lambda line: any(final for _, _, final in _readings(line))),
    "final sale by its line": _any_line(lambda line: line.final_sale),
    "unknown category": _any_line(lambda line: not _readings(line)),
    "rules in conflict": _any_line(lambda line: len(_readings(line)) > 1),
    "two rows that agree": _any_line(
        lambda line: len(_readings(line)) == 1 and sum(x.category == line.category for x in POLICY.rules) > 1
    ),
    "gift of price 0": _any_line(lambda line: line.unit_price == 0),
    "store credit": lambda order: order.captured < order_total(order),
    "partly refunded outside": _spent_outside,
    "US dollars": lambda order: order.currency == "USD",
    "currency without threshold": lambda order: (
        order.currency not in {amount.currency for amount in POLICY.approval_thresholds}
    ),
    "steering text": lambda order: order.note is not None and bool(STEERING_WORDS.search(order.note)),
    "high value": _any_line(lambda line: line.unit_price * line.quantity >= 50_000),
    "last day of the window": _any_line(_on_last_day),
    "delivered at 23:59": _any_line(_just_before_midnight),
    "dates differ in Tokyo and UTC": _any_line(_dates_differ),
    "second tenant": lambda order: order.tenant_id == "hoshi-jp",
}
COMMON = {"several lines", "quantities", "order-level discount", "shipping fee", "second tenant"}


def test_the_committed_file_is_what_the_generator_writes_byte_for_byte():
    assert SHOP.read_bytes() == render(shop()).encode()


def test_there_are_at_least_150_orders_in_two_tenants():
    assert len(SEED.orders) >= 150
    assert set(Counter(order.tenant_id for order in SEED.orders)) == {"acme-jp", "hoshi-jp"}


@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_stands_in_at_least_five_orders(feature):
    assert sum(FEATURES[feature](order) for order in SEED.orders) >= 5


def test_twenty_orders_have_three_or_more_features_beside_the_everyday_ones():
    rare = [test for name, test in FEATURES.items() if name not in COMMON]
    assert sum(sum(test(order) for test in rare) >= 3 for order in SEED.orders) >= 20


def test_enough_orders_are_plain_for_ordinary_returns_of_both_tenants():
    oddities = [test for name, test in FEATURES.items() if name not in COMMON | {"US dollars"}]
    plain = Counter(o.tenant_id for o in SEED.orders if not any(test(o) for test in oddities))
    assert plain["acme-jp"] >= 35
    assert plain["hoshi-jp"] >= 10


def test_an_order_number_is_one_per_tenant_and_a_return_number_one_in_all():
    orders = [(order.tenant_id, order.order_id) for order in SEED.orders]
    returns = [made.return_id for order in SEED.orders for made in order.returns]
    assert len(set(orders)) == len(orders)
    assert len(set(returns)) == len(returns)
    assert len({number for _, number in orders}) < len(orders), "one number stands in both tenants"


def test_every_customer_with_an_order_can_be_written_to():
    known = {(one.tenant_id, one.customer_id) for one in SEED.recipients}
    assert {(order.tenant_id, order.customer_id) for order in SEED.orders} <= known
    assert {one.language for one in SEED.recipients} == {"ja", "en"}


@pytest.mark.parametrize("order", SEED.orders, ids=lambda order: f"{order.tenant_id}/{order.order_id}")
def test_the_sums_of_an_order_agree(order):
    assert order.discount <= sum(line.quantity * line.unit_price for line in order.lines)
    assert sum(paid_by_line(order).values()) + order.shipping_fee == order_total(order)
    assert 0 <= order.refunded_outside <= order.captured <= order_total(order)
    assert len({line.line_id for line in order.lines}) == len(order.lines)
    for line in order.lines:
        assert units_returned(order, line.line_id) <= line.delivered_quantity <= line.quantity
        assert line.delivered_at is None or line.delivered_quantity > 0
        assert line.delivered_at is None or order.ordered_at < line.delivered_at


@pytest.mark.parametrize("order", [x for x in SEED.orders if x.returns], ids=lambda order: order.order_id)
def test_what_went_back_already_was_delivered_first_and_received_before(order):
    by_id, paid = {line.line_id: line for line in order.lines}, paid_by_line(order)
    worth = sum(
        units_worth(paid[line_id], line.quantity, 0, units_returned(order, line_id)) for line_id, line in by_id.items()
    )
    assert worth + order.refunded_outside <= order.captured
    for made in order.returns:
        assert made.created_at < SNAPSHOT
        for part in made.lines:
            line = by_id[part.line_id]
            assert line.delivered_at is None or line.delivered_at < made.created_at


def test_one_rule_set_holds_at_the_snapshot_and_the_one_before_ends_where_it_begins():
    assert POLICY.version == "policy-v12"
    assert [policy.version for policy in SEED.policies] == ["policy-v11", "policy-v12"]
    assert SEED.policies[0].effective_until == POLICY.effective_from
    assert SEED.policies[0].rules != POLICY.rules
    assert {(one.currency, one.amount) for one in POLICY.approval_thresholds} == {
        ("JPY", 50_000),
        ("USD", 35_000),
    }


LOOK_ALIKES = {
    "telephone number": r"(?<![\d-])0\d{1,4}-\d{1,4}-\d{3,4}(?![\d-])|\+81[\d -]{8,}",
    "postal code": r"〒|(?<![\d-])\d{3}-\d{4}(?![\d-])",
    "card or personal number": r"(?<!\d)\d{4}[ -]?\d{4}[ -]?\d{4}(?:[ -]?\d{1,4})?(?!\d)",
    "web address": r"https?://",
}


ROOT = Path(__file__).parents[2]
EVALUATED = [*SHOP.parent.glob("*.json"), *(ROOT / "host/data/evaluation").rglob("*.toml"),
             *(ROOT / "examples").rglob("*.json")]  # fmt: skip
PSEUDONYM = r"C-\d{4}|P-\d{4}|U-[a-z]{3}"  # the invented retail shop's have three letters


def evaluated() -> str:
    """All data that an evaluation, an example or a test of the whole works with, but the numbers of requests."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in EVALUATED)
    return re.sub(r"req-\d{8}-\d{4}", "", text)


@pytest.mark.parametrize("kind", LOOK_ALIKES)
def test_nothing_in_any_data_looks_like_a_real_person(kind):
    assert re.findall(LOOK_ALIKES[kind], evaluated()) == []


def test_every_mail_address_ends_in_a_name_that_nobody_can_own():
    addresses = re.findall(r"[^\s\"@]+@([A-Za-z][A-Za-z0-9.-]*\w)", evaluated())
    assert addresses
    assert {address.rsplit(".", 1)[-1] for address in addresses} == {"example"}


def test_a_customer_is_a_pseudonym_in_every_file():
    assert {"beyond", "retail", "claims", "returns", "evaluation"} <= {file.parent.name for file in EVALUATED}
    found = re.findall(r"\b(?:customer|user|claimant)_id\"?\s*[:=]\s*\"([^\"]*)\"", evaluated())
    assert len(found) > 400
    assert [one for one in found if not re.fullmatch(PSEUDONYM, one)] == []


def test_the_file_can_be_read_line_by_line():
    text = SHOP.read_text(encoding="utf-8")
    assert max(len(line) for line in text.splitlines()) < 600
    assert json.loads(text)["snapshot"] == "2026-07-30T00:00:00+09:00"
