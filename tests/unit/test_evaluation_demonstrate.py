"""What a demonstration says of a wait is held against the formula; one too short, or that never came, is no proof."""

from __future__ import annotations

from typing import Any

import pytest

from host.evaluation.demonstrate import CASES, tried_again
from tests.support.evaluation_set import CASES as ALL


def sent(*seconds: float) -> dict[str, Any]:
    """A case whose first read was sent at these seconds and answered at once."""
    at = [f"2026-07-30T10:00:{second:06.3f}+09:00" for second in seconds]
    ours = [{"tool": "get_order", "purpose": "call", "started_at": one, "ended_at": one} for one in at]
    return {"attempts": [*ours, {"tool": "find_return", "purpose": "reconciliation", "started_at": None}]}


@pytest.mark.parametrize(("seconds", "held"), [((1, 2.2), True), ((1, 1.9), False), ((1, 9), False), ((1,), False)])
def test_a_wait_holds_where_it_is_as_long_as_the_formula_says(seconds: tuple[float, ...], held: bool):
    shown = tried_again(sent(*seconds))
    assert shown.held is held
    assert "min(30 s, 1 s * 2^attempt) + 0 to 0.5 s" in shown.said[0]
    assert shown.said[1] == (
        "attempt 0 to 6: 1 to 1.5 s, 2 to 2.5 s, 4 to 4.5 s, 8 to 8.5 s, 16 to 16.5 s, 30 to 30.5 s, 30 to 30.5 s"
    )


def test_what_is_shown_are_cases_of_the_data_set():
    assert {case.id for case in ALL} >= set(CASES)
