"""What is kept of a planner's turn holds its form and its size, and no word, number or name that it made up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.domain.proposals import Final, NeedsHuman, PlannerFault, ToolCall, Utterance
from host.domain.uttered import masked, offer
from host.planner.context import definition
from host.planner.turns import read_chat, utterance
from shared_contracts.base import parse
from shared_contracts.digest import digest
from shared_contracts.record import Said
from shared_contracts.tools import TOOLS

CANARY = "山田太郎 taro@example.com"
VALUES: list[Any] = [CANARY, 90_210_777, [CANARY], {CANARY: CANARY}, None, True, 1.5, float("nan"), {1, 2}, object()]


def kept(said: Any, raw: Any = None) -> str:
    made = masked(said, raw, TOOLS)
    parse(Said, made)
    return json.dumps(made, ensure_ascii=False, allow_nan=False)


@pytest.mark.parametrize("value", VALUES, ids=[str(n) for n in range(len(VALUES))])
def test_no_value_that_a_planner_gave_is_kept(value: Any):
    call = ToolCall(CANARY, "get_order", {"order_id": value, CANARY: value})
    for told in (kept(call), kept(PlannerFault("no_call", CANARY), Utterance((CANARY,), ((CANARY, value),)))):
        assert not any(word in told for word in ("山田", "taro", "90210777"))


def test_an_accepted_call_is_kept_by_its_tool_and_by_the_kinds_and_sizes_of_what_it_declares():
    made = masked(ToolCall("c", "create_return", {"order_id": "A-1", "lines": [{}, {}], "x": 1}), None, TOOLS)
    assert made["form"] == "call"
    assert made["calls"] == [
        {"tool": "create_return", "arguments": {"order_id": "text 3", "lines": "list 2"}, "undeclared": 1}
    ]
    assert made["texts"] == []


def test_what_was_discarded_is_counted_beside_the_fault_that_it_became():
    body = {"choices": [{"finish_reason": "tool_calls", "message": {"content": "I do both", "tool_calls": [
        {"id": "1", "function": {"name": "create_return", "arguments": "{}"}},
        {"id": "2", "function": {"name": "refund_everything", "arguments": {"to": CANARY}}},
    ]}}]}  # fmt: skip
    turn = read_chat(body)
    assert not isinstance(turn, PlannerFault)
    made = masked(PlannerFault("several_calls", "…"), utterance(turn), TOOLS)
    assert (made["form"], made["texts"]) == ("fault", [9])
    assert [(one["tool"], one["arguments"], one["undeclared"]) for one in made["calls"]] == [
        ("create_return", "text 2", 0), (None, {}, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "form"),
    [(Final({"a": CANARY}, (CANARY,)), "final"), (NeedsHuman(CANARY), "hand_over"), (None, "nothing"), (7, "nothing")],
)
def test_what_is_no_call_is_kept_by_its_form_alone(said: Any, form: str):
    made = masked(said, None, TOOLS)
    assert (made["form"], made["calls"], made["texts"]) == (form, [], [])
    assert CANARY not in kept(said)


@given(raw=st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.tuples(x, x), max_leaves=9))
def test_whatever_a_planner_hands_over_as_raw_can_be_kept(raw: Any):
    kept(None, raw)
    kept(None, Utterance(raw, raw))  # type: ignore[arg-type]


def test_what_is_shown_is_kept_whole_under_the_digest_of_exactly_that():
    made = offer(tuple(definition(TOOLS[name]) for name in ("create_return", "get_order")))
    assert [one["name"] for one in made.definitions] == ["create_return", "get_order"]
    assert made.definitions[0]["description"] == TOOLS["create_return"].summary
    assert made.definitions[0]["input_schema"] == TOOLS["create_return"].input_schema
    assert made.sha256 == digest(made.definitions)
    assert made.sha256 != offer((definition(TOOLS["create_return"]),)).sha256
