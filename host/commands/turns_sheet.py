"""What a planner was shown and gave, turn by turn, as people read it: names of ours, kinds and sizes, no word of it."""

from __future__ import annotations

from rich.console import Console

from host.commands.output import add, table
from shared_contracts.record import Record, Said, SaidCall

_DIGITS = 16  # of a digest, which are enough to find the whole in --json


def turns(to: Console, record: Record) -> None:
    """Show every turn beside the move that it led to."""
    made = table("#", "was shown", "definitions", "gave", "digest", title="\nplanner's turns")
    for point in record.checkpoints:
        if point.turn is not None:
            shown, digest = point.turn.offered, point.turn.said.sha256
            gave = "no JSON" if digest is None else digest[:_DIGITS]
            add(made, point.seq, ", ".join(shown) or "no tool", point.turn.offered_sha256[:_DIGITS],
                said(point.turn.said), gave)  # fmt: skip
    if made.row_count:
        to.print(made)


def said(of: Said) -> str:
    """Say what a turn came to, with the calls and texts that were in it."""
    calls = [_call(one) for one in of.calls]
    texts = [f"a text of {length}" for length in of.texts]
    return f"{of.form.replace('_', ' ')}: {', '.join((*calls, *texts)) or 'no call and no text'}"


def _call(one: SaidCall) -> str:
    tool = "a tool that is none" if one.tool is None else one.tool
    if isinstance(one.arguments, str):
        return f"{tool}({one.arguments})"
    given = [f"{name}: {kind}" for name, kind in one.arguments.items()]
    more = [f"{one.undeclared} undeclared"] if one.undeclared else []
    return f"{tool}({', '.join((*given, *more))})"
