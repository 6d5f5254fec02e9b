"""The cases on the page: what is wrong with each, expected beside seen, and all of them in one table.

Invariant: a case that is not shown in full is counted, and it is said where it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

from host.evaluation.page.cells import joined, linked, number, text
from host.handover.blocks import Cell, Pairs, Table, Verbatim
from shared_contracts.evaluation import Fault
from shared_contracts.evaluation_report import Entry

SHOWN_MAX, LISTED_MAX = 150, 500


def places(entries: Sequence[Entry]) -> dict[str, str]:
    """Give each case that is shown in full its place on the page; several under one id share the first."""
    made: dict[str, str] = {}
    for n, entry in enumerate(shown(entries), 1):
        made.setdefault(entry.id, f"case-{n}")
    return made


def shown(entries: Sequence[Entry]) -> list[Entry]:
    """Give those that are shown in full: severe ones first, so that none of them is cut off."""
    wrong = [entry for entry in entries if entry.problems]
    return sorted(wrong, key=lambda entry: not any(one.severe for one in entry.problems))[:SHOWN_MAX]


def found(entry: Entry) -> Table:
    """Say what is wrong with a case."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (text(one.code), "severe" if one.severe else "", text(one.said)) for one in entry.problems
    )
    return Table(("problem", "", "seen"), rows, "Nothing is wrong.")


def beside(entry: Entry) -> Table:
    """Put what was expected of a case beside what was seen of it."""
    due, got = entry.expected, entry.got
    rows: tuple[tuple[Cell, ...], ...] = (
        ("state", text(due.state), text(got.state)),
        ("reason", text(due.reason), text(got.reason)),
        ("way", joined(due.path), joined(got.path)),
        ("calls", Verbatim(f"at most {due.calls_max}"), number(got.calls)),
        ("returns", number(due.effects.returns), number(got.effects.returns)),
        ("notices", number(due.effects.notices), number(got.effects.notices)),
        ("returns cancelled", number(due.undone.returns), number(got.undone.returns)),
        ("notices corrected", number(due.undone.notices), number(got.undone.notices)),
        ("approver", text(due.approver), text(got.approver)),
        ("compensation", "needed" if due.compensation else "-", text(got.compensation)),
        ("retries", number(None if entry.fault is None else entry.fault.retries), number(got.retries)),
        ("the customer is told", text(None if entry.fault is None else entry.fault.told_ja), text(got.told_ja)),
    )
    return Table(("", "expected", "seen"), rows, "")


def about(entry: Entry) -> Pairs:
    """Say what a case is and where its traces are."""
    fault, seen = entry.fault, entry.evidence
    done = None if fault is None else f"{fault.kind.value}: {_struck(fault)}"
    proof = None if seen is None else f"{seen.seen}, {seen.fired} times: {', '.join(seen.details)}"
    return Pairs(
        (
            ("category", entry.category.value),
            ("workflows", joined([str(one) for one in entry.got.workflow_ids])),
            ("states", joined(entry.got.reached)),
            ("fault", text(done)),
            ("seen outside the host", text(proof)),
            ("returns not asked for", joined(entry.got.wrong_returns)),
            ("notices of something else", joined(entry.got.wrong_notices)),
            ("handed over for", text(entry.got.handover_reason)),
        )
    )


def listed(entries: Sequence[Entry]) -> Table:
    """List the cases; where there are too many, the first of them."""
    where = places(entries)
    head = ("case", "category", "fault", "expected end", "end", "calls", "seconds", "problems")
    return Table(head, tuple(_line(entry, where) for entry in entries[:LISTED_MAX]), "There is no case.")


def _line(entry: Entry, where: dict[str, str]) -> tuple[Cell, ...]:
    return (
        linked(entry.id, where),
        entry.category.value,
        "-" if entry.fault is None else entry.fault.kind.value,
        text(entry.expected.state),
        text(entry.got.state),
        number(entry.got.calls),
        number(entry.got.seconds),
        joined([one.code for one in entry.problems]),
    )


def _struck(fault: Fault) -> str:
    if fault.tool is None:
        return "at no tool's request"
    return f"{fault.times} times, from request {fault.nth} for {fault.tool} on"
