"""What a kind comes to from structured fields alone: the reads that it needs, one by one, then its judgement.

No planner takes part and nothing is written down as a case: it is what an agent's answer is compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Read:
    """The read that comes next; every argument is the kind's own."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgement. `notification` is a draft by language that nobody sends; None where nobody is to be told."""

    decision: str
    missing: tuple[str, ...]
    rule_version: str | None
    notification: Mapping[str, str] | None
    evidence_refs: tuple[str, ...]


Baseline = Read | Judged
