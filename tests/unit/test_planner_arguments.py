"""A call's arguments are one whole, storable JSON object, or the call is refused; nothing is repaired."""

from __future__ import annotations

import json
from typing import Any

import pytest

from host.domain.proposals import ToolCall
from tests.unit.vendor_turns import GET_ORDER, ORDER_ARGUMENTS, VENDORS, every_vendor, outcome, replaced, said

TEXT_VENDORS, OBJECT_VENDORS = ("responses", "chat"), ("anthropic", "gemini")


@pytest.mark.parametrize("name", TEXT_VENDORS)
@pytest.mark.parametrize(
    "arguments",
    [
        '{"order_id":"A-1001","lines":[{"line":1,"qty":',  # 48
        "",
        " ",
        "null",
        "[]",
        '"x"',
        "1",
        '{"a":1}{"b":2}',
        '{"a":1} trailing',
        '{"a":1,}',
        "{'order_id':'A-1001'}",
        '```json\n{"a":1}\n```',
        '{"a":1 /* one */}',
        '{"a":1,"a":1}',
        '{"a":{"b":1,"b":2}}',
        '{"a":NaN}',
        '{"a":-Infinity}',
        '{"a":1e999}',
        '{"a":' + "9" * 5000 + "}",
        r'{"order_id":"A\u0000"}',
        r'{"a\u0000":1}',
        '{"a":"\0"}',
        r'{"a":["\ud800"]}',
        r'{"\udfff":1}',
        '{"a":"\ud800"}',
        '{"a":"' + "x" * 70_000 + '"}',
        '{"a":' + "[" * 40 + "]" * 40 + "}",
        '{"a":' + "[" * 30_000 + "]" * 30_000 + "}",
        "[" * 60_000,
        '{"a":' * 10_000,
        None,
        7,
        ["order_id"],
    ],
    ids=lambda arguments: repr(arguments)[:30],
)
def test_argument_text_that_is_not_one_whole_object_is_refused_and_never_repaired(name, arguments):
    vendor = VENDORS[name]
    body = replaced(vendor.build(calls=(GET_ORDER,)), vendor.arguments_at, arguments)
    assert outcome(vendor, body) == "arguments_invalid"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@every_vendor
@pytest.mark.parametrize(
    "arguments",
    [
        {"order_id": "A\0"},
        {"a\0": 1},
        {"a": ["\udc00"]},
        {"a": float("nan")},
        {"a": [float("inf")]},
        {"a": 10**5000},
        {"a": "x" * 70_000},
        {"a": [0] * 40_000},
        nested(33),
        nested(50_000),
        None,
    ],
    ids=lambda arguments: type(arguments).__name__,
)
def test_an_argument_object_that_cannot_be_stored_is_refused(vendor, arguments):
    body = replaced(vendor.build(calls=(GET_ORDER,)), vendor.arguments_at, arguments)
    assert outcome(vendor, body) == "arguments_invalid"


@pytest.mark.parametrize("name", OBJECT_VENDORS)
@pytest.mark.parametrize("arguments", [ORDER_ARGUMENTS, "", [], 1, True])
def test_where_a_vendor_sends_objects_a_text_is_not_parsed_into_one(name, arguments):
    vendor = VENDORS[name]
    body = replaced(vendor.build(calls=(GET_ORDER,)), vendor.arguments_at, arguments)
    assert outcome(vendor, body) == "arguments_invalid"


@every_vendor
@pytest.mark.parametrize(
    "arguments",
    [
        "{}",  # the tool's schema refuses it; nothing is added here
        r'{"note":"the six characters \\u0000 and an emoji \ud83d\ude00"}',
        '{"quantity":9223372036854775808,"ratio":0.1}',
        json.dumps(nested(32)),
        json.dumps({"note": "あ" * 20_000}, ensure_ascii=False),
    ],
    ids=["empty", "escapes", "numbers", "deep", "long"],
)
def test_sound_arguments_arrive_unchanged(vendor, arguments):
    body = vendor.build(calls=(said("get_order", arguments),))
    assert outcome(vendor, body) == ToolCall("t3:call_0", "get_order", json.loads(arguments))
