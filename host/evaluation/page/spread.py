"""What the pictures show beside the rates: ends, outcomes, calls and times of a set of cases.

Invariant: each is counted from entries alone. A value of a spread is one that was seen: nothing is interpolated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from host.evaluation.metrics import kinds, matched
from shared_contracts.evaluation import Category, FaultKind
from shared_contracts.evaluation_report import Entry

ENDS = ("COMPLETED", "REJECTED", "EXPIRED", "NEEDS_REVIEW")
CALLS_SHOWN = 20  # a workflow's limit is far below; what is above stands in one last row


class Spread(NamedTuple):
    """The least, the quarters and the most of `n` values."""

    n: int
    low: float
    quarter: float
    middle: float
    three_quarters: float
    most_but_a_tenth: float
    high: float


class Outcome(NamedTuple):
    """Cases as expected, not as expected, and with a severe finding; each case is in one of them."""

    good: int
    bad: int
    severe: int


def by_category(entries: Iterable[Entry]) -> dict[Category, list[Entry]]:
    """Sort the cases under their category; one without cases is not there."""
    sorted_: dict[Category, list[Entry]] = {one: [] for one in Category}
    for entry in entries:
        sorted_[entry.category].append(entry)
    return {one: those for one, those in sorted_.items() if those}


def by_fault(entries: Sequence[Entry]) -> dict[FaultKind, list[Entry]]:
    """Sort the cases under what is done to them; one of the six that is done to no case is there with none."""
    sorted_: dict[FaultKind, list[Entry]] = {one: [] for one in kinds(entries)}
    for entry in entries:
        if entry.fault is not None:
            sorted_[entry.fault.kind].append(entry)
    return sorted_


def outcome(entries: Sequence[Entry]) -> Outcome:
    """Count how the cases came out."""
    severe = sum(any(problem.severe for problem in entry.problems) for entry in entries)
    good = sum(map(matched, entries))
    return Outcome(good=good, bad=len(entries) - good - severe, severe=severe)


def ends(entries: Sequence[Entry]) -> tuple[int, ...]:
    """Count the cases in each end state, and at last those that are in none of them."""
    counted = Counter(entry.got.state for entry in entries)
    known = tuple(counted[state] for state in ENDS)
    return (*known, len(entries) - sum(known))


def calls(entries: Sequence[Entry]) -> tuple[tuple[str, int], ...]:
    """Count the cases by their number of calls, from none to the most that one has."""
    counted = Counter(min(entry.got.calls, CALLS_SHOWN + 1) for entry in entries)
    most = max(counted, default=-1)
    return tuple((str(n) if n <= CALLS_SHOWN else f"over {CALLS_SHOWN}", counted[n]) for n in range(most + 1))


def spread(values: Iterable[float]) -> Spread | None:
    """Give the nearest ranks; None where there is no value."""
    ranked = sorted(values)
    if not ranked:
        return None

    def at(percent: int) -> float:
        return ranked[max(0, -(-len(ranked) * percent // 100) - 1)]

    return Spread(len(ranked), ranked[0], at(25), at(50), at(75), at(90), ranked[-1])
