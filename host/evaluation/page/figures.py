"""The pictures of a report, each with the table of the numbers that it is drawn from.

Invariant: nothing is in a picture that its table does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from host.evaluation.counted import Cost, FaultRow, Measures, Rates
from host.evaluation.documents import GateView
from host.evaluation.page import spread
from host.evaluation.page.cells import number, numbers, rate, text
from host.evaluation.page.charts import Name, Square, bars, grid, spans
from host.handover.blocks import Cell, Note, Pairs, Table, Verbatim
from shared_contracts.evaluation_report import Entry

GOOD, BAD, SEVERE = "var(--good)", "var(--bad)", "var(--severe)"
BLUE, NONE = "var(--blue)", "var(--none)"
END_COLOURS = dict(zip((*spread.ENDS, "another"), (GOOD, BLUE, "var(--ochre)", "var(--violet)", NONE), strict=True))
RATES = tuple(Rates.model_fields)
MEANT = {
    "matched": "As expected in every respect, of all cases.",
    "automatic": "Rightly completed without a person, of those that can be.",
    "handed over": "Rightly given to a person, of those that need one.",
    "duplicates": "More returns or notices than expected, of those that have any.",
    "compensated": "Undone in time, of those that have to be.",
    "over automated": "No person had to do with it, of those that need one.",
    "over handed": "A person had to do with it, of those that need none.",
    "calls": "Every attempt of a call, per completed case.",
}
HELD = ("proved", "end", "effects", "retries", "compensation", "told")
NO_CASE = "There is no case."
Entries = Sequence[Entry]


@dataclass(frozen=True, slots=True)
class Figure:
    """One picture and what stands beside it. `svg` is empty where there is nothing to draw."""

    name: Name
    svg: str
    beside: tuple[Note | Pairs | Table, ...]


def figures(view: GateView, entries: Entries) -> tuple[Figure, ...]:
    """Make all of them, in the order in which they are read."""
    return (
        outcomes(view.measures, entries),
        ends(entries),
        funnel(view.measures),
        calls(view.measures, entries),
        faults(view.measures, entries),
        reasons(view.measures),
        cost(view.cost),
        latency(entries),
    )


def outcomes(of: Measures, entries: Entries) -> Figure:
    """Show how many cases of each category were as expected."""
    name = Name(
        "outcome",
        "Outcome by category",
        "A bar per category: how many cases came out as expected in every respect, how many did not, and how many with "
        "a severe finding, of which one fails the whole run.",
    )
    counted = {one.value: spread.outcome(those) for one, those in spread.by_category(entries).items()}
    parts = {"as expected": GOOD, "not as expected": BAD, "severe": SEVERE}
    shown = Table(
        ("category", "n", *parts),
        (*((one, *numbers(sum(row), *row)) for one, row in counted.items()), _all(spread.outcome(entries))),
        NO_CASE,
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (one.category.value, number(one.n), *(rate(getattr(one.rates, what)) for what in RATES))
        for one in of.categories
    )
    whole: tuple[Cell, ...] = ("all", number(of.n), *(rate(getattr(of.rates, what)) for what in RATES))
    words = Note(
        "Rates in percent, with what they were counted from; calls are per completed case. No rate is made of nothing: "
        "where no case counts it is none (0/0)."
    )
    rates = Table(("category", "n", *(what.replace("_", " ") for what in RATES)), (*rows, whole), NO_CASE)
    meant = Pairs(tuple(MEANT.items()))
    return Figure(name, _drawn(bars, name, list(counted.items()), parts, "cases"), (shown, words, rates, meant))


def ends(entries: Entries) -> Figure:
    """Show in which state the cases of each category ended."""
    name = Name("ends", "End state by category", "A bar per category: in which state its cases ended.")
    counted = {one.value: spread.ends(those) for one, those in spread.by_category(entries).items()}
    rows = (*((one, *numbers(sum(row), *row)) for one, row in counted.items()), _all(spread.ends(entries)))
    table = Table(("category", "n", *END_COLOURS), rows, NO_CASE)
    return Figure(name, _drawn(bars, name, list(counted.items()), END_COLOURS, "cases"), (table,))


def funnel(of: Measures) -> Figure:
    """Show how many cases came how far."""
    name = Name(
        "funnel", "Funnel by state", "A bar per state: how many cases were in it, those that ended there and those not."
    )
    parts = {"ended there": BLUE, "went on": NONE}
    drawn = [(one.state, (one.ended, one.reached - one.ended)) for one in of.funnel]
    table = Table(
        ("state", "reached", "ended", "no further on the way to COMPLETED", "of these expected to end otherwise"),
        tuple((text(one.state), *numbers(one.reached, one.ended, one.furthest, one.lost)) for one in of.funnel),
        "There is no state.",
    )
    lost = Note(f"n = {of.n}. Never taken in, so that no state of them is known: {of.never_taken_in}.")
    return Figure(name, _drawn(bars, name, drawn, parts, "cases"), (lost, table))


def calls(of: Measures, entries: Entries) -> Figure:
    """Show how many cases needed how many calls."""
    name = Name("calls", "Calls per case", "A bar per number of calls: how many cases made so many of them.")
    counted = spread.calls(entries)
    table = Table(("calls", "cases"), tuple((n, number(cases)) for n, cases in counted), NO_CASE)
    together = Table(
        ("calls, every attempt", "completed cases", "per completed case"),
        ((*numbers(of.rates.calls.of, of.rates.calls.n), rate(of.rates.calls)),),
        NO_CASE,
    )
    beside = Table(
        ("attempts beyond the first", "engine's own reads", "undoing calls", "refused proposals"),
        (numbers(of.retries, of.engine_reads, of.undoing_calls, of.refused_proposals),),
        NO_CASE,
    )
    drawn = [(f"{n} calls", (cases,)) for n, cases in counted]
    return Figure(name, _drawn(bars, name, drawn, {"cases": BLUE}, "cases"), (together, beside, table))


def faults(of: Measures, entries: Entries) -> Figure:
    """Show what held under each fault, and how its cases ended."""
    name = Name(
        "faults",
        "Faults by outcome",
        "A row per fault, a column per thing that has to hold under it: in how many of its cases it held. Proved means "
        "that something outside the host saw the fault happen; the others that this was as expected: where the case "
        "ended, what was made, how often was asked again, what was undone, what the customer was told.",
    )
    squares = [_square(row, what) for row in of.faults for what in HELD]
    held = tuple((row.kind.value, number(row.n), *numbers(*(getattr(row, what) for what in HELD))) for row in of.faults)
    ended = tuple(
        (one.value, *numbers(len(those), *spread.ends(those))) for one, those in spread.by_fault(entries).items()
    )
    tables = (Table(("fault", "n", *HELD), held, NO_CASE), Table(("fault", "n", *END_COLOURS), ended, NO_CASE))
    return Figure(name, grid(name, squares), (tables[0], Note("How the cases of each fault ended:"), tables[1]))


def reasons(of: Measures) -> Figure:
    """Rank why cases went to a person."""
    name = Name(
        "reasons",
        "Reasons for handing over",
        "A bar per reason, the most frequent first: how many cases went to a person for it. The first is to be mended "
        "first.",
    )
    n = sum(one.cases for one in of.handover_reasons)
    ranked = [(place, one.handover_reason, one.cases) for place, one in enumerate(of.handover_reasons, 1)]
    told = "none recorded"
    table = Table(
        ("rank", "reason", "cases", "of n"),
        tuple((number(place), told if why is None else text(why), *numbers(cases, n)) for place, why, cases in ranked),
        "No case went to a person.",
    )
    drawn = [(f"{place}. {told if why is None else why}", (cases,)) for place, why, cases in ranked]
    return Figure(name, _drawn(bars, name, drawn, {"cases": "var(--violet)"}, "cases"), (table,))


def cost(of: Cost) -> Figure:
    """Show what each component cost."""
    name = Name(
        "cost",
        "Cost by component",
        f"A bar per component: what it cost, in the minor unit of {of.currency}, by rates that are {of.basis}.",
    )
    parts: tuple[tuple[Cell, ...], ...] = tuple(
        (one.name, number(one.quantity), one.unit, Verbatim(f"{one.rate:g}"), number(one.cost), text(one.said))
        for one in of.parts
    )
    rows = (*parts, ("together", "-", "-", "-", number(of.total), "-"))
    each = "none" if of.per_item is None else f"{of.per_item:.2f}"
    item = Pairs((("per rightly completed case", Verbatim(each)), ("of them n", number(of.items))))
    table = Table(("component", "quantity", "unit", "rate", of.currency, ""), rows, "There is no component.")
    drawn = [(one.name, (one.cost,)) for one in of.parts]
    svg = bars(name, drawn, {"cost": "var(--ochre)"}, f"{of.currency}, minor unit")
    return Figure(name, svg, (item, table))


def latency(entries: Entries) -> Figure:
    """Show how long cases took."""
    name = Name(
        "latency",
        "Latency",
        "A line per category from the quickest case to the slowest, a bar over the middle half, a stroke at the middle "
        "one: seconds on the wall, waits for people and for back-off included.",
    )
    sorted_ = {one.value: those for one, those in spread.by_category(entries).items()} | {"all": list(entries)}
    wall = _spreads(sorted_, lambda entry: entry.got.seconds)
    work = _spreads(sorted_, lambda entry: entry.got.active_seconds)
    return Figure(
        name,
        _drawn(spans, name, wall, "seconds"),
        (_seconds(wall), Note("Seconds at work, as the limits count them; the longest of a case's workflows:"),
         _seconds(work)),
    )  # fmt: skip


def _spreads(of: dict[str, list[Entry]], value: Callable[[Entry], float]) -> list[tuple[str, spread.Spread]]:
    made = ((one, spread.spread(map(value, those))) for one, those in of.items())
    return [(one, seen) for one, seen in made if seen is not None]


def _seconds(rows: list[tuple[str, spread.Spread]]) -> Table:
    head = ("category", "n", "least", "25 %", "median", "75 %", "90 %", "most")
    return Table(head, tuple((one, *numbers(*seen)) for one, seen in rows), NO_CASE)


def _square(row: FaultRow, what: str) -> Square:
    held: int = getattr(row, what)
    return Square(row.kind.value, what, f"{held}/{row.n}", None if row.n == 0 else held == row.n)


def _all(counted: Sequence[int]) -> tuple[Cell, ...]:
    return ("all", *numbers(sum(counted), *counted))


def _drawn(draw: Callable[..., str], name: Name, rows: Sequence[object], *more: object) -> str:
    """Draw where there is a row."""
    return draw(name, rows, *more) if rows else ""
