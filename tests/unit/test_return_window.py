"""The return window: whole days of the shop's zone, counted from the first delivery, its last day included."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_contracts.returns import RulingOutcome, rule, window_ends_at
from tests.unit.return_facts import facts, line

SECOND = timedelta(seconds=1)
# 23:30 on the first of March for the recipient is 19:30 of that day in Tokyo
DELIVERED = datetime.fromisoformat("2026-03-01T23:30:00+13:00")
END = datetime.fromisoformat("2026-04-01T00:00:00+09:00")


def ruled(delivered_at: datetime, asked_at: datetime, days: int = 30) -> str:
    ends = window_ends_at(delivered_at, days, "Asia/Tokyo")
    return rule(facts(line(delivered_at=delivered_at, window_ends_at=ends), requested_at=asked_at), frozenset()).reason


def test_thirty_days_end_with_the_thirtieth_day_after_the_day_of_delivery():
    assert window_ends_at(DELIVERED, 30, "Asia/Tokyo") == END


@pytest.mark.parametrize(
    ("asked_at", "reason"),
    [(END - SECOND, "eligible"), (END, "out_of_period"), (END + SECOND, "out_of_period")],
)
def test_the_last_second_is_inside_and_the_end_itself_is_late(asked_at, reason):
    assert ruled(DELIVERED, asked_at) == reason


@pytest.mark.parametrize(
    ("asked_at", "reason"),
    [
        ("2026-03-30T23:59:59+00:00", "eligible"),  # both sides of midnight in UTC: still the last day
        ("2026-03-31T00:00:00+00:00", "eligible"),
        ("2026-03-31T14:59:59+00:00", "eligible"),
        ("2026-03-31T15:00:00+00:00", "out_of_period"),  # midnight in Tokyo
        ("2026-04-01T03:59:59+13:00", "eligible"),  # the customer's calendar says April, the shop's March
        ("2026-03-31T23:59:59-05:00", "out_of_period"),  # and the other way round
    ],
)
def test_only_midnight_of_the_shops_zone_counts(asked_at, reason):
    assert ruled(DELIVERED, datetime.fromisoformat(asked_at)) == reason


def test_a_delivery_at_any_time_of_a_day_has_the_same_end():
    day = datetime(2026, 6, 30, tzinfo=ZoneInfo("Asia/Tokyo"))
    ends = {window_ends_at(day + timedelta(seconds=second), 30, "Asia/Tokyo") for second in range(0, 86_400, 3_599)}
    assert ends == {datetime.fromisoformat("2026-07-31T00:00:00+09:00")}


def test_an_instant_reads_the_same_whatever_offset_it_is_written_in():
    assert window_ends_at(DELIVERED.astimezone(UTC), 30, "Asia/Tokyo") == END


def test_a_window_of_no_days_lasts_for_the_rest_of_the_day():
    assert window_ends_at(DELIVERED, 0, "Asia/Tokyo") == datetime.fromisoformat("2026-03-02T00:00:00+09:00")


@pytest.mark.parametrize(
    ("zone", "delivered", "ends"),
    [
        ("America/New_York", "2026-02-20T12:00:00-05:00", "2026-03-23T00:00:00-04:00"),
        ("America/New_York", "2026-10-20T12:00:00-04:00", "2026-11-20T00:00:00-05:00"),
    ],
)
def test_a_change_of_the_clocks_inside_the_window_takes_no_hour_and_gives_none(zone, delivered, ends):
    assert window_ends_at(datetime.fromisoformat(delivered), 30, zone) == datetime.fromisoformat(ends)


@given(
    delivered=st.datetimes(datetime(2001, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    days=st.integers(0, 3650),
    zone=st.sampled_from(["Asia/Tokyo", "UTC", "America/New_York", "Pacific/Auckland", "Asia/Kathmandu"]),
)
def test_a_window_always_ends_at_a_midnight_that_many_days_and_one_after_the_day_of_delivery(delivered, days, zone):
    ends = window_ends_at(delivered, days, zone).astimezone(ZoneInfo(zone))
    assert ends.time() == time()
    assert (ends.date() - delivered.astimezone(ZoneInfo(zone)).date()).days == days + 1


@pytest.mark.parametrize("never", ["0001-01-01T00:00:00+00:00", "1970-01-01T00:00:00+00:00"])
def test_a_date_that_stands_for_no_date_is_for_a_person_and_not_simply_late(never):
    delivered_at = datetime.fromisoformat(never)
    found = rule(facts(line(delivered_at=delivered_at, window_ends_at=delivered_at)), frozenset())
    assert (found.outcome, found.reason) == (RulingOutcome.NEEDS_REVIEW, "undecidable")


def test_a_delivery_in_the_very_second_of_the_request_is_no_future_one():
    asked_at = datetime(2026, 7, 30, 1, tzinfo=UTC)
    assert ruled(asked_at, asked_at) == "eligible"
    assert ruled(asked_at + SECOND, asked_at) == "undecidable"
