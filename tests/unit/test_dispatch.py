"""The last look before an intent is written: what was already done under the same intention is not done again."""

from __future__ import annotations

import pytest

from host.domain.authorization import Facts
from host.engine.propose import dispatch
from shared_contracts.tools import TOOLS
from tests.unit.test_authorization import WRITE
from tests.unit.test_step import ALLOWED
from tests.unit.workflow_state import attempt, call, effect, state, step

HELD = (call(3, "create_return", "requested"),)


def dispatched(*effects: dict[str, object]) -> dict[str, object]:
    at = step(
        state("ELIGIBLE", "tool_proposed", calls=HELD, effects=effects, attempts=(attempt(3, 1, "call", "timeout"),))
    )
    facts: Facts = WRITE
    dispatch(at, TOOLS["create_return"], at.decided(facts, ALLOWED), None)
    return at.rows("me", 15.0, None)


@pytest.mark.parametrize("verified", [False, True])
def test_where_the_effect_exists_nothing_is_sent_and_a_person_looks(verified):
    written = dispatched(effect(3, "create_return", "succeeded", verified=verified))
    assert "effects_opened" not in written
    assert "attempts_opened" not in written
    assert written["workflows"][0]["control_state"] == "needs_human"
    assert written["workflows"][0]["reason"] == "unverified_effect"


@pytest.mark.parametrize("outcome", ["absent", "rejected"])
def test_what_was_proved_not_to_exist_does_not_stand_in_the_way(outcome):
    assert dispatched(effect(3, "create_return", outcome))["effects_opened"][0]["attempt"] == 2


def test_an_effect_of_another_tool_does_not_stand_in_the_way():
    assert "effects_opened" in dispatched(effect(2, "send_return_notice", "succeeded"))
