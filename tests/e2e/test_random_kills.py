"""What this proves: the same as `make crash`, with fewer kills, at every run of the tests."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from tests.crash.report import faults, lines
from tests.crash.run import crash

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("random_kills"), pytest.mark.timeout(600)]
KILLS = 20


def test_random_kills_with_twenty_cases_in_flight_double_lose_and_stop_nothing() -> None:
    told = asyncio.run(crash(KILLS, secrets.randbelow(1_000_000)))
    assert faults(told) == [], "\n".join(lines(told))
    assert len(told.hits) == KILLS
