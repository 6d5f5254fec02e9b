"""What can be kept of a value that nobody vouches for: PostgreSQL has no NUL, JSON no NaN, a record no megabyte.

Invariant: whatever a planner says, the row that tells of it can be written, so that no output wedges a workflow.
"""

from __future__ import annotations

from typing import Any

from shared_contracts.digest import canonical_json

CODE_MAX = 80
TEXT_MAX = 500
JSON_BYTES_MAX = 16 * 1024
CALL_ID_MAX = 250  # the ledger's column


def kept_text(text: str, most: int = TEXT_MAX) -> str:
    """Give the text cut to length, with a mark where a character cannot be stored."""
    return "".join("\ufffd" if c == "\x00" or "\ud800" <= c <= "\udfff" else c for c in text[:most])


def kept_json(value: Any) -> Any:
    """Give the value, or None where it cannot be stored or is out of proportion: half of it would mislead."""
    try:
        size = len(canonical_json(value))
    except (ValueError, TypeError):
        return None
    return value if size <= JSON_BYTES_MAX else None


def usable_call_id(call_id: Any) -> bool:
    """Tell whether an id can pair a call with its result in the ledger."""
    return isinstance(call_id, str) and 0 < len(call_id) <= CALL_ID_MAX and kept_text(call_id, CALL_ID_MAX) == call_id
