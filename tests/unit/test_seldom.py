"""What repeats is written once a minute and counted, whoever writes it; many of it call an operator at once."""

from __future__ import annotations

from typing import Any

import pytest

from shared_contracts.seldom import KINDS_MAX, MANY, SECONDS, Seldom


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def refused(reason: str, **more: Any) -> dict[str, Any]:
    return {"event": "refused", "level": "warning", "code": "token_invalid", "reason": reason, **more}


def test_the_first_is_said_at_once_and_the_next_a_minute_later_with_how_many_were_kept_back():
    clock = Clock()
    seldom = Seldom(clock)
    assert [seldom.said(refused("expired", jti=f"j-{n}")) for n in range(3)] == [
        refused("expired", jti="j-0"),
        None,
        None,
    ]
    clock.now += SECONDS - 0.01
    assert seldom.said(refused("expired")) is None
    clock.now += 0.01
    assert seldom.said(refused("expired")) == refused("expired", kept_back=3)
    clock.now += SECONDS
    assert seldom.said(refused("expired")) == refused("expired")


def test_many_within_a_minute_are_an_alarm_at_once_and_then_a_number():
    clock = Clock()
    seldom = Seldom(clock)
    said = [line for n in range(10_000) if (line := seldom.said(refused("signature", jti=f"j-{n}"))) is not None]
    assert said == [
        refused("signature", jti="j-0"),
        {**refused("signature", jti=f"j-{MANY - 1}"), "event": "many_alike", "of": "refused", "level": "error"},
    ]
    clock.now += SECONDS
    assert seldom.said(refused("signature")) == refused("signature", kept_back=9_998)


@pytest.mark.parametrize(
    "word", ["event", "code", "status", "reason", "place", "exception", "error", "family", "tool", "frames"]
)
def test_lines_of_another_kind_are_not_kept_back_for_it(word: str):
    seldom = Seldom(Clock())
    told = [seldom.said({**refused("expired"), word: [value] if word == "frames" else value}) for value in ("a", "b")]
    assert None not in told


def test_however_many_kinds_there_are_the_lines_and_what_is_remembered_stay_bounded():
    seldom = Seldom(Clock())
    said = [seldom.said(refused(f"reason {n}")) for n in range(10 * KINDS_MAX)]
    assert len([line for line in said if line is not None]) == KINDS_MAX + 2
    assert len(seldom._minutes) == KINDS_MAX + 1
