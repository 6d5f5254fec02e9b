"""The decision table of returns: every row, every combination of what the rows look at, every boundary."""

from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from shared_contracts.orders import OrderStatus
from shared_contracts.returns import DECISION_TABLE, Ask, ReturnReason, Ruling, RulingOutcome, rule
from tests.unit.return_facts import ASKED_AT, DELIVERED_AT, facts, line, money

NOTHING = frozenset[Ask]()
DAY = timedelta(days=1)
UNKNOWN_LINE = {
    "known": False, "left": 0, "delivered": 0, "delivered_at": None, "window_ends_at": None,
    "category_known": False, "refund": money(0),
}  # fmt: skip
LATE = {"window_ends_at": ASKED_AT - DAY, "delivered_at": DELIVERED_AT - 40 * DAY}
DEFECT = {"reason": ReturnReason.DEFECTIVE}

# (where it leads, why, what differs in the line, what differs in the request, what is asked for)
ROWS: tuple[tuple[RulingOutcome, str, dict[str, Any], dict[str, Any], frozenset[Ask]], ...] = (
    (RulingOutcome.NEEDS_REVIEW, "out_of_scope", {}, {}, frozenset({Ask.REFUND})),
    (RulingOutcome.NEEDS_REVIEW, "out_of_scope", {}, {}, frozenset({Ask.COLLECT})),
    (RulingOutcome.NEEDS_REVIEW, "out_of_scope", {}, {}, frozenset({Ask.EXCEPTION})),
    (RulingOutcome.NEEDS_REVIEW, "undecidable", {"category_known": False, "window_ends_at": None}, {}, NOTHING),
    (RulingOutcome.NEEDS_REVIEW, "undecidable", {"rules_conflict": True}, {}, NOTHING),
    (RulingOutcome.NEEDS_REVIEW, "undecidable", {"delivered_at": None, "window_ends_at": None}, {}, NOTHING),
    (RulingOutcome.NEEDS_REVIEW, "undecidable", {"delivered_at": ASKED_AT + DAY}, {}, NOTHING),
    (RulingOutcome.NEEDS_REVIEW, "undecidable", {}, {"approval_threshold": None}, NOTHING),
    (RulingOutcome.REJECTED, "not_returnable", {}, {"order_status": OrderStatus.CANCELLED}, NOTHING),
    (RulingOutcome.REJECTED, "not_returnable", {}, {"order_status": OrderStatus.REFUNDED}, NOTHING),
    (RulingOutcome.REJECTED, "not_returnable", {"left": 0, "delivered": 0, "delivered_at": None}, {}, NOTHING),
    (RulingOutcome.REJECTED, "not_returnable", UNKNOWN_LINE, {}, NOTHING),
    (RulingOutcome.REJECTED, "already_returned", {"requested": 3}, {}, NOTHING),
    (RulingOutcome.REJECTED, "already_returned", {"left": 0}, {}, NOTHING),
    (RulingOutcome.NEEDS_REVIEW, "dangerous_goods", {"dangerous": True}, {}, NOTHING),
    (RulingOutcome.NEEDS_REVIEW, "final_sale_defect", {"final_sale": True}, DEFECT, NOTHING),
    (RulingOutcome.REJECTED, "final_sale", {"final_sale": True}, {}, NOTHING),
    (RulingOutcome.NEEDS_REVIEW, "exception_claimed", LATE, DEFECT, NOTHING),
    (RulingOutcome.REJECTED, "out_of_period", LATE, {}, NOTHING),
    (RulingOutcome.APPROVAL, "high_value", {}, {"refund": money(50_000)}, NOTHING),
    (RulingOutcome.ELIGIBLE, "eligible", {}, {}, NOTHING),
    (RulingOutcome.ELIGIBLE, "eligible", {}, DEFECT, NOTHING),
)


@pytest.mark.parametrize(
    ("outcome", "reason", "in_line", "in_request", "asks"), ROWS, ids=lambda x: x if isinstance(x, str) else ""
)
def test_each_row_decides_the_request_that_differs_in_that_one_point(outcome, reason, in_line, in_request, asks):
    assert rule(facts(line(**in_line), **in_request), asks) == Ruling(outcome, reason)


def test_every_row_of_the_table_has_an_example_here():
    assert {row.reason for row in DECISION_TABLE} == {reason for _, reason, *_ in ROWS}


def test_an_order_that_is_missing_or_foreign_is_rejected_whatever_is_asked():
    assert rule(None, NOTHING) == Ruling(RulingOutcome.REJECTED, "order_not_found")
    assert rule(None, frozenset(Ask)) == Ruling(RulingOutcome.REJECTED, "order_not_found")


# --- the whole truth table of one line -----------------------------------------------------------------------


@dataclass(frozen=True)
class Situation:
    """One request in words; each word is one thing that a row may look at."""

    known: bool
    arrival: str
    category: str
    units: str
    dangerous: bool
    final_sale: bool
    reason: ReturnReason
    status: OrderStatus
    amount: str
    asks: bool


WORDS = (
    (True, False),
    ("in time", "late", "not at all", "no date", "in the future"),
    ("known", "unknown", "in conflict"),
    ("enough", "too few"),
    (True, False),
    (True, False),
    tuple(ReturnReason),
    tuple(OrderStatus),
    ("below", "at threshold", "no threshold"),
    (True, False),
)
LINES = {
    "in time": {},
    "late": LATE,
    "not at all": {"left": 0, "delivered": 0, "delivered_at": None, "window_ends_at": None},
    "no date": {"delivered_at": None, "window_ends_at": None},
    "in the future": {"delivered_at": ASKED_AT + DAY, "window_ends_at": ASKED_AT + 31 * DAY},
}


def request_of(it: Situation):
    in_line = dict(LINES[it.arrival]) | {
        "category_known": it.category != "unknown",
        "rules_conflict": it.category == "in conflict",
        "requested": 1 if it.units == "enough" else 9,
        "dangerous": it.dangerous,
        "final_sale": it.final_sale,
    }
    if it.category == "unknown":
        in_line["window_ends_at"] = None
    if not it.known:
        in_line |= UNKNOWN_LINE | {"rules_conflict": False, "dangerous": False, "final_sale": False}
    return facts(
        line(**in_line),
        reason=it.reason,
        order_status=it.status,
        refund=money(50_000 if it.amount == "at threshold" else 49_999),
        approval_threshold=None if it.amount == "no threshold" else money(50_000),
    )


def expected(it: Situation) -> str:
    """The order of the rows as the rules are written for people, word by word."""
    sellers_fault = it.reason.value in {"defective", "wrong_item", "damaged"}
    closed = it.status.value in {"cancelled", "refunded"}
    unclear_line = it.category != "known" or it.arrival in {"no date", "in the future"}
    ladder = [
        (it.asks, "out_of_scope"),
        (it.amount == "no threshold" or (it.known and unclear_line), "undecidable"),
        (closed or not it.known or it.arrival == "not at all", "not_returnable"),
        (it.units == "too few", "already_returned"),
        (it.dangerous, "dangerous_goods"),
        (it.final_sale, "final_sale_defect" if sellers_fault else "final_sale"),
        (it.arrival == "late", "exception_claimed" if sellers_fault else "out_of_period"),
        (it.amount == "at threshold", "high_value"),
    ]
    return next((reason for applies, reason in ladder if applies), "eligible")


OUTCOMES = {
    "out_of_scope": "needs_review", "undecidable": "needs_review", "not_returnable": "rejected",
    "already_returned": "rejected", "dangerous_goods": "needs_review", "final_sale_defect": "needs_review",
    "final_sale": "rejected", "exception_claimed": "needs_review", "out_of_period": "rejected",
    "high_value": "approval", "eligible": "eligible",
}  # fmt: skip


@pytest.mark.parametrize("status", OrderStatus)
def test_the_whole_truth_table_agrees_with_the_rules_as_written_for_people(status):
    seen = set()
    for words in product(*WORDS[:7], (status,), *WORDS[8:]):
        it = Situation(*words)
        found = rule(request_of(it), frozenset({Ask.EXCEPTION}) if it.asks else NOTHING)
        assert found.reason == expected(it), it
        assert found.outcome.value == OUTCOMES[found.reason]
        seen.add(found.reason)
    closed = status in {OrderStatus.CANCELLED, OrderStatus.REFUNDED}
    assert seen == ({"out_of_scope", "undecidable", "not_returnable"} if closed else set(OUTCOMES))


# --- several lines: a request is decided whole ---------------------------------------------------------------

ODD_LINES = {reason: in_line for _, reason, in_line, in_request, _ in ROWS if in_line and not in_request}
PRECEDENCE = [row.reason for row in DECISION_TABLE]


@pytest.mark.parametrize("first", ODD_LINES)
@pytest.mark.parametrize("second", ODD_LINES)
def test_the_first_row_that_any_line_meets_decides_whatever_order_the_lines_stand_in(first, second):
    one, two = line(line_id="L1", **ODD_LINES[first]), line(line_id="L2", **ODD_LINES[second])
    strictest = min(first, second, key=PRECEDENCE.index)
    assert rule(facts(one, two), NOTHING).reason == strictest
    assert rule(facts(two, one), NOTHING).reason == strictest


@pytest.mark.parametrize("reason", ODD_LINES)
def test_one_odd_line_is_enough_beside_any_number_of_ordinary_ones(reason):
    ordinary = [line(line_id=f"L{number}") for number in range(2, 6)]
    assert rule(facts(*ordinary, line(**ODD_LINES[reason])), NOTHING).reason == reason


# --- amounts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refund", "others", "threshold", "currency", "reason"),
    [
        (49_999, 0, 50_000, "JPY", "eligible"),
        (50_000, 0, 50_000, "JPY", "high_value"),
        (50_001, 0, 50_000, "JPY", "high_value"),
        (25_000, 24_999, 50_000, "JPY", "eligible"),
        (25_000, 25_000, 50_000, "JPY", "high_value"),
        (1, 49_999, 50_000, "JPY", "high_value"),
        (0, 49_999, 50_000, "JPY", "eligible"),
        (34_948, 51, 35_000, "USD", "eligible"),
        (34_948, 52, 35_000, "USD", "high_value"),
        (49_999, 0, 35_000, "USD", "high_value"),
    ],
)
def test_the_threshold_counts_this_refund_and_the_orders_other_ones_in_their_own_currency(
    refund, others, threshold, currency, reason
):
    part = line(refund=money(refund, currency))
    request = facts(
        part, refund=money(refund, currency), other_returns=money(others, currency),
        return_fee=money(0, currency), shipping_refund=money(0, currency),
        approval_threshold=money(threshold, currency),
    )  # fmt: skip
    assert rule(request, NOTHING).reason == reason


@pytest.mark.parametrize("reason", ReturnReason)
def test_a_fault_of_the_goods_is_no_way_around_the_approval(reason):
    assert rule(facts(reason=reason, refund=money(50_000)), NOTHING).reason == "high_value"


def test_a_currency_without_a_limit_never_passes_as_a_low_amount_wherever_its_row_stands():
    (row,) = [row for row in DECISION_TABLE if row.reason == "high_value"]
    assert row.when(facts(refund=money(0), approval_threshold=None), NOTHING)


def test_a_gift_of_price_nothing_goes_back_for_nothing():
    gift = line(refund=money(0))
    assert rule(facts(gift, refund=money(0)), NOTHING) == Ruling(RulingOutcome.ELIGIBLE, "eligible")
