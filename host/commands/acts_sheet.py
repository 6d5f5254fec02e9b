"""What people did to a case, for who reads its record: who, when, and in their own words why.

Invariant: the words stay where the whole record is read; the handover sheet, which goes further, leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from host.commands.output import add, moment, table
from shared_contracts.record import Act


def acts(to: Console, done: Sequence[Act]) -> None:
    """Show them; nothing where the engine alone was at work."""
    if not done:
        return
    made = table("at", "by", "run by", "act", "reason", title="\npeople")
    for one in done:
        add(made, moment(one.at), one.actor, one.os_user, one.act, one.reason)
    to.print(made)
