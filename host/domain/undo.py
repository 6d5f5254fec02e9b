"""What undoing an effect asks for next, as a workflow kind says it: a call, or that it is over either way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class NextCall:
    """The one call that comes next; every argument is the kind's own."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Undone:
    """Nothing is left to be done."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """It cannot be undone by code; `reason` is a reason code."""

    reason: str


Undo = NextCall | Undone | Impossible
