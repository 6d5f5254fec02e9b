"""A broken protocol: once more, then a pause of bounded length."""

from __future__ import annotations

from host.tool_client.quarantine import ISOLATION_SECONDS, Quarantine


def test_the_first_break_asks_for_a_new_negotiation_and_the_second_isolates() -> None:
    quarantine = Quarantine()
    quarantine.broke(quarantine.generation, 0.0)
    assert (quarantine.generation, quarantine.isolated(0.0)) == (1, False)
    quarantine.broke(quarantine.generation, 10.0)
    assert quarantine.isolated(10.0)
    assert quarantine.isolated(10.0 + ISOLATION_SECONDS - 0.001)
    assert not quarantine.isolated(10.0 + ISOLATION_SECONDS)


def test_many_calls_over_one_negotiation_break_it_once() -> None:
    quarantine = Quarantine()
    generation = quarantine.generation
    for _ in range(50):
        quarantine.broke(generation, 0.0)
    assert not quarantine.isolated(0.0)
    assert quarantine.generation == generation + 1


def test_after_isolation_one_break_isolates_again() -> None:
    quarantine = Quarantine()
    for now in (0.0, 1.0, 100.0):
        quarantine.broke(quarantine.generation, now)
    assert quarantine.isolated(100.0)


def test_a_sound_answer_of_this_negotiation_clears_everything() -> None:
    quarantine = Quarantine()
    for now in (0.0, 1.0):
        quarantine.broke(quarantine.generation, now)
    quarantine.sound(quarantine.generation)
    assert not quarantine.isolated(1.0)
    quarantine.broke(quarantine.generation, 2.0)
    assert not quarantine.isolated(2.0)


def test_an_answer_over_an_older_negotiation_clears_nothing() -> None:
    quarantine = Quarantine()
    quarantine.broke(0, 0.0)
    quarantine.sound(0)
    quarantine.broke(1, 0.0)
    assert quarantine.isolated(0.0)
