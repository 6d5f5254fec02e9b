"""What everybody may ask for is not written down for everybody who asks."""

from __future__ import annotations

from tool_server.seldom import SECONDS, Seldom


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_same_is_due_once_in_a_while_and_another_thing_by_itself():
    clock = Clock()
    seldom = Seldom(clock)
    assert [seldom.due("away") for _ in range(1000)].count(True) == 1
    assert seldom.due("slow")
    clock.now += SECONDS - 0.01
    assert not seldom.due("away")
    clock.now += 0.01
    assert seldom.due("away")
    assert not seldom.due("away")
