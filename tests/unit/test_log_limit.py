"""What repeats is written a few times a minute and counted, whoever writes it; many of it call an operator at once."""

from __future__ import annotations

from typing import Any

import pytest

from shared_contracts.log_limit import KINDS_MAX, MANY, SECONDS, LogLimit


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def refused(reason: str, **more: Any) -> dict[str, Any]:
    return {"event": "refused", "level": "warning", "code": "token_invalid", "reason": reason, **more}


def test_a_few_are_written_as_they_are_with_whom_each_is_about():
    limit = LogLimit(Clock())
    lines = [refused("expired", jti=f"j-{n}") for n in range(MANY - 1)]
    assert list(map(limit.written, lines)) == lines


def test_many_within_a_minute_are_an_alarm_at_once_and_then_a_number():
    clock = Clock()
    limit = LogLimit(clock)
    lines = [refused("signature", jti=f"j-{n}") for n in range(10_000)]
    alarm = {**lines[MANY - 1], "event": "many_alike", "of": "refused", "level": "error"}
    assert [line for line in map(limit.written, lines) if line is not None] == [*lines[: MANY - 1], alarm]
    clock.now += SECONDS - 0.01
    assert limit.written(refused("signature")) is None
    clock.now += 0.01
    assert limit.written(refused("signature")) == refused("signature", kept_back=10_001 - MANY)
    clock.now += SECONDS
    assert limit.written(refused("signature")) == refused("signature")


def test_what_is_critical_stays_so():
    limit = LogLimit(Clock())
    said = [limit.written({"event": "keys_unusable", "level": "critical"}) for _ in range(MANY)]
    assert [line["level"] for line in said if line is not None] == ["critical"] * MANY


@pytest.mark.parametrize(
    "word", ["event", "code", "status", "reason", "place", "exception", "error", "family", "tool", "frames"]
)
def test_lines_of_another_kind_are_not_kept_back_for_it(word: str):
    limit = LogLimit(Clock())
    lines = [
        {**refused("expired"), word: [value] if word == "frames" else value} for value in "ab" for _ in range(MANY)
    ]
    said = list(map(limit.written, lines))
    assert [n for n, line in enumerate(said) if line is not None and "of" in line] == [MANY - 1, 2 * MANY - 1]
    assert None not in said


def test_however_many_kinds_there_are_the_lines_and_what_is_remembered_stay_bounded():
    limit = LogLimit(Clock())
    said = [limit.written(refused(f"reason {n}")) for n in range(10 * KINDS_MAX)]
    assert len([line for line in said if line is not None]) == KINDS_MAX + MANY
    assert len(limit._minutes) == KINDS_MAX + 1
