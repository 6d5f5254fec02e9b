"""The token bucket as arithmetic: rate, burst, two limits at once, bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_server import limits
from tool_server.limits import BURST_SECONDS, Buckets, Failures, Rates


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def admitted(rates: Rates, count: int, subject: str = "s", tenant: str = "t") -> int:
    return sum(rates.admit("i", subject, tenant) == 0 for _ in range(count))


@pytest.mark.parametrize("rate", [0.1, 1, 3, 20, 100, 1000])
def test_a_burst_of_two_seconds_passes_and_then_the_rate(rate):
    clock = Clock()
    rates = Rates(rate, 1e6, clock)
    burst = max(1, int(BURST_SECONDS * rate))
    assert admitted(rates, burst + 10) == burst
    for _ in range(3):
        clock.now += 10 / rate if rate < 1 else 1
        assert admitted(rates, burst + 10) == pytest.approx(max(rate, 1), abs=1)


def test_the_wait_that_is_told_is_long_enough_and_not_much_longer():
    clock = Clock()
    rates = Rates(20, 1e6, clock)
    admitted(rates, 40)
    wait = rates.admit("i", "s", "t")
    assert 0 < wait <= 1 / 20 + 1e-6
    clock.now += wait
    assert admitted(rates, 1) == 1


def test_a_refused_call_takes_nothing_from_either_bucket():
    clock = Clock()
    rates = Rates(1, 3, clock)
    assert admitted(rates, 50, "a") == 2
    assert admitted(rates, 50, "b") == 2
    assert admitted(rates, 50, "c") == 2  # the tenant's six are gone; fifty refused ones of each cost nobody anything
    assert admitted(rates, 50, "d") == 0
    clock.now += 1
    assert admitted(rates, 50, "d") == 2
    assert admitted(rates, 50, "a") == 1


def test_the_same_subject_of_two_issuers_is_two_principals():
    rates = Rates(1, 1e6, Clock())
    assert [rates.admit(issuer, "s", "t") for issuer in ("i", "i", "j", "j")] == [0, 0, 0, 0]
    assert rates.admit("i", "s", "t") > 0


def test_memory_is_bounded_and_a_full_table_keeps_newcomers_waiting():
    buckets = Buckets(1)
    for number in range(limits.BUCKETS_MAX):
        assert buckets.wait(number, 1000.0) == 0
        buckets.take(number, 1000.0)
    assert buckets.wait("newcomer", 1000.0) > 0
    assert buckets.wait(7, 1000.0) == 0
    assert buckets.wait("newcomer", 1002.0) == 0  # every bucket is full again, and forgotten


@given(st.lists(st.floats(0, 0.5), max_size=200), st.sampled_from([1.0, 7.0, 20.0]))
def test_no_timing_gets_more_than_the_burst_and_the_rate(gaps, rate):
    clock = Clock()
    rates = Rates(rate, 1e6, clock)
    passed = 0
    for gap in gaps:
        clock.now += gap
        passed += admitted(rates, 3)
        assert passed <= BURST_SECONDS * rate + (clock.now - 1000.0) * rate + 1


def test_an_address_fails_as_often_as_its_rate_allows_and_takes_nothing_from_another():
    clock = Clock()
    failures = Failures(2.0, clock)
    assert [failures.wait("192.0.2.1") for _ in range(4)] == [0.0] * 4
    assert 0 < failures.wait("192.0.2.1") <= 0.5 + 1e-6
    assert failures.wait("192.0.2.2") == 0.0
    clock.now += 0.5
    assert failures.wait("192.0.2.1") == 0.0
