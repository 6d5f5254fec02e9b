"""What a run costs: five components, a worked example, and that nothing is free because nobody put a price on it."""

from __future__ import annotations

from typing import Any

import pytest

from host.evaluation.cost import cost
from host.evaluation.counted import Cost
from shared_contracts.base import parse
from shared_contracts.evaluation import Category
from shared_contracts.evaluation_report import CostRates
from tests.support.evaluations import RATES, entry, needing_compensation, raw


def priced(made: list[dict[str, Any]], model: str = "no model", **rates: float) -> Cost:
    return cost([entry(one) for one in made], parse(CostRates, RATES | rates), model)


def example() -> list[dict[str, Any]]:
    """Four cases: one plain, one approved, one with a retry and something to undo, one refused."""
    made = [raw("plain"), raw("approved", Category.HIGH_VALUE), raw("undone"), raw("refused", Category.OUT_OF_PERIOD)]
    needing_compensation(made[2])
    made[2]["got"] |= {"calls": 5, "retries": 1}
    return made


def test_the_worked_example():
    made = priced(example())
    # calls 4 + 4 + 5 + 2 and the engine's own reads 4 x 2; one decision of two minutes; three undoing calls
    assert [(part.name, part.quantity, part.cost) for part in made.parts] == [
        ("model", 0, 0.0),
        ("tools", 23, 11.5),
        ("retries", 1, 0.25),
        ("approvers", 2, 120.0),
        ("compensation", 3, 3.0),
    ]
    assert (made.total, made.items, made.per_item) == (134.75, 3, 44.92)
    assert made.missing == ()


def test_who_was_asked_again_has_decided_twice():
    made = example()
    made[1]["decision"]["again"] = "deny"
    assert [part.quantity for part in priced(made).parts if part.name == "approvers"] == [4]


def test_a_model_that_there_is_none_of_costs_nothing_and_says_so():
    model = priced(example()).parts[0]
    assert (model.cost, model.said) == (0.0, "no model")


def test_a_model_is_priced_by_its_calls_and_one_without_a_price_is_missing():
    made = example()
    made[0]["got"]["model_calls"] = 10
    asked = priced(made, "some-model", model_call=1.25)
    assert (asked.parts[0].cost, asked.parts[0].said, asked.missing) == (12.5, "", ())
    assert priced(made, "some-model").missing == ("model",)


def test_no_model_that_was_asked_nevertheless_is_a_missing_price():
    made = example()
    made[0]["got"]["model_calls"] = 1
    assert priced(made).missing == ("model",)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("tool_call", "tools"),
        ("retry", "retries"),
        ("approver_minute", "approvers"),
        ("minutes_per_decision", "approvers"),
        ("compensation_call", "compensation"),
    ],
)
def test_a_component_without_a_price_is_missing_whether_it_was_used_or_not(name, part):
    assert priced([raw("plain")], **{name: 0.0}).missing == (part,)


def test_only_what_was_rightly_completed_shares_the_cost():
    made = [raw("good"), raw("bad"), raw("refused", Category.OUT_OF_PERIOD)]
    made[1]["got"]["effects"] = {"returns": 2, "notices": 1}
    assert priced(made).items == 1


def test_where_nothing_was_completed_there_is_no_cost_per_item():
    made = priced([raw("refused", Category.OUT_OF_PERIOD)])
    assert (made.items, made.per_item, made.zero) == (0, None, False)


def test_prices_are_taken_as_written_and_the_half_of_the_last_place_goes_up():
    made = raw("one")
    made["got"] |= {"calls": 1, "engine_reads": 0}
    assert priced([made], tool_call=1.005).total == 1.01


def test_a_cost_too_small_to_show_is_none():
    made = priced([raw("one")], tool_call=0.0001)
    assert (made.per_item, made.zero) == (0.0, True)
