"""What a model says becomes one decision or a named fault, the same for every vendor's shape."""

from __future__ import annotations

import pytest

from host.domain.proposals import Final, NeedsHuman, PlannerFault, ToolCall
from host.planner.decode import decode
from host.planner.turns import Turn
from tests.unit.vendor_turns import (
    CREATE_RETURN,
    DONE,
    GET_ORDER,
    VENDORS,
    anthropic,
    chat,
    decided,
    every_vendor,
    gemini,
    outcome,
    replaced,
    responses,
    said,
)

REFUSED = NeedsHuman("model_refusal")
CHAT_MESSAGE = ("choices", 0, "message")
CHAT_CALL = chat((GET_ORDER,))["choices"][0]["message"]["tool_calls"][0]
GEMINI_PART, GEMINI_REASON = ("candidates", 0, "content", "parts", 0), ("candidates", 0, "finishReason")
ASKED = ToolCall("t3:call_0", "get_order", {"order_id": "A-1001"})


@every_vendor
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # 47: one call per turn, of several none
        ({"calls": (GET_ORDER,)}, ASKED),
        ({"calls": (GET_ORDER,), "text": "I look at the order first."}, ASKED),
        ({"calls": (GET_ORDER,), "text": DONE}, ASKED),
        ({"calls": (GET_ORDER, CREATE_RETURN)}, "several_calls"),
        ({"calls": (CREATE_RETURN, CREATE_RETURN)}, "several_calls"),
        ({"calls": (GET_ORDER, CREATE_RETURN), "text": "Both at once."}, "several_calls"),
        ({"calls": (GET_ORDER, said("no_such_tool"))}, "several_calls"),
        # 48: a cut-off turn is discarded whole, complete as its call may look
        ({"calls": (CREATE_RETURN,), "stop": "length"}, "cut_off"),
        ({"text": "The order", "stop": "length"}, "cut_off"),
        ({"calls": (GET_ORDER, CREATE_RETURN), "stop": "length"}, "cut_off"),
        # 52 and E-03: a text does nothing
        ({"text": DONE}, "unbacked_completion_claim"),
        ({"text": "I called create_ticket and it worked."}, "unbacked_completion_claim"),
        ({"text": '```\ncreate_return({"order_id": "A-1001"})\n```'}, "unbacked_completion_claim"),
        ({"text": '{"name": "get_order", "arguments": {}}'}, "unbacked_completion_claim"),
        ({"text": "返品の手続きが完了しました。"}, "unbacked_completion_claim"),
        ({"text": '{"type": "tool_call", "name": "cancel_ticket("}'}, "unbacked_completion_claim"),
        ({"text": "Which order do you mean?"}, "no_call"),
        ({"text": "The order cannot be found."}, "no_call"),
        # 54: an answer without content, or one that ended in a way nobody knows
        ({}, "malformed_turn"),
        ({"text": ""}, "malformed_turn"),
        ({"text": " \n"}, "malformed_turn"),
        ({"calls": (GET_ORDER,), "stop": "new"}, "malformed_turn"),
        # 55: a safety stop hands over at once, whatever is beside it
        ({"stop": "safety"}, REFUSED),
        ({"calls": (CREATE_RETURN,), "stop": "safety"}, REFUSED),
        ({"calls": (GET_ORDER, CREATE_RETURN), "text": DONE, "stop": "safety"}, REFUSED),
    ],
)
def test_a_turn_is_one_decision_or_a_named_fault(vendor, answer, expected):
    assert outcome(vendor, vendor.build(**answer)) == expected


@every_vendor
@pytest.mark.parametrize(
    "name",
    [
        "refund_create",  # 51
        "return-create",
        "create-return",
        "Create_return",
        "functions.create_return",
        "",
        "get_order;create_return",
        "get_order ",
        "get_order\n",
        "get\u200b_order",
        "get_order\u200d",
        "get_ord\u0435r",
        "get_order\0",
        "send_return_notice",  # a real tool that is not offered now
        "Finish",
        "\ud800",
        "x" * 100_000,
    ],
    ids=lambda name: ascii(name)[:30],
)
def test_a_near_miss_of_a_tool_is_refused_with_the_names_that_are_offered(vendor, name):
    fault = decided(vendor, vendor.build(calls=(said(name),)))
    assert isinstance(fault, PlannerFault)
    assert fault.code == "unknown_tool"
    assert fault.message.endswith("exactly: check_return_policy, create_return, get_order, finish, hand_over.")
    assert fault.message.isascii()
    assert len(fault.message) < 1000


@every_vendor
def test_a_call_is_refused_when_nothing_is_offered(vendor):
    turn = vendor.read(vendor.build(calls=(GET_ORDER,)))
    assert isinstance(turn, Turn)
    fault = decode(turn, frozenset(), 1)
    assert isinstance(fault, PlannerFault)
    assert fault.code == "unknown_tool"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (
            "responses",
            replaced(responses(text="x"), ("output", 1, "content"), [{"type": "refusal", "refusal": "No."}]),
        ),
        (
            "responses",
            replaced(responses(text="x"), ("output", 1, "content", 0), {"type": "refusal", "refusal": ""}),
        ),
        (
            "responses",
            replaced(
                responses((CREATE_RETURN,), "x"),
                ("output", 1, "content", 0),
                {"type": "refusal", "refusal": "No."},
            ),
        ),
        ("chat", replaced(chat(), (*CHAT_MESSAGE, "refusal"), "I can't help with that.")),
        ("chat", replaced(chat((CREATE_RETURN,)), (*CHAT_MESSAGE, "refusal"), "No.")),
        ("chat", replaced(chat(stop="length"), (*CHAT_MESSAGE, "refusal"), "No.")),
        ("chat", {"choices": [{"finish_reason": "content_filter"}]}),
        ("chat", chat((said("create_return", '{"order_id":"A-1'),), stop="safety")),
        ("anthropic", {**anthropic(stop="safety"), "content": []}),
        ("anthropic", {**anthropic(stop="safety"), "content": None}),
        ("gemini", {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {}}),
        ("gemini", {"candidates": [{"finishReason": "SAFETY", "index": 0}]}),
        ("gemini", replaced(gemini((CREATE_RETURN,)), GEMINI_REASON, "RECITATION")),
        (
            "gemini",
            replaced(gemini((CREATE_RETURN,)), GEMINI_REASON, "PROHIBITED_CONTENT"),
        ),
    ],
)
def test_a_refusal_goes_to_a_person_and_no_call_beside_it_counts(name, body):
    assert outcome(VENDORS[name], body) == REFUSED


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("chat", {"choices": []}),
        ("chat", {**chat((GET_ORDER,)), "choices": chat((GET_ORDER,))["choices"] * 2}),
        ("chat", replaced(chat(), ("choices", 0, "finish_reason"), "tool_calls")),
        ("chat", replaced(chat((GET_ORDER,)), ("choices", 0, "finish_reason"), None)),
        ("chat", replaced(chat((GET_ORDER,)), ("choices", 0, "finish_reason"), ["stop"])),
        ("chat", replaced(chat((GET_ORDER,)), (*CHAT_MESSAGE, "tool_calls", 0, "id"), 7)),
        ("chat", replaced(chat((GET_ORDER,)), (*CHAT_MESSAGE, "tool_calls", 0, "function"), None)),
        ("chat", replaced(chat(text=DONE), ("choices", 0, "finish_reason"), "tool_calls")),
        ("chat", replaced(chat((GET_ORDER,)), (*CHAT_MESSAGE, "function_call"), {"name": "create_return"})),
        ("chat", replaced(chat((GET_ORDER,)), (*CHAT_MESSAGE, "tool_calls"), [CHAT_CALL, "create_return"])),
        ("chat", replaced(chat((GET_ORDER,)), (*CHAT_MESSAGE, "content"), [{"type": "image_url"}])),
        ("chat", {"error": {"message": "overloaded", "type": "server_error"}}),
        ("responses", {**responses((GET_ORDER,)), "status": "failed", "error": {"code": "server_error"}}),
        ("responses", {**responses((GET_ORDER,)), "status": "in_progress"}),
        ("responses", replaced(responses((GET_ORDER,)), ("output", 1, "status"), "in_progress")),
        ("responses", replaced(responses((GET_ORDER,)), ("output", 0), {"type": "web_search_call"})),
        (
            "responses",
            replaced(responses((GET_ORDER,)), ("output", 0), {"type": "custom_tool_call", "input": "x"}),
        ),
        ("responses", replaced(responses((GET_ORDER,)), ("output", 1, "name"), None)),
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        ("anthropic", {**anthropic(), "stop_reason": "tool_use"}),
        ("anthropic", {**anthropic(text=DONE), "stop_reason": "tool_use"}),
        ("anthropic", {**anthropic((GET_ORDER,)), "stop_reason": "pause_turn"}),
        ("anthropic", replaced(anthropic((GET_ORDER,)), ("content", 0), {"type": "server_tool_use"})),
        ("gemini", {"candidates": []}),
        ("gemini", {"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}]}),
        (
            "gemini",
            replaced(gemini((GET_ORDER,)), GEMINI_REASON, "MALFORMED_FUNCTION_CALL"),
        ),
        ("gemini", replaced(gemini((GET_ORDER,)), GEMINI_REASON, "UNEXPECTED_TOOL_CALL")),
        ("gemini", replaced(gemini((GET_ORDER,)), GEMINI_REASON, "TOO_MANY_TOOL_CALLS")),
        (
            "gemini",
            replaced(gemini((GET_ORDER,)), GEMINI_PART, {"executableCode": {}}),
        ),
    ],
)
def test_a_call_in_a_malformed_turn_is_not_a_decision(name, body):
    assert outcome(VENDORS[name], body) == "malformed_turn"


@every_vendor
@pytest.mark.parametrize("body", ["<html><body>502</body></html>", "", None, [], {}, 0, True, [{}], {"a": 1}])
def test_a_body_that_is_no_answer_is_a_malformed_turn(vendor, body):
    assert outcome(vendor, body) == "malformed_turn"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (
            "responses",
            replaced(responses((GET_ORDER,), stop="length"), ("output", 1, "status"), "incomplete"),
        ),
        ("responses", {**responses((GET_ORDER,)), "incomplete_details": {"reason": "max_output_tokens"}}),
        ("anthropic", {**anthropic((GET_ORDER,)), "stop_reason": "model_context_window_exceeded"}),
        ("gemini", {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]}),
    ],
)
def test_an_answer_that_ran_out_of_room_is_cut_off(name, body):
    assert outcome(VENDORS[name], body) == "cut_off"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("responses", {**responses((GET_ORDER,)), "incomplete_details": {"reason": None}}),
        ("chat", replaced(chat((GET_ORDER,)), ("choices", 0, "finish_reason"), "stop")),
        ("chat", replaced(chat((GET_ORDER,)), (*CHAT_MESSAGE, "refusal"), "")),
        (
            "chat",
            replaced(chat((GET_ORDER,)), (*CHAT_MESSAGE, "content"), [{"type": "text", "text": "Now."}]),
        ),
        (
            "anthropic",
            replaced(anthropic((GET_ORDER,)), ("content", 0), {"type": "redacted_thinking", "data": "x"}),
        ),
        ("gemini", replaced(gemini((GET_ORDER,)), GEMINI_PART, {"thoughtSignature": "c2ln"})),
    ],
)
def test_a_vendors_habit_that_harms_nothing_does_not_cost_the_call(name, body):
    assert outcome(VENDORS[name], body) == ASKED


@every_vendor
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("finish", '{"answer":{"eligible":true},"evidence_refs":["t1"]}', Final({"eligible": True}, ("t1",))),
        ("finish", '{"answer":{},"evidence_refs":[]}', Final({}, ())),
        ("finish", '{"answer":{}}', "arguments_invalid"),
        ("finish", '{"evidence_refs":[]}', "arguments_invalid"),
        ("finish", '{"answer":"all done","evidence_refs":[]}', "arguments_invalid"),
        ("finish", '{"answer":{},"evidence_refs":"t1"}', "arguments_invalid"),
        ("finish", '{"answer":{},"evidence_refs":[1]}', "arguments_invalid"),
        ("finish", '{"answer":{},"evidence_refs":[""]}', "arguments_invalid"),
        ("finish", '{"answer":{},"evidence_refs":[],"state":"COMPLETED"}', "arguments_invalid"),
        ("hand_over", '{"reason":"data_missing"}', NeedsHuman("data_missing")),
        ("hand_over", "{}", "arguments_invalid"),
        ("hand_over", '{"reason":null}', "arguments_invalid"),
        ("hand_over", '{"reason":""}', "arguments_invalid"),
        ("hand_over", '{"reason":"The customer is angry."}', "arguments_invalid"),
        ("hand_over", '{"reason":"data_missing\\n"}', "arguments_invalid"),
        ("hand_over", '{"reason":"' + "a" * 65 + '"}', "arguments_invalid"),
        ("hand_over", '{"reason":"data_missing","note":"x"}', "arguments_invalid"),
    ],
)  # fmt: skip
def test_a_model_ends_by_a_reserved_call_with_strict_arguments(vendor, name, arguments, expected):
    assert outcome(vendor, vendor.build(calls=(said(name, arguments),))) == expected


@every_vendor
def test_an_end_beside_a_call_is_two_calls_and_counts_as_none(vendor):
    end = said("finish", '{"answer":{},"evidence_refs":[]}')
    assert outcome(vendor, vendor.build(calls=(GET_ORDER, end))) == "several_calls"
