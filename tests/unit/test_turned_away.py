"""However many come without a right token, the log stays bounded and an operator is called."""

from __future__ import annotations

from structlog.testing import capture_logs

from tool_server.turned_away import LINES_MAX, WINDOW_SECONDS, TurnedAway


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_each_of_a_few_has_a_line_and_nobody_is_called():
    door = TurnedAway(Clock())
    with capture_logs() as lines:
        for _ in range(LINES_MAX):
            door.note("token_invalid", "signature")
    assert [line["event"] for line in lines] == ["refused"] * LINES_MAX
    assert {(line["code"], line["reason"], line["log_level"]) for line in lines} == {
        ("token_invalid", "signature", "warning")
    }


def test_many_are_counted_and_an_operator_is_called_at_once_and_told_the_number_when_the_next_comes():
    clock = Clock()
    door = TurnedAway(clock)
    with capture_logs() as lines:
        for number in range(10_000):
            door.note("token_invalid", "expired" if number % 4 == 0 else "signature")
        clock.now += WINDOW_SECONDS
        door.note("token_missing", "missing")
    assert len(lines) == LINES_MAX + 3
    alarm, numbers, fresh = lines[-3:]
    assert (alarm["event"], alarm["log_level"]) == ("many_turned_away", "error")
    assert numbers["event"] == "turned_away"
    assert numbers["reasons"] == {"expired": 2500, "signature": 7500}
    assert (fresh["event"], fresh["code"]) == ("refused", "token_missing")


def test_a_quiet_window_is_not_told_of():
    clock = Clock()
    door = TurnedAway(clock)
    with capture_logs() as lines:
        for _ in range(5 * LINES_MAX):
            clock.now += WINDOW_SECONDS / LINES_MAX + 0.01
            door.note("token_invalid", "signature")
    assert {line["event"] for line in lines} == {"refused"}
