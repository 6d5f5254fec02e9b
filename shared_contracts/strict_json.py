"""JSON from outside, read one way only: UTF-8, no member twice, no NaN, no lone surrogate, bounded depth.

Invariant: what passes here means the same to every parser behind it, so no check is bypassed by a second reading.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

DEPTH_MAX = 64  # an honest message nests about six levels; the same bound as the canonical digest's


class NotJsonError(ValueError):
    """The bytes are no JSON that has one meaning."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotJsonError("a member is given twice")
    return members


def _constant(name: str) -> NoReturn:
    raise NotJsonError(f"{name} is not JSON")


def strict_json(data: bytes) -> Any:
    """Decode the bytes; raises NotJsonError, whose text never repeats them."""
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant)
    except NotJsonError:
        raise
    except UnicodeDecodeError:
        raise NotJsonError("the text is not UTF-8") from None
    except (ValueError, RecursionError):  # an integer of 5,000 digits is a bare ValueError
        raise NotJsonError("the text is not JSON") from None
    if text.count("[") + text.count("{") > DEPTH_MAX and _deeper(value, DEPTH_MAX):
        raise NotJsonError(f"nested deeper than {DEPTH_MAX} levels")
    if "\\u" in text:
        _refuse_lone_surrogates(value)
    return value


def _deeper(value: Any, levels: int) -> bool:
    row = [value]
    for _ in range(levels + 1):
        row = [
            child
            for node in row
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
    return bool(row)


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise NotJsonError("a lone surrogate is no character") from None
