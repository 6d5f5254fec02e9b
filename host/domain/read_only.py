"""What a kind that changes nothing outside says of undoing, approving and wrong effects: that there is nothing of it.

Invariant: should an effect ever be asked about, it is one that needs a person and that no code undoes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from host.domain.severe import Severe
from host.domain.undo import Impossible, Undo
from host.domain.workflow import Seen
from shared_contracts.base import Money


def needs_approval(condition: str, seen: tuple[Seen, ...], case: Mapping[str, Any]) -> bool:
    """Ask a person for whatever has a condition: no read has one."""
    del seen, case
    return condition != ""


def undo(case: Mapping[str, Any], wrong: str, made: Mapping[str, str], done: tuple[Seen, ...]) -> Undo:
    """Undo nothing by code."""
    del case, wrong, made, done
    return Impossible("not_compensable")


def severe(tool: str, wrong: Mapping[str, Any]) -> Severe:
    """Call any effect one that nobody permitted."""
    del tool, wrong
    return Severe.OUTSIDE_PERMISSION


def overstepped(seen: tuple[Seen, ...], record: Mapping[str, Any], approved: Money | None) -> bool:
    """Hold that no approval covers it."""
    del seen, record, approved
    return True
