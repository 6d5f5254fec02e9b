"""What people did to a case, for who reads its record: who, when, and in their own words why.

Invariant: the words stay where the whole record is read; the handover sheet, which goes further, leaves them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich.console import Console

from host.commands.output import add, table
from host.handover.sheet import NOT_PEOPLES


def acts(to: Console, row: Mapping[str, Any]) -> None:
    """Show them from the audit; nothing where the engine alone was at work."""
    people = [entry for entry in row["audit"] if entry["action"] not in NOT_PEOPLES]
    if not people:
        return
    made = table("at", "by", "run by", "act", "reason", title="\npeople")
    for one in people:
        details = one["details"]
        add(made, _at(one["at"]), one["actor"], details.get("os_user"), one["action"], details.get("reason"))
    to.print(made)


def _at(written: str) -> str:
    return datetime.fromisoformat(written).astimezone().strftime("%m-%d %H:%M:%S.%f")[:-3]
