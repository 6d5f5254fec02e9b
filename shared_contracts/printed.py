"""Text as it may stand on a terminal or in a document that a person opens.

Invariant: nothing that came from outside moves a cursor, paints or turns the direction of letters.
"""

from __future__ import annotations

import json
import re
from typing import Any

_BEYOND = re.compile(r"[^\n -~]")


def plain(value: object) -> str:
    """Give text without control characters, whoever wrote it."""
    return "".join(letter if letter.isprintable() else "�" for letter in str(value))


def json_text(value: Any) -> str:
    """Write one JSON value; letters that are not to be seen stand there as escapes, which mean the same."""
    return _BEYOND.sub(_seen, json.dumps(value, ensure_ascii=False, indent=2))


def _seen(found: re.Match[str]) -> str:
    letter = found[0]
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]
