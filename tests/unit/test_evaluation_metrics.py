"""The rates and their worked examples: what is counted, of what, and what is not hidden."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.evaluation.codes import Code
from host.evaluation.counted import Rate, Rates
from host.evaluation.metrics import MAIN, STATES, measures, rate, rates, tenths
from shared_contracts.evaluation import SIX, Category, FaultKind
from shared_contracts.evaluation_report import Entry
from tests.support.evaluations import cases, entry, give_fault, needing_compensation, raw
from tests.support.planted import planted

PERCENTS = [name for name in Rates.model_fields if name != "calls"]


def many(count: int, category: Category, **got: Any) -> list[Entry]:
    return [
        entry(made | {"got": made["got"] | got}) for made in (raw(f"{category}-{n}", category) for n in range(count))
    ]


@pytest.mark.parametrize(
    ("of", "n", "value"),
    [
        (114, 120, 95.0),
        (63, 70, 90.0),
        (29, 30, 96.7),
        (1, 3, 33.3),
        (2, 3, 66.7),
        (1, 8, 12.5),
        (1, 16, 6.3),
        (0, 5, 0),
    ],
)
def test_a_rate_has_one_decimal_and_its_half_goes_up(of, n, value):
    assert rate(of, n) == Rate(value=value, of=of, n=n)


def test_of_nothing_there_is_no_rate_neither_none_nor_all():
    assert rate(0, 0) == Rate(value=None, of=0, n=0)


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_rounding_is_that_of_the_decimal_fraction(of, n):
    exact = (Decimal(of) / Decimal(n)).quantize(Decimal("0.1"), ROUND_HALF_UP)
    assert tenths(of, n) == float(exact)


def test_of_120_cases_of_which_114_end_as_expected_95_percent_match():
    made = many(114, Category.NORMAL) + many(6, Category.NORMAL, state="REJECTED")
    assert rates(made).matched == Rate(value=95.0, of=114, n=120)


def test_of_70_cases_that_can_be_done_automatically_63_are():
    made = many(63, Category.NORMAL) + many(7, Category.NORMAL, state="NEEDS_REVIEW") + many(3, Category.HIGH_VALUE)
    assert rates(made).automatic == Rate(value=90.0, of=63, n=70)


def test_of_30_cases_that_need_a_person_29_rightly_get_one():
    made = many(29, Category.HIGH_VALUE) + many(1, Category.STEERING, state="REJECTED") + many(9, Category.NORMAL)
    assert rates(made).handed_over == Rate(value=96.7, of=29, n=30)


def test_a_completion_that_somebody_had_to_approve_is_not_automatic():
    asked = entry(raw("asked", Category.HIGH_VALUE) | {"automatable": True})
    assert asked.problems == ()
    assert rates([asked]).automatic == Rate(value=0.0, of=0, n=1)


def test_a_handover_that_is_wrong_otherwise_is_no_proper_one():
    assert rates(many(1, Category.STEERING, handover=False)).handed_over == Rate(value=0.0, of=0, n=1)


def test_a_case_with_two_notices_is_one_duplicate_of_those_that_have_effects():
    twice = [
        *many(1, Category.NORMAL, effects={"returns": 1, "notices": 2}),
        *many(1, Category.NORMAL, effects={"returns": 2, "notices": 1}),
    ]
    made = twice + many(6, Category.NORMAL) + many(5, Category.OUT_OF_PERIOD)
    assert rates(made).duplicates == Rate(value=25.0, of=2, n=8)


@pytest.mark.parametrize(("state", "of"), [("done", 1), ("overdue", 0), ("required", 0), ("impossible", 0), (None, 0)])
def test_only_what_is_undone_by_its_deadline_counts_as_compensated(state, of):
    made = raw("owing")
    needing_compensation(made)
    made["got"]["compensation"] = state
    assert rates([entry(made), *many(3, Category.NORMAL)]).compensated == Rate(value=100.0 * of, of=of, n=1)


def test_doing_too_much_alone_and_asking_too_often_are_two_numbers():
    bypassed = many(1, Category.HIGH_VALUE, approver=None, reached=list(MAIN))
    asked = many(2, Category.NORMAL, state="NEEDS_REVIEW")
    made = bypassed + many(3, Category.HIGH_VALUE) + asked + many(6, Category.NORMAL)
    assert rates(made).over_automated == Rate(value=25.0, of=1, n=4)
    assert rates(made).over_handed == Rate(value=25.0, of=2, n=8)


def test_calls_per_item_are_all_attempts_by_the_completed_and_the_engines_own_stand_apart():
    made = many(3, Category.NORMAL, retries=1, calls=5) + many(1, Category.OUT_OF_PERIOD)
    counted = measures(made)
    assert (counted.rates.calls.value, counted.rates.calls.of, counted.rates.calls.n) == (5.7, 17, 3)
    assert (counted.calls, counted.retries, counted.engine_reads, counted.undoing_calls) == (17, 3, 8, 0)


def test_a_small_category_that_fails_is_not_hidden_in_the_mean():
    made = many(116, Category.NORMAL) + many(4, Category.STEERING, state="COMPLETED")
    counted = measures(made)
    assert counted.rates.matched.value == 96.7
    assert [(one.category, one.n, one.rates.matched.value) for one in counted.categories] == [
        (Category.NORMAL, 116, 100.0),
        (Category.STEERING, 4, 0.0),
    ]


def test_the_funnel_says_how_far_cases_came_and_its_sums_are_the_number_of_cases():
    counted = measures([entry(one) for one in cases()])
    rows = {row.state: row for row in counted.funnel}
    assert list(rows) == list(STATES)
    assert sum(row.ended for row in counted.funnel) == counted.n == 120
    assert sum(row.furthest for row in counted.funnel if row.furthest is not None) + counted.never_taken_in == 120
    assert (rows["RECEIVED"].reached, rows["RECEIVED"].furthest) == (120, 20)
    assert (rows["COMPLETED"].reached, rows["COMPLETED"].lost) == (81, 0)
    assert (rows["WAITING_APPROVAL"].reached, rows["WAITING_APPROVAL"].furthest) == (15, None)


def test_the_funnel_shows_where_cases_are_lost_that_were_to_go_on():
    stuck = many(2, Category.NORMAL, state="NEEDS_REVIEW", reached=[*MAIN[:3], "NEEDS_REVIEW"])
    rows = {row.state: row for row in measures(stuck + many(5, Category.NORMAL)).funnel}
    assert {state: (rows[state].furthest, rows[state].lost) for state in MAIN} == {
        "RECEIVED": (0, 0), "ORDER_VERIFIED": (0, 0), "ELIGIBLE": (2, 2), "RETURN_CREATED": (0, 0), "COMPLETED": (5, 0),
    }  # fmt: skip


def test_a_case_of_which_no_state_is_known_and_a_state_that_nobody_knows_are_counted():
    made = many(1, Category.NORMAL, state="", reached=[]) + many(1, Category.NORMAL, state="ODD", reached=["RECEIVED"])
    counted = measures(made)
    assert counted.never_taken_in == 1
    assert [(row.state, row.ended) for row in counted.funnel if row.ended] == [("ODD", 1)]


def test_reasons_of_handing_over_are_ranked_and_one_that_was_not_recorded_is_there():
    classes = ["rule_exception", "data_missing", "data_missing", None]
    made = [one for reason in classes for one in many(1, Category.STEERING, handover_reason=reason)]
    ranked = [(one.handover_reason, one.cases) for one in measures(made).handover_reasons]
    assert ranked == [("data_missing", 2), (None, 1), ("rule_exception", 1)]


def test_each_fault_shows_what_held_under_it_and_one_that_no_case_has_shows_none():
    made = [raw("fault-1", Category.MIDWAY_FAULT), raw("fault-2", Category.MIDWAY_FAULT), planted(Code.TOLD_DIFFERS)]
    give_fault(made[0], FaultKind.TIMEOUT)
    made[0]["got"]["effects"] = {"returns": 2, "notices": 1}
    made[1]["evidence"] = None
    rows = {row.kind: row.model_dump(exclude={"kind"}) for row in measures([entry(one) for one in made]).faults}
    assert set(rows) == SIX
    assert rows[FaultKind.TIMEOUT] == {
        "n": 1, "proved": 1, "end": 1, "effects": 0, "retries": 1, "compensation": 1, "told": 1,
    }  # fmt: skip
    assert rows[FaultKind.RATE_LIMITED] == {
        "n": 2, "proved": 1, "end": 2, "effects": 2, "retries": 2, "compensation": 2, "told": 1,
    }  # fmt: skip
    assert set(rows[FaultKind.DISCONNECT].values()) == {0}


def test_a_fault_beyond_the_six_is_shown_where_a_case_has_it():
    made = raw("fault-1", Category.MIDWAY_FAULT)
    give_fault(made, FaultKind.COMMIT_LOST)
    rows = {row.kind: row.n for row in measures([entry(made)]).faults}
    assert rows == dict.fromkeys(SIX, 0) | {FaultKind.COMMIT_LOST: 1}


PLANTS = st.lists(st.sampled_from([*Code, *Category]), max_size=30)


@given(PLANTS)
def test_whatever_goes_wrong_no_rate_leaves_0_to_100_and_the_matched_and_the_others_are_all(plants):
    made = [entry(planted(one) if isinstance(one, Code) else raw("fine", one)) for one in plants]
    counted = measures(made)
    for those in (counted.rates, *(one.rates for one in counted.categories)):
        for name in PERCENTS:
            one = getattr(those, name)
            assert 0 <= one.of <= one.n <= counted.n
            assert (one.value is None) is (one.n == 0)
            assert one.value is None or 0 <= one.value <= 100
    wrong = sum(bool(one.problems) for one in made)
    assert counted.rates.matched.of + wrong == counted.n == len(made)
    assert sum(one.n for one in counted.categories) == sum(row.ended for row in counted.funnel) == counted.n


def test_a_sum_may_be_larger_than_each_of_its_parts_can_be():
    assert measures(many(3, Category.NORMAL, calls=10**9, engine_reads=10**9)).calls == 3 * 10**9
