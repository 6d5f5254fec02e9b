"""Whatever a vendor sends, reading and deciding are total, and only an offered name becomes a tool call."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from host.domain.proposals import Final, NeedsHuman, PlannerFault, ToolCall
from host.planner.decode import decode, vendor_call_id
from host.planner.turns import Call, Finish, Turn
from tests.unit.vendor_turns import (
    CREATE_RETURN,
    DONE,
    GET_ORDER,
    OFFERED,
    VENDORS,
    decided,
    outcome,
    paths,
    replaced,
)

texts = st.text(st.characters(), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(texts, below, max_size=3),
    max_leaves=8,
)
SAMPLES = [
    (vendor, vendor.build(calls=calls, text=text, stop=stop))
    for vendor in VENDORS.values()
    for calls in ((), (GET_ORDER,), (GET_ORDER, CREATE_RETURN))
    for text in (None, DONE)
    for stop in ("complete", "length", "safety")
]


def assert_sound(found: object, offered: frozenset[str]) -> None:
    assert isinstance(found, ToolCall | Final | NeedsHuman | PlannerFault)
    if isinstance(found, ToolCall):
        assert found.name in offered
        stored = json.dumps(found.arguments, ensure_ascii=False, allow_nan=False).encode()
        assert json.loads(stored) == found.arguments
        assert "\\u0000" not in stored.decode().replace("\\\\", "")


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_recorded_answer_with_any_place_replaced_by_anything_never_raises(data):
    vendor, body = data.draw(st.sampled_from(SAMPLES))
    for _ in range(data.draw(st.integers(1, 2))):
        body = replaced(body, data.draw(st.sampled_from(paths(body))), data.draw(json_values))
    assert_sound(decided(vendor, body), OFFERED)


@settings(max_examples=100, deadline=None)
@given(body=json_values)
def test_any_json_value_at_all_is_read_by_every_reader_and_decides_nothing(body):
    for vendor in VENDORS.values():
        assert outcome(vendor, body) == "malformed_turn"


names = st.sampled_from([*sorted(OFFERED), "finish", "hand_over", "get_order ", "Get_order"]) | st.text(max_size=12)
calls = st.builds(
    Call,
    call_id=texts,
    name=names,
    arguments=st.none() | texts | json_values.map(json.dumps) | st.dictionaries(texts, json_values, max_size=3),
)


@settings(max_examples=300, deadline=None)
@given(
    turn=st.builds(
        Turn,
        texts=st.lists(texts, max_size=2).map(tuple),
        calls=st.lists(calls, max_size=3).map(tuple),
        refusal=st.none() | texts,
        finish=st.sampled_from(Finish),
    ),
    offered=st.frozensets(st.sampled_from(sorted(OFFERED))),
    turn_number=st.integers(1, 99),
)
def test_only_one_call_by_an_offered_name_in_a_whole_turn_becomes_a_tool_call(turn, offered, turn_number):
    found = decode(turn, offered, turn_number)
    assert_sound(found, offered)
    if isinstance(found, ToolCall):
        assert turn.finish is Finish.COMPLETE
        assert turn.refusal is None
        assert [call.name for call in turn.calls] == [found.name]
        assert vendor_call_id(found.call_id) in {turn.calls[0].call_id, f"t{turn_number}"}
