"""How a number, a rate and a list of ids stand in a table of the page.

Invariant: a rate is never without what it was counted from, and of nothing there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from host.evaluation.counted import PerItem, Rate
from host.handover.blocks import Cell, Link, Pairs, Verbatim

TEXT_MAX, IDS_MAX = 300, 50


def number(value: float | None) -> Cell:
    """Write a count as it is, and a fraction with two places."""
    if value is None:
        return "-"
    return Verbatim(str(value) if isinstance(value, int) else f"{value:.2f}")


def numbers(*values: float | None) -> tuple[Cell, ...]:
    """Write a row of them."""
    return tuple(map(number, values))


def rate(of: Rate | PerItem) -> Cell:
    """Write a rate with what it was counted from."""
    return Verbatim(f"{'none' if of.value is None else of.value} ({of.of}/{of.n})")


def text(said: str | None) -> Cell:
    """Write what came from elsewhere; one that is too long for a cell says so."""
    if said is None or not said:
        return "-"
    cut = len(said) - TEXT_MAX
    return Verbatim(said) if cut <= 0 else Verbatim(f"{said[:TEXT_MAX]}… ({cut} letters more)")


def joined(said: Sequence[str]) -> Cell:
    """Write ids one after the other; where there are too many of them, how many more."""
    more = f" and {len(said) - IDS_MAX} more" if len(said) > IDS_MAX else ""
    return Verbatim(", ".join(said[:IDS_MAX]) + more) if said else "-"


def linked(one: str, places: Mapping[str, str]) -> Cell:
    """Lead to a case that is shown on the page; another id stands for itself."""
    return Link(one, places[one]) if one in places else text(one)


def pairs(rows: Mapping[str, Cell]) -> Pairs:
    """Put names beside what they are."""
    return Pairs(tuple(rows.items()))
