"""One stage for all crash tests of a test process: its database and desk are made once, its programs per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.stage import Stage, staged

ORDERS = 400


@pytest.fixture(scope="session")
def whole_stage() -> Iterator[Stage]:
    with staged(ORDERS) as made:
        yield made
        assert made.faults() == []


@pytest.fixture
def stage(whole_stage: Stage) -> Iterator[Stage]:
    """With an empty queue and no program but those that are kept."""
    whole_stage.forget_jobs()
    yield whole_stage
    whole_stage.clear()
