"""The rates, the funnel and the rankings of a set of cases.

Invariant: each is counted from entries alone, per category too, and stands with what it was counted from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from host.evaluation.codes import PROBLEMS, Aspect, Code
from host.evaluation.counted import CategoryRates, FaultRow, Measures, PerItem, Rate, Rates, ReasonRank, StateReach
from shared_contracts.evaluation import SIX, Category, FaultKind
from shared_contracts.evaluation_report import Entry

# the way to COMPLETED that every case begins; an approval is a detour on it
MAIN = ("RECEIVED", "ORDER_VERIFIED", "ELIGIBLE", "RETURN_CREATED", "COMPLETED")
STATES = (
    "RECEIVED", "ORDER_VERIFIED", "ELIGIBLE", "WAITING_APPROVAL", "APPROVED", "RETURN_CREATED", "RETRY_WAIT",
    "COMPENSATION_REQUIRED", "COMPLETED", "REJECTED", "EXPIRED", "NEEDS_REVIEW",
)  # fmt: skip
Entries = Sequence[Entry]


def tenths(of: int, n: int) -> float | None:
    """Divide, to one decimal; the half goes up. Whole numbers all the way, so that no binary fraction decides."""
    return None if n == 0 else (20 * of + n) // (2 * n) / 10


def rate(of: int, n: int) -> Rate:
    """Give `of` among `n` in percent."""
    return Rate(value=tenths(100 * of, n), of=of, n=n)


def matched(entry: Entry) -> bool:
    """Tell whether a case is as expected in every respect."""
    return not entry.problems


def completed(entry: Entry) -> bool:
    """Tell whether a case was rightly completed."""
    return matched(entry) and entry.got.state == "COMPLETED"


def with_person(entry: Entry) -> bool:
    """Tell whether a person had to do with a case: to approve it, or to take it over."""
    got = entry.got
    asked = {"WAITING_APPROVAL", "NEEDS_REVIEW"} & {*got.reached, got.state}
    return bool(asked) or got.approver is not None


def duplicated(entry: Entry) -> bool:
    """Tell whether more was done at the provider than expected."""
    seen, due = entry.got.effects, entry.expected.effects
    return seen.returns > due.returns or seen.notices > due.notices


def compensated(entry: Entry) -> bool:
    """Tell whether what had to be undone stands undone at the provider, and was by its deadline."""
    return entry.got.compensation == "done" and entry.got.undone == entry.expected.undone


def rates(entries: Entries) -> Rates:
    """Compute the rates of these cases; over-automation and over-handover are two numbers."""
    return Rates(
        matched=_share(entries, matched),
        automatic=_share(_of(entries, lambda e: e.automatable), lambda e: completed(e) and not with_person(e)),
        handed_over=_share(_of(entries, lambda e: e.needs_human), lambda e: matched(e) and with_person(e)),
        duplicates=_share(_of(entries, lambda e: e.has_side_effect), duplicated),
        compensated=_share(_of(entries, lambda e: e.needs_compensation), compensated),
        over_automated=_share(_of(entries, lambda e: e.needs_human), lambda e: not with_person(e)),
        over_handed=_share(_of(entries, lambda e: not e.needs_human), with_person),
        calls=_calls(entries),
    )


def measures(entries: Entries) -> Measures:
    """Count everything that can be counted of these cases."""
    by_category = {one: _of(entries, lambda e, one=one: e.category is one) for one in Category}  # type: ignore[misc]
    return Measures(
        n=len(entries),
        rates=rates(entries),
        categories=tuple(
            CategoryRates(category=one, n=len(those), rates=rates(those)) for one, those in by_category.items() if those
        ),
        funnel=funnel(entries),
        never_taken_in=sum(_furthest(entry) is None for entry in entries),
        faults=faults(entries),
        handover_reasons=handover_reasons(entries),
        calls=sum(entry.got.calls for entry in entries),
        retries=sum(entry.got.retries for entry in entries),
        engine_reads=sum(entry.got.engine_reads for entry in entries),
        undoing_calls=sum(entry.got.undoing_calls for entry in entries),
        refused_proposals=sum(entry.got.refused_proposals for entry in entries),
    )


def funnel(entries: Entries) -> tuple[StateReach, ...]:
    """Show how many came how far; `furthest` and the cases that were never taken in add up to all of them."""
    reached = Counter(state for entry in entries for state in {*entry.got.reached, entry.got.state})
    ended = Counter(entry.got.state for entry in entries)
    furthest = Counter(map(_furthest, entries))
    lost = Counter(_furthest(entry) for entry in entries if entry.got.state != entry.expected.state)
    others = sorted({state for state in reached if state} - set(STATES))
    return tuple(
        StateReach(
            state=state,
            reached=reached[state],
            ended=ended[state],
            furthest=furthest[state] if state in MAIN else None,
            lost=lost[state] if state in MAIN else None,
        )
        for state in (*STATES, *others)
    )


def faults(entries: Entries) -> tuple[FaultRow, ...]:
    """Count what held under each of the faults; one of the six that no case has is there with none."""
    return tuple(
        _fault(kind, [e for e in entries if e.fault is not None and e.fault.kind is kind]) for kind in kinds(entries)
    )


def kinds(entries: Iterable[Entry]) -> tuple[FaultKind, ...]:
    """Name the six faults, and of those beyond them what is done to any of these cases."""
    done = {entry.fault.kind for entry in entries if entry.fault is not None}
    return tuple(kind for kind in FaultKind if kind in SIX or kind in done)


def handover_reasons(entries: Entries) -> tuple[ReasonRank, ...]:
    """Rank why cases went to a person, the most frequent first: what to mend first."""
    counted = Counter(entry.got.handover_reason for entry in entries if entry.got.state == "NEEDS_REVIEW")
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0] if item[0] is not None else ""))
    return tuple(ReasonRank(handover_reason=reason, cases=cases) for reason, cases in ranked)


def found(entry: Entry) -> set[Code]:
    """Give the codes of what is wrong with a case."""
    return {Code(problem.code) for problem in entry.problems}


def _share(entries: Entries, counts: Callable[[Entry], bool]) -> Rate:
    return rate(sum(map(counts, entries)), len(entries))


def _of(entries: Iterable[Entry], belongs: Callable[[Entry], bool]) -> Entries:
    return [entry for entry in entries if belongs(entry)]


def _calls(entries: Entries) -> PerItem:
    calls = sum(entry.got.calls for entry in entries)
    ended = sum(entry.got.state == "COMPLETED" for entry in entries)
    return PerItem(value=tenths(calls, ended), of=calls, n=ended)


def _furthest(entry: Entry) -> str | None:
    seen = {*entry.got.reached, entry.got.state}
    return next((state for state in reversed(MAIN) if state in seen), None)


def _fault(kind: FaultKind, entries: Entries) -> FaultRow:
    wrong = [{PROBLEMS[code].aspect for code in found(entry)} for entry in entries]

    def held(aspect: Aspect) -> int:
        return sum(aspect not in aspects for aspects in wrong)

    return FaultRow(
        kind=kind,
        n=len(entries),
        proved=held(Aspect.FAULT),
        end=held(Aspect.END),
        effects=held(Aspect.EFFECTS),
        retries=held(Aspect.RETRIES),
        compensation=held(Aspect.COMPENSATION),
        told=held(Aspect.TOLD),
    )
