"""What a planner chose, told without its words: ids and codes that no person writes, and of the rest its digest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from shared_contracts.tools import TOOLS

# Only what programs make up: our own ids, UUIDs, and a vendor's, which are long and have no separator for words to
# stand between. The turn in front of it is ours.
_IDENTIFIER = re.compile(
    r"call_[0-9a-f]{16}_[0-9]{1,6}|undo_[0-9]{1,6}_[0-9]{1,6}|t[0-9]{1,6}"
    r"|(?:t[0-9]{1,6}:)?(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?:call|toolu|fc)_(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,64})"
)
_CODE = re.compile(r"[a-z][a-z0-9_]{0,79}")


def identifier(text: str) -> str:
    """Give an id that a planner chose where only a program makes up such a one, otherwise its digest."""
    if _IDENTIFIER.fullmatch(text) is not None:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def code(text: str) -> str:
    """Give a code; what is none is not repeated."""
    return text if _CODE.fullmatch(text) is not None else "unknown_code"


def refused_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the proposals that came to nothing."""
    return [
        {
            "n": one["n"],
            "code": code(one["code"]),
            "tool": one["tool"] if one["tool"] in TOOLS else None,
            "call_id": None if one["call_id"] is None else identifier(one["call_id"]),
            "at": one["at"],
        }
        for one in row["refusals"]
    ]
