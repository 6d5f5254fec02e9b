"""What may be written down of what a library logs: its words, and of the values put into them numbers and types alone.

Invariant: no text of a value or of an exception is given; nobody knows what a library quotes.
"""

from __future__ import annotations

from collections.abc import Mapping
from logging import LogRecord

_CHARACTERS_MAX = 500  # a text that is finished already may quote something of any length


class _Hidden:
    """Stands in the place of a value."""

    def __repr__(self) -> str:
        return "…"


def said(record: LogRecord) -> str:
    """Give the beginning of a record's first line, filled in: in others of a finished text may stand what failed."""
    line, given = str(record.msg), record.args
    if given:
        try:
            line %= (
                {name: _shown(value) for name, value in given.items()}
                if isinstance(given, Mapping)
                else tuple(map(_shown, given))
            )
        except (TypeError, ValueError, KeyError):  # a placeholder that takes no word, such as %d for a hidden value
            line = line.replace("%", "…")
    return line.partition("\n")[0][:_CHARACTERS_MAX]


def _shown(value: object) -> object:
    """Give a number as it is, an error as its type."""
    if isinstance(value, int | float):
        return value
    return type(value).__name__ if isinstance(value, BaseException) else _Hidden()
