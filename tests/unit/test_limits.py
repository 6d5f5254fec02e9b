"""The wait before another attempt: it doubles, it is bounded, and no two workflows wait the same."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.domain.limits import BACKOFF_CAP_SECONDS, BACKOFF_JITTER_SECONDS, backoff_seconds


@pytest.mark.parametrize(("attempt", "base"), [*enumerate((1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30))])
def test_the_wait_is_the_doubled_second_under_its_cap_and_up_to_half_a_second(attempt, base):
    jitter = Random(20260730)  # noqa: S311 - a seeded spread, no secret
    waits = [backoff_seconds(attempt, jitter.random()) for _ in range(200)]
    assert all(base <= wait < base + 0.5 for wait in waits)
    assert max(waits) - min(waits) > 0.3
    assert backoff_seconds(attempt, 0.0) == base


def test_the_same_seed_gives_the_same_waits():
    first, second = Random(7), Random(7)  # noqa: S311 - as above
    assert [backoff_seconds(n, first.random()) for n in range(11)] == [
        backoff_seconds(n, second.random()) for n in range(11)
    ]


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_no_attempt_waits_longer_than_the_cap_and_the_jitter(attempt, jitter):
    assert 1.0 <= backoff_seconds(attempt, jitter) <= BACKOFF_CAP_SECONDS + BACKOFF_JITTER_SECONDS
