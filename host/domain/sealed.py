"""What is known of a sealed record, and what may be found wrong with it; the way through it is `seal_walk`'s.

Invariant: whatever stands where a sealed line was is read without harm, and then says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from shared_contracts.seal import SideName

_NO_TIME = "1970-01-01T00:00:00Z"  # of a line that says none


class Kind(StrEnum):
    """What is wrong with a line, or with the record's end."""

    CHANGED = "changed"
    REMOVED = "removed"
    INSERTED = "inserted"
    REORDERED = "reordered"
    TRUNCATED = "truncated"  # the other side has seen more of it
    REWRITTEN = "rewritten"  # the other side has seen something else
    UNSIGNED = "unsigned"
    UNSEALED = "unsealed"


@dataclass(frozen=True, slots=True)
class Line:
    """A sealed line. `stands` is what its row says now, None where no row is there; `known` says that it was looked."""

    n: int
    source: str
    row_id: str
    sealed: str
    chained: str
    erased: bool
    stands: str | None
    known: bool

    @property
    def name(self) -> str:
        """Name the row; of an act, which one of which table."""
        said = said_of(self.sealed) if self.source == "act" else {}
        key = said.get("key")
        if not isinstance(key, dict):
            return f"{self.source} {self.row_id}"
        return f"{said.get('relation')} {'/'.join(str(key[name]) for name in sorted(key))}"


@dataclass(frozen=True, slots=True)
class Unsealed:
    """A row that no seal covers; `behind`: its transaction had ended when everything up to it was sealed."""

    source: str
    row_id: str
    behind: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Restored:
    """Where a record and the other side's heads in it ended when a backup was restored."""

    n: int
    seen: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `n` is the first line that it is about, 0 where it is about none."""

    side: SideName
    kind: Kind
    n: int
    rows: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Chain:
    """All that is known of one side's record. `cut` is the head that it begins behind; `witnesses` the other side's
    copies of its heads, each with its number there; `unsigned` ends of lines that wait for a head, with their age in
    seconds.
    """

    side: SideName
    chain: str | None
    cut: str | None
    heads: tuple[str, ...]
    unsigned: tuple[tuple[int, float], ...]
    witnesses: tuple[tuple[int, str], ...]
    restored: tuple[Restored, ...]  # this side's
    restored_there: tuple[Restored, ...]
    unsealed: tuple[Unsealed, ...]


@dataclass(slots=True)
class Verdict:
    """What came of it."""

    lines: int = 0
    heads: int = 0
    first: int = 1
    last: int = 0
    seen: int = 0  # up to which line the other side has seen it, and agrees
    erased: list[str] = field(default_factory=list)
    lost: int = 0  # heads of what came after the backup that was restored
    waiting: int = 0
    findings: list[Finding] = field(default_factory=list)


def said_of(sealed: str) -> Mapping[str, Any]:
    """Read what was sealed; what somebody has put in its place may be anything, and then says nothing."""
    try:
        said = json.loads(sealed)
        int(said.get("committed_in", "0")), int(said.get("id", 0))
        aware = datetime.fromisoformat(said.get("at", _NO_TIME)).tzinfo is not None
    except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError):
        return {}
    return said if aware else {}
