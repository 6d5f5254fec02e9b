"""What a page is made of: titled sections of sentences, pairs and tables.

Invariant: what is not of our own vocabulary is `Verbatim`; a writer shows it letter by letter and never as markup.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Verbatim:
    """An identifier, a command, a number, or what somebody wrote."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """Words that lead to another place of the same page, where the page has places."""

    text: str
    place: str


Cell = str | Verbatim | Link


@dataclass(frozen=True, slots=True)
class Note:
    """One sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names and what they are."""

    rows: tuple[tuple[Cell, Cell], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads; `none` is the sentence that stands where there is no row."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    none: str


@dataclass(frozen=True, slots=True)
class Section:
    """A title and what stands under it."""

    title: str
    blocks: tuple[Note | Pairs | Table, ...]


def at(moment: datetime | None) -> Cell:
    """Write a time, the same for every reader."""
    if moment is None:
        return "-"
    return Verbatim(f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}Z")
