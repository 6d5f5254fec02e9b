"""Refunds: integer minor units whose parts add up to what was paid, and never to a unit more."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shared_contracts.base import Money, dump, parse
from shared_contracts.digest import digest
from shared_contracts.returns import CreateReturn, net_refund, refund_for
from tests.unit.return_facts import facts, line, money

AMOUNTS = st.integers(0, 10**9)


def returned_in(parts: list[int], paid: int, bought: int) -> list[int]:
    """Return a line in these parts, one after the other."""
    amounts: list[int] = []
    units = 0
    for part in parts:
        amounts.append(refund_for(paid, bought, units, sum(amounts), part))
        units += part
    return amounts


@pytest.mark.parametrize(
    ("paid", "bought", "parts", "amounts"),
    [
        (27_000, 3, [2, 1], [18_000, 9_000]),  # three at 100.00 less a tenth
        (8_999, 3, [1, 1, 1], [2_999, 3_000, 3_000]),  # three at 33.33 less 10.00
        (8_999, 3, [3], [8_999]),
        (1_800, 3, [1, 1, 1], [600, 600, 600]),  # two paid, one free, as one line of three
        (10_000, 3, [1, 2], [3_333, 6_667]),  # a bundle of three
        (0, 5, [2, 3], [0, 0]),
        (1, 3, [1, 1, 1], [0, 0, 1]),
        (34_948, 1, [1], [34_948]),
        (2 * 34_948, 2, [1, 1], [34_948, 34_948]),
    ],
)
def test_parts_of_a_line_are_worth_what_was_paid_for_them(paid, bought, parts, amounts):
    assert returned_in(parts, paid, bought) == amounts


@st.composite
def _ways_to_return_everything(draw: st.DrawFn) -> tuple[int, int, list[int]]:
    parts = draw(st.lists(st.integers(1, 50), min_size=1, max_size=8))
    return draw(AMOUNTS), sum(parts), parts


@given(_ways_to_return_everything())
def test_however_a_line_goes_back_its_parts_add_up_to_what_was_paid(way):
    paid, bought, parts = way
    amounts = returned_in(parts, paid, bought)
    assert min(amounts) >= 0
    assert sum(amounts) == paid


@given(paid=AMOUNTS, data=st.data())
def test_what_was_refunded_never_exceeds_what_was_paid_also_when_returns_are_cancelled_in_between(paid, data):
    bought = data.draw(st.integers(1, 12))
    open_returns: list[tuple[int, int]] = []
    for _ in range(data.draw(st.integers(1, 12))):
        units = sum(part for part, _ in open_returns)
        if open_returns and data.draw(st.booleans()):
            open_returns.pop(data.draw(st.integers(0, len(open_returns) - 1)))
        elif units < bought:
            part = data.draw(st.integers(1, bought - units))
            amount = refund_for(paid, bought, units, sum(refund for _, refund in open_returns), part)
            open_returns.append((part, amount))
        refunded = sum(refund for _, refund in open_returns)
        assert 0 <= refunded <= paid
        if sum(part for part, _ in open_returns) == bought:
            assert refunded == paid


@given(paid=AMOUNTS, bought=st.integers(1, 100), asked=st.integers(1, 10_000))
def test_asking_for_more_units_than_were_bought_is_worth_the_whole_line_at_most(paid, bought, asked):
    assert 0 <= refund_for(paid, bought, 0, 0, asked) <= paid


@given(lines=AMOUNTS, shipping=AMOUNTS, fee=AMOUNTS)
def test_a_net_refund_is_never_below_nothing_and_never_above_goods_and_shipping(lines, shipping, fee):
    net = net_refund(lines, shipping, fee)
    assert 0 <= net <= lines + shipping
    assert net == lines + shipping - fee or (net == 0 and fee > lines + shipping)


def test_a_fee_above_the_goods_leaves_nothing_to_pay_and_nothing_owed():
    assert net_refund(400, 0, 500) == 0


@pytest.mark.parametrize("cents", [34_948, 14_505, 8_165, 8_175, 30, 5_997, 10**15])
def test_an_amount_has_one_digest_before_and_after_it_crossed_the_wire(cents):
    amount = money(cents, "USD")
    crossed = parse(Money, json.loads(json.dumps(dump(amount))))
    assert crossed == amount
    assert digest(dump(crossed)) == digest(dump(amount))


@pytest.mark.parametrize(
    "spelt",
    [349.48, 34948.0, "34948", "10,00", "1.234,56", "1 000", "５００", "٥٠٠", "+5", "5e2", " 5", "NaN", None,
     True, -1, 10**15 + 1, float("inf"), float("nan"), [1]],
    ids=repr,
)  # fmt: skip
def test_an_amount_is_a_plain_integer_of_minor_units_and_nothing_else(spelt):
    with pytest.raises(ValidationError):
        parse(Money, {"amount": spelt, "currency": "USD"})


@pytest.mark.parametrize("currency", ["usd", "", "US", "USDT", "$", None, "ＵＳＤ", "USD\n"])
def test_a_currency_is_three_capital_letters(currency):
    with pytest.raises(ValidationError):
        parse(Money, {"amount": 1, "currency": currency})


def test_facts_in_two_currencies_are_no_facts():
    with pytest.raises(ValidationError, match="currency"):
        facts(approval_threshold=money(50_000, "USD"))
    with pytest.raises(ValidationError, match="currency"):
        facts(line(refund=money(1_800, "USD")))


@pytest.mark.parametrize("second", [1, 2])
def test_a_line_that_stands_twice_is_refused_whatever_its_quantities(second):
    lines = [{"line_id": "L1", "quantity": 1}, {"line_id": "L1", "quantity": second}]
    with pytest.raises(ValidationError, match="stands twice"):
        parse(CreateReturn, {"order_id": "A-1", "lines": lines, "reason": "other"})


@pytest.mark.parametrize("quantity", [0, -1, 10_001, 2**31, 9_223_372_036_854_775_808, 1.0, "1", True, None])
def test_a_quantity_is_a_whole_number_from_one_to_ten_thousand(quantity):
    lines = [{"line_id": "L1", "quantity": quantity}]
    with pytest.raises(ValidationError):
        parse(CreateReturn, {"order_id": "A-1", "lines": lines, "reason": "other"})
