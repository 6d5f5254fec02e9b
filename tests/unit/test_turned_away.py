"""However many come without a right token, the log stays bounded and an operator is called."""

from __future__ import annotations

from structlog.testing import capture_logs

from tool_server.turned_away import LINES_MAX, WINDOW_SECONDS, Failures, TurnedAway


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


def test_another_door_has_words_and_a_number_of_its_own():
    clock = Clock()
    door = TurnedAway(clock, event="approval_refused", alarm="many_approvals_refused", numbers="in_all", lines_max=5)
    with capture_logs() as lines:
        for _ in range(20):
            door.note("approval_refused", "bad_signature", jti="j-1")
        clock.now += WINDOW_SECONDS
        door.note("approval_refused", "used")
    assert [line["event"] for line in lines] == [
        *["approval_refused"] * 5, "many_approvals_refused", "in_all", "approval_refused",
    ]  # fmt: skip
    assert (lines[0]["reason"], lines[0]["jti"]) == ("bad_signature", "j-1")
    assert lines[6]["reasons"] == {"bad_signature": 20}


def test_an_address_fails_as_often_as_its_rate_allows_and_takes_nothing_from_another():
    clock = Clock()
    failures = Failures(2.0, clock)
    assert [failures.wait("192.0.2.1") for _ in range(4)] == [0.0] * 4
    assert 0 < failures.wait("192.0.2.1") <= 0.5 + 1e-6
    assert failures.wait("192.0.2.2") == 0.0
    clock.now += 0.5
    assert failures.wait("192.0.2.1") == 0.0
