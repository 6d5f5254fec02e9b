"""Canonical JSON and its SHA-256: the one copy that both sides digest with.

Canonical form: objects with their keys sorted by code point, no white space, UTF-8, every string in NFC,
integers alone (a float has several spellings, so it has no digest), no NUL, no lone surrogate.
Two values that mean the same therefore have one digest, whatever order or spelling they came in.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from typing import Any

DEPTH_MAX = 64


class NotCanonicalError(ValueError):
    """The value has no canonical form: a float, a NUL, a lone surrogate, keys that collide, or too deep."""


def storable_text(text: str) -> str:
    """Give the text in NFC; PostgreSQL stores no NUL, and UTF-8 has no lone surrogate."""
    if "\x00" in text:
        raise NotCanonicalError("a NUL character cannot be stored; remove it")
    if not text.isascii():
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise NotCanonicalError("a lone surrogate is no character; send well-formed Unicode")
        text = unicodedata.normalize("NFC", text)
    return text


def _canonical(value: Any, depth: int) -> Any:
    if depth > DEPTH_MAX:
        raise NotCanonicalError(f"nested deeper than {DEPTH_MAX} levels")
    match value:
        case None | bool() | int():
            return value
        case str():
            return storable_text(value)
        case Mapping():
            normal = {storable_text(key): _canonical(item, depth + 1) for key, item in value.items()}
            if len(normal) != len(value):
                raise NotCanonicalError("two keys are the same after Unicode normalisation")
            return normal
        case list() | tuple():
            return [_canonical(item, depth + 1) for item in value]
        case _:
            raise NotCanonicalError(f"a {type(value).__name__} has no canonical JSON; use an integer or a string")


def canonical_json(value: Any) -> bytes:
    """Give the canonical bytes of a JSON value; raises NotCanonicalError where there are none."""
    normal = _canonical(value, 0)
    return json.dumps(normal, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest(value: Any) -> str:
    """Give the SHA-256 of the canonical JSON, 64 lower-case hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def action_fingerprint(tool: str, arguments: Mapping[str, Any]) -> str:
    """Name an action for repeat detection: the same tool with the same arguments, whatever the call id."""
    return digest({"tool": tool, "arguments": dict(arguments)})
