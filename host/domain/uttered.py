"""What is kept of a turn with a planner: which definitions it was shown, and what it gave, without a word of it. Pure.

    shown ──► the definitions themselves, which are ours, once under their digest
    given ──► names that we know, kinds and sizes of values, and the digest of the whole

Invariant: no text, number or name that a planner made up is kept, since it may be a customer's; a name is kept where it
is one of our own. Any value at all can be masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from host.domain.proposals import Final, NeedsHuman, PlannerFault, ToolCall, ToolDefinition, Utterance
from shared_contracts.contract import Tool
from shared_contracts.digest import digest

PARTS_MAX = 20  # calls and texts of one turn that are told apart


@dataclass(frozen=True, slots=True)
class Offer:
    """What a planner is shown in one turn, as it is kept."""

    sha256: str
    definitions: list[dict[str, Any]]


def offer(tools: tuple[ToolDefinition, ...]) -> Offer:
    """Digest definitions in the order in which they are shown."""
    shown = [{"name": t.name, "description": t.description, "input_schema": t.input_schema} for t in tools]
    return Offer(digest(shown), shown)


def masked(said: Any, raw: Any, tools: Mapping[str, Tool]) -> dict[str, Any]:
    """Give the form of what came; `raw` is what it was read out of, where it was read out of something."""
    texts, calls = _whole(said, raw)
    return {
        "form": _form(said),
        "calls": [_call(name, arguments, tools) for name, arguments in calls[:PARTS_MAX]],
        "texts": [len(text) for text in texts[:PARTS_MAX]],
        "sha256": _digest([list(texts), [list(call) for call in calls]]),
    }


def _form(said: Any) -> str:
    match said:
        case ToolCall():
            return "call"
        case Final():
            return "final"
        case NeedsHuman():
            return "hand_over"
        case PlannerFault():
            return "fault"
        case _:
            return "nothing"


def _whole(said: Any, raw: Any) -> tuple[list[str], list[tuple[str, Any]]]:
    """Give texts and calls; of a planner that hands over something else there are none."""
    if isinstance(raw, Utterance) and isinstance(raw.texts, tuple) and isinstance(raw.calls, tuple):
        calls = [one for one in raw.calls if isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str)]
        return [text for text in raw.texts if isinstance(text, str)], calls
    if isinstance(said, ToolCall) and isinstance(said.name, str):
        return [], [(said.name, said.arguments)]
    return [], []


def _call(name: str, arguments: Any, tools: Mapping[str, Tool]) -> dict[str, Any]:
    tool = tools.get(name)
    declared = frozenset[str]() if tool is None else frozenset(tool.arguments.model_fields)
    given = arguments if isinstance(arguments, dict) else {}
    return {
        "tool": None if tool is None else name,
        "arguments": _kind(arguments) if given is not arguments else {
            key: _kind(value) for key, value in given.items() if key in declared
        },
        "undeclared": sum(key not in declared for key in given),
    }  # fmt: skip


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return f"text {len(value)}"
        case list():
            return f"list {len(value)}"
        case dict():
            return f"object {len(value)}"
        case _:
            return "no JSON"


def _digest(value: Any) -> str | None:
    try:
        return digest(value)
    except (ValueError, TypeError, RecursionError):  # what is no JSON
        return None
