"""A result's fields as a person reads them: `boolean`, `optional string`, `array`. Derived from its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _resolved(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = node.get("$ref")
    if reference is None:
        return node
    found: Mapping[str, Any] = schema["$defs"][str(reference).rsplit("/", 1)[-1]]
    return found


def _word(node: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    kinds = [_resolved(choice, schema) for choice in node.get("anyOf", (node,))]
    words = [str(kind["type"]) for kind in kinds]
    named = " or ".join(word for word in words if word != "null")
    return f"optional {named}" if "null" in words else named


def fields_of(schema: Mapping[str, Any]) -> dict[str, str]:
    """Name each field of an object schema with its type; `optional` where null is an answer."""
    return {name: _word(_resolved(node, schema), schema) for name, node in schema["properties"].items()}
