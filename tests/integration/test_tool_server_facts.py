"""What the tables say of a return: windows, amounts, fees and states; the check and the write see the same."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared_contracts.base import parse
from shared_contracts.policies import PolicyFacts
from shared_contracts.returns import RulingOutcome, rule
from tests.support.tool_orders import ASKED_AT, line, order, policy, seed
from tests.support.tool_shop import Shop, ask, code_of, given, open_shop
from tool_server.call import Answer, Answered
from tool_server.dispatch import Dispatcher

ORDER = {"order_id": "A-1"}


def asked(quantity: int = 1, reason: str = "defective", *line_ids: str, **more: Any) -> dict[str, Any]:
    names = line_ids if line_ids else ("L1",)
    return {**ORDER, "lines": [{"line_id": name, "quantity": quantity} for name in names], "reason": reason} | more


def check(shop: Shop, arguments: dict[str, Any], **token: Any) -> PolicyFacts:
    async def scene(tools: Dispatcher) -> Answer:
        return await ask(tools, "check_return_policy", arguments, **token)

    return parse(PolicyFacts, given(shop.run(scene)))


def create(shop: Shop, arguments: dict[str, Any], key: str = "K", **token: Any) -> tuple[str, str | int]:
    """What `create_return` answers: the refund, or the refusal's code and reason."""

    async def scene(tools: Dispatcher) -> Answer:
        return await ask(tools, "create_return", arguments, key=key, **token)

    answer = shop.run(scene)
    if isinstance(answer, Answered):
        return "created", int(answer.result["refund"]["amount"])
    return answer.code, str(answer.details.get("reason"))


def one_way(shop: Shop, arguments: dict[str, Any], **token: Any) -> tuple[str, str | int]:
    """Create, and see that the facts that `check_return_policy` gave lead to the same."""
    facts = check(shop, arguments, **token).facts
    ruling = rule(facts, frozenset())
    told = create(shop, arguments, **token)
    if ruling.outcome is RulingOutcome.ELIGIBLE:
        assert told == ("created", facts.refund.amount)
    else:
        assert told[1] == ruling.reason
    return told


LATE = datetime.fromisoformat("2026-04-01T00:00:00+09:00")


@pytest.mark.parametrize(
    ("requested_at", "told"),
    [
        (LATE - timedelta(seconds=1), "created"),
        (LATE - timedelta(microseconds=1), "created"),
        (LATE, "not_eligible"),
        (LATE + timedelta(seconds=1), "not_eligible"),
        (datetime.fromisoformat("2026-03-31T23:59:59+09:00"), "created"),
        (datetime.fromisoformat("2026-03-31T23:59:59+00:00"), "not_eligible"),  # the shop's day has ended
        (datetime.fromisoformat("2026-04-01T03:59:59+13:00"), "created"),  # the customer's day has begun
    ],
)
def test_the_window_ends_with_the_shops_day_whoevers_clock_is_looked_at(
    tmp_path: Path, requested_at: datetime, told: str
) -> None:
    """Delivered at 19:30 of 1 March in the shop's zone; thirty days later is the last."""
    shop = open_shop(tmp_path, order("A-1", line(delivered_at="2026-03-01T23:30:00+13:00")))
    assert check(shop, asked()).facts.lines[0].window_ends_at == LATE
    assert create(shop, asked(reason="other"), requested_at=requested_at)[0] == told


def test_a_request_in_time_stays_in_time_however_long_its_decision_takes(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(delivered_at="2026-03-01T10:00:00+09:00")))
    assert create(shop, asked(), requested_at=datetime.fromisoformat("2026-03-20T10:00:00+09:00"))[0] == "created"


def test_without_a_time_of_request_the_databases_clock_decides(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    shop.rows(
        "CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql"
        " RETURN '2026-08-10T00:00:00Z'::timestamptz"
    )
    facts = check(shop, asked(), requested_at=None).facts
    assert facts.requested_at.isoformat() == "2026-08-10T00:00:00+00:00"
    assert create(shop, asked(), requested_at=None)[0] == "created"
    assert shop.one("SELECT created_at::text FROM returns.returns").startswith("2026-08-10")


@pytest.mark.parametrize("delivered_at", [None, "2026-08-20T10:00:00+09:00"])
def test_a_delivery_without_a_usable_date_is_no_eligible_return(tmp_path: Path, delivered_at: str | None) -> None:
    shop = open_shop(tmp_path, order("A-1", line(delivered_at=delivered_at)))
    assert one_way(shop, asked()) == ("not_eligible", "undecidable")


@pytest.mark.parametrize(
    ("line_id", "told"),
    [
        ("delivered", ("created", 1_000)),
        ("transit", ("not_eligible", "not_returnable")),
        ("part", ("quantity_gone", "already_returned")),
        ("unknown", ("not_eligible", "not_returnable")),
    ],
)
def test_only_what_was_delivered_goes_back(tmp_path: Path, line_id: str, told: tuple[str, str | int]) -> None:
    nothing = {"delivered_quantity": 0, "delivered_at": None}
    shop = open_shop(
        tmp_path,
        order(
            "A-1",
            line("delivered", price=1_000), line("transit", price=1_000, **nothing),
            line("part", price=1_000, quantity=2, delivered_quantity=1), shipping_fee=300,
        ),
    )  # fmt: skip
    quantity = 2 if line_id == "part" else 1
    assert one_way(shop, asked(quantity, "defective", line_id)) == told


def test_a_request_is_decided_whole(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line("L1"), line("L2", delivered_quantity=0, delivered_at=None)))
    assert one_way(shop, asked(1, "defective", "L1", "L2")) == ("not_eligible", "not_returnable")
    assert shop.one("SELECT count(*) FROM returns.return_lines") == 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"status": "cancelled"}, ("not_eligible", "not_returnable")),
        ({"status": "refunded"}, ("not_eligible", "not_returnable")),
        ({"refunded_outside": 3_000}, ("not_eligible", "not_returnable")),
        ({"currency": "CHF"}, ("not_eligible", "undecidable")),
        ({"currency": "USD"}, ("created", 3_000)),
        ({"captured": 0}, ("created", 0)),
    ],
)
def test_an_orders_state_decides(tmp_path: Path, changes: dict[str, Any], told: tuple[str, str | int]) -> None:
    assert one_way(open_shop(tmp_path, order("A-1", **changes)), asked()) == told


@pytest.mark.parametrize(
    ("changes", "reason", "told"),
    [
        ({"category": "paint"}, "other", ("not_eligible", "dangerous_goods")),
        ({"dangerous": True}, "other", ("not_eligible", "dangerous_goods")),
        ({"category": "swimwear"}, "changed_mind", ("not_eligible", "final_sale")),
        ({"category": "swimwear"}, "damaged", ("not_eligible", "final_sale_defect")),
        ({"final_sale": True}, "changed_mind", ("not_eligible", "final_sale")),
        ({"category": "torn"}, "other", ("not_eligible", "undecidable")),
        ({"category": "nobody's"}, "other", ("not_eligible", "undecidable")),
        ({"delivered_at": "2026-05-01T10:00:00+09:00"}, "changed_mind", ("not_eligible", "out_of_period")),
        ({"delivered_at": "2026-05-01T10:00:00+09:00"}, "defective", ("not_eligible", "exception_claimed")),
    ],
)
def test_the_strictest_of_line_and_rule_wins(
    tmp_path: Path, changes: dict[str, Any], reason: str, told: tuple[str, str]
) -> None:
    shop = open_shop(tmp_path, order("A-1", line(**changes), line("L2")))
    assert one_way(shop, asked(reason=reason)) == told


@pytest.mark.parametrize(("price", "told"), [(49_999, "created"), (50_000, "approval_required")])
def test_fifty_thousand_yen_need_a_person(tmp_path: Path, price: int, told: str) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=price)))
    assert one_way(shop, asked())[0] == told


def test_splitting_a_return_does_not_dodge_the_person(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=20_000, quantity=3)))
    assert [create(shop, asked(), key=key)[0] for key in "abc"] == ["created", "created", "approval_required"]
    facts = check(shop, asked()).facts
    assert facts.other_returns.amount == 40_000
    assert len(facts.earlier_returns) == 2


def test_the_threshold_is_that_of_the_orders_currency(tmp_path: Path) -> None:
    shop = open_shop(
        tmp_path, order("A-1", line(price=35_000), currency="USD"), order("A-2", line(price=34_999), currency="USD")
    )
    assert create(shop, asked(), key="1")[0] == "approval_required"
    assert create(shop, asked(order_id="A-2"), key="2") == ("created", 34_999)


@pytest.mark.parametrize(
    ("price", "quantity", "discount", "parts", "refunds"),
    [
        (100, 3, 30, [2, 1], [180, 90]),
        (3_333, 3, 1_000, [1, 1, 1], [2_999, 3_000, 3_000]),
        (100, 3, 100, [1, 1, 1], [66, 67, 67]),  # two for three
        (100, 3, 0, [3], [300]),
        (0, 2, 0, [1, 1], [0, 0]),  # a gift
        (14_505, 1, 0, [1], [14_505]),
    ],
)
def test_parts_of_a_discounted_order_add_up_to_what_was_paid(
    tmp_path: Path, price: int, quantity: int, discount: int, parts: list[int], refunds: list[int]
) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=price, quantity=quantity), discount=discount))
    told = [create(shop, asked(part), key=f"k{at}") for at, part in enumerate(parts)]
    assert told == [("created", refund) for refund in refunds]
    assert sum(refunds) == price * quantity - discount


def test_a_discount_is_shared_out_over_lines_to_the_last_unit(tmp_path: Path) -> None:
    lines = [line("L1", price=999), line("L2", price=500, quantity=2), line("L3", price=1), line("gift", price=0)]
    shop = open_shop(tmp_path, order("A-1", *lines, discount=100, shipping_fee=40))
    paid = dict(shop.rows("SELECT line_id, paid FROM orders.lines"))
    assert paid == {"L1": 949, "L2": 950, "L3": 1, "gift": 0}
    assert create(shop, asked(1, "defective", "L1", "L3", "gift")) == ("created", 950)
    assert create(shop, asked(2, "defective", "L2"), key="rest") == ("created", 950 + 40)
    assert shop.rows("SELECT refunded, captured FROM returns.order_counters") == [(1_940, 1_940)]


@pytest.mark.parametrize(
    ("reason", "refunds"),
    [
        ("defective", [1_000, 1_550]),
        ("wrong_item", [1_000, 1_550]),
        ("changed_mind", [500, 500]),
        ("other", [500, 500]),
    ],
)
def test_the_shipping_fee_goes_back_once_and_only_with_the_whole_order_at_the_sellers_fault(
    tmp_path: Path, reason: str, refunds: list[int]
) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=1_000, quantity=2), shipping_fee=550))
    told = [create(shop, asked(reason=reason), key=key) for key in "ab"]
    assert told == [("created", refund) for refund in refunds]


def test_the_shipping_fee_comes_back_into_reach_when_its_return_is_cancelled(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=1_000, quantity=2), shipping_fee=550))

    async def cancel(tools: Dispatcher) -> None:
        ((number,),) = shop.rows("SELECT return_id FROM returns.returns WHERE idempotency_key = 'a'")
        given(await ask(tools, "cancel_return", {**ORDER, "return_id": number}, key="c"))

    assert create(shop, asked(2), key="a") == ("created", 2_550)
    shop.run(cancel)
    assert shop.rows("SELECT refunded, shipping_refunded FROM returns.order_counters") == [(0, 0)]
    assert create(shop, asked(2), key="b") == ("created", 2_550)


def test_a_fee_above_the_goods_never_makes_a_customer_owe(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=400)))
    facts = check(shop, asked(reason="changed_mind")).facts
    assert (facts.return_fee.amount, facts.refund.amount) == (500, 0)
    assert create(shop, asked(reason="changed_mind")) == ("created", 0)


def test_a_currency_without_a_listed_fee_has_none(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=400), currency="USD"))
    assert create(shop, asked(reason="changed_mind")) == ("created", 400)


@pytest.mark.parametrize(
    ("changes", "refund"),
    [
        ({"captured": 8_000}, 8_000),  # the rest was a gift card
        ({"captured": 8_000, "refunded_outside": 5_000}, 3_000),
        ({"refunded_outside": 5_000}, 5_000),
    ],
)
def test_a_refund_ends_where_the_money_that_came_in_ends(tmp_path: Path, changes: dict[str, int], refund: int) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=10_000), **changes))
    assert one_way(shop, asked()) == ("created", refund)


def test_cancelled_units_are_free_again_in_the_same_transaction(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=1_000, quantity=2)))

    async def scene(tools: Dispatcher) -> list[str]:
        both = asked(2)
        first = given(await ask(tools, "create_return", both, key="1"))
        gone = code_of(await ask(tools, "create_return", asked(1), key="2"))
        given(await ask(tools, "cancel_return", {**ORDER, "return_id": first["return_id"]}, key="3"))
        second = given(await ask(tools, "create_return", both, key="4"))
        return [gone, str(second["refund"]["amount"])]

    assert shop.run(scene) == ["quantity_gone", "2000"]


def test_an_order_tells_what_was_returned_and_paid_back_of_it(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(price=1_000, quantity=3), refunded_outside=100))
    create(shop, asked(2))

    async def scene(tools: Dispatcher) -> dict[str, Any]:
        return given(await ask(tools, "get_order", ORDER))

    told = shop.run(scene)
    assert told["lines"][0]["returned_quantity"] == 2
    assert told["refunded"]["amount"] == 2_100
    assert told["snapshot"] == "2026-07-30"


def test_a_check_does_not_bind_a_write_that_comes_after_a_change(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    assert rule(check(shop, asked()).facts, frozenset()).outcome is RulingOutcome.ELIGIBLE
    shop.load(seed(order("A-1", version=2, status="cancelled")))
    assert create(shop, asked()) == ("not_eligible", "not_returnable")


def test_the_rules_in_effect_when_the_customer_asked_are_the_ones_that_count(tmp_path: Path) -> None:
    turn = "2026-07-25T00:00:00+09:00"
    old = policy("policy-v12", effective_until=turn)
    new = policy("policy-v13", effective_from=turn, return_fees=[{"currency": "JPY", "amount": 700}])
    shop = open_shop(tmp_path, order("A-1", line(quantity=2)), policies=[old, new])
    before = datetime.fromisoformat(turn) - timedelta(seconds=1)
    assert check(shop, asked(), requested_at=before).rule_version == "policy-v12"
    assert check(shop, asked(), requested_at=datetime.fromisoformat(turn)).rule_version == "policy-v13"
    assert create(shop, asked(reason="other")) == ("created", 2_300)
    assert shop.rows("SELECT rule_version, return_fee FROM returns.returns") == [("policy-v13", 700)]


def test_of_overlapping_versions_the_newer_one_counts(tmp_path: Path) -> None:
    newer = policy("policy-v13", effective_from="2026-07-01T00:00:00+09:00")
    shop = open_shop(tmp_path, order("A-1"), policies=[newer, policy()])
    assert check(shop, asked()).rule_version == "policy-v13"


def test_without_rules_in_effect_nothing_is_eligible_and_nothing_is_said_of_the_order(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    early = datetime.fromisoformat("2025-01-01T00:00:00+09:00")

    async def scene(tools: Dispatcher) -> list[Answer]:
        checked = await ask(tools, "check_return_policy", asked(), requested_at=early)
        return [checked, await ask(tools, "create_return", asked(), key="K", requested_at=early)]

    for answer in shop.run(scene):
        assert (code_of(answer), answer.details) == ("not_eligible", {"reason": "no_rules"})


def test_facts_come_with_their_evidence_and_without_a_verdict(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    told = check(shop, asked())
    assert (told.rule_version, told.rule_owner, told.order_version) == ("policy-v12", "returns-desk", 1)
    assert told.evidence_ref == "policy://policy-v12/A-1@1"
    assert told.facts.requested_at == ASKED_AT
    assert not {"verdict", "outcome", "eligible", "ruling"} & set(PolicyFacts.model_fields)
