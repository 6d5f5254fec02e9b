"""Answers as four vendors send them, built from the same few facts, and what the planner makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from host.domain.proposals import PlannerDecision, PlannerFault
from host.planner.decode import decode
from host.planner.turns import Turn, read_anthropic, read_chat, read_gemini, read_responses

Said = tuple[str | None, str, str]  # id, name, arguments as text

OFFERED = frozenset({"get_order", "check_return_policy", "create_return"})
ORDER_ARGUMENTS = '{"order_id":"A-1001"}'
DONE = "Your return R-1001 is approved and the label was sent."
GET_ORDER: Said = ("call_0", "get_order", ORDER_ARGUMENTS)
CREATE_RETURN: Said = (
    "call_1",
    "create_return",
    '{"order_id":"A-1001","lines":[{"line_id":1,"quantity":1}]}',
)


def responses(calls: tuple[Said, ...] = (), text: str | None = None, stop: str = "complete") -> dict[str, Any]:
    reason = {"complete": None, "length": "max_output_tokens", "safety": "content_filter", "new": "bored"}[stop]
    output: list[dict[str, Any]] = [{"id": "rs_1", "type": "reasoning", "summary": []}]
    if text is not None:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        output.append({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]})
    output += [
        {
            "id": f"fc_{index}",
            "type": "function_call",
            "status": "completed",
            **({} if call_id is None else {"call_id": call_id}),
            "name": name,
            "arguments": arguments,
        }
        for index, (call_id, name, arguments) in enumerate(calls)
    ]
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1785337200,
        "status": "completed" if reason is None else "incomplete",
        "error": None,
        "incomplete_details": None if reason is None else {"reason": reason},
        "output": output,
        "parallel_tool_calls": False,
        "usage": {"input_tokens": 412, "output_tokens": 31, "total_tokens": 443},
    }


def chat(calls: tuple[Said, ...] = (), text: str | None = None, stop: str = "complete") -> dict[str, Any]:
    done = "tool_calls" if calls else "stop"
    reason = {"complete": done, "length": "length", "safety": "content_filter", "new": "bored"}[stop]
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1785337200,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": {"prompt_tokens": 412, "completion_tokens": 31, "total_tokens": 443},
    }


def anthropic(calls: tuple[Said, ...] = (), text: str | None = None, stop: str = "complete") -> dict[str, Any]:
    done = "tool_use" if calls else "end_turn"
    reason = {"complete": done, "length": "max_tokens", "safety": "refusal", "new": "bored"}[stop]
    content: list[dict[str, Any]] = [{"type": "thinking", "thinking": "Look first.", "signature": "c2ln"}]
    content += [] if text is None else [{"type": "text", "text": text}]
    content += [
        {"type": "tool_use", "id": call_id, "name": name, "input": json.loads(arguments)}
        for call_id, name, arguments in calls
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 412, "output_tokens": 31},
    }


def gemini(calls: tuple[Said, ...] = (), text: str | None = None, stop: str = "complete") -> dict[str, Any]:
    reason = {"complete": "STOP", "length": "MAX_TOKENS", "safety": "SAFETY", "new": "BORED"}[stop]
    parts: list[dict[str, Any]] = [{"text": "Look first.", "thought": True}]
    parts += [] if text is None else [{"text": text, "thoughtSignature": "c2ln"}]
    parts += [
        {
            "functionCall": {
                **({} if call_id is None else {"id": call_id}),
                "name": name,
                "args": json.loads(arguments),
            }
        }
        for call_id, name, arguments in calls
    ]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": 412, "candidatesTokenCount": 31, "totalTokenCount": 443},
        "responseId": "r1",
    }


@dataclass(frozen=True)
class Vendor:
    build: Callable[..., dict[str, Any]]
    read: Callable[[Any], Turn | PlannerFault]
    arguments_at: tuple[str | int, ...]  # where, in a built answer with one call and no text, its arguments lie


VENDORS = {
    "responses": Vendor(responses, read_responses, ("output", 1, "arguments")),
    "chat": Vendor(chat, read_chat, ("choices", 0, "message", "tool_calls", 0, "function", "arguments")),
    "anthropic": Vendor(anthropic, read_anthropic, ("content", 1, "input")),
    "gemini": Vendor(gemini, read_gemini, ("candidates", 0, "content", "parts", 1, "functionCall", "args")),
}

every_vendor = pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS.keys())


def said(name: str, arguments: str = ORDER_ARGUMENTS, call_id: str | None = "call_0") -> Said:
    return (call_id, name, arguments)


def decided(vendor: Vendor, body: Any, turn_number: int = 3) -> PlannerDecision | PlannerFault:
    turn = vendor.read(body)
    return turn if isinstance(turn, PlannerFault) else decode(turn, OFFERED, turn_number)


def outcome(vendor: Vendor, body: Any, turn_number: int = 3) -> PlannerDecision | str:
    """The decision, or the fault's code alone."""
    found = decided(vendor, body, turn_number)
    return found.code if isinstance(found, PlannerFault) else found


def replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """The JSON value with `new` at `path`."""
    if not path:
        return new
    if isinstance(value, list):
        return [replaced(member, path[1:], new) if at == path[0] else member for at, member in enumerate(value)]
    return value | {path[0]: replaced(value.get(path[0]), path[1:], new)}


def paths(value: Any) -> list[tuple[str | int, ...]]:
    """Every place in a JSON value, its root first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(), *((key, *below) for key, member in items for below in paths(member))]
