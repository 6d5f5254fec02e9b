"""Runs `kessai eval retail`, and says in what the report differs from the file, by the tests' own reading of both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared_contracts.base import parse
from shared_contracts.evaluation import SIX, FaultKind
from shared_contracts.evaluation_report import Entry, EvaluationReport
from tests.support.cli import Cli, Said
from tests.support.retail_set import TWICE, Made, dollars

ONE, REFUSED = (1, 1), (0, 0)
# what is left of a right return after each fault: the return and its notice, but where the fault is that there is none
LEFT = {FaultKind.NOTICE_FAILURE.value: (1, 0), FaultKind.APPROVAL_EXPIRY.value: REFUSED}
OUTSIDE = {FaultKind.NOTICE_FAILURE.value: "mail", FaultKind.APPROVAL_EXPIRY.value: "clock"}
BY_A_PERSON_FROM = 500


@dataclass(frozen=True)
class Retailed:
    """What the command said, and its report."""

    said: Said
    report: EvaluationReport

    def wrong(self, made: Made) -> list[str]:
        """Everything that the report has otherwise than the file; its own scores are one thing of several."""
        entries = {entry.id: entry for entry in self.report.cases}
        compared = self.report.compared
        more = (*compared.untracked, *compared.missing, *compared.duplicate, *map(str, self.report.stops))
        return [*_returns(made, entries), *_refusals(made, entries), *_scored(entries), *more]


def retailed(cli: Cli, folder: Path, file: Path, *, seconds: float = 200) -> Retailed:
    """Run every return of a file."""
    with cli.start("eval", "retail", str(file), "--report", str(folder / "report"), "--seed", "7") as process:
        out, err = process.communicate(timeout=seconds)
    report = folder / "report" / "report.json"
    assert report.exists(), err
    said = Said(process.returncode, out, err)
    return Retailed(said, parse(EvaluationReport, json.loads(report.read_text("utf-8"))))


def _returns(made: Made, entries: dict[str, Entry]) -> Iterator[str]:
    for name, one in made.right().items():
        high = dollars(one) >= BY_A_PERSON_FROM
        kinds = {kind.value for kind in SIX if high or kind is not FaultKind.APPROVAL_EXPIRY}
        for how in sorted({"alone", TWICE} | kinds):
            entry = entries.get(f"retail-{name}-{how}")
            if entry is None:
                yield f"{name} was not run {how}"
                continue
            effects = (entry.got.effects.returns, entry.got.effects.notices)
            if effects != LEFT.get(how, ONE) or len(entry.got.workflow_ids) != 1:
                yield f"{entry.id}: {effects} of {len(entry.got.workflow_ids)} workflows"
            if how in kinds:
                yield from _fired(entry, OUTSIDE.get(how, "wire"))


def _fired(entry: Entry, where: str) -> Iterator[str]:
    seen = entry.evidence
    if seen is None or (seen.seen, seen.fired, len(seen.details)) != (where, 1, 1):
        yield f"{entry.id}: {seen} of the fault"


def _refusals(made: Made, entries: dict[str, Entry]) -> Iterator[str]:
    due = {f"retail-foreign-{name}": "order_not_found" for name in made.orders} | {
        f"retail-undelivered-{name}": "not_returnable"
        for name, order in made.orders.items()
        if order["status"] != "delivered"
    }
    for name, reason in due.items():
        entry = entries.get(name)
        got = None if entry is None else entry.got
        if got is None or (got.state, got.reason) != ("REJECTED", reason):
            yield f"{name}: {got}"
        elif (got.effects.returns, got.effects.notices) != REFUSED:
            yield f"{name}: {got.effects}"


def _scored(entries: dict[str, Entry]) -> Iterator[str]:
    yield from (f"{entry.id}: {one.code}" for entry in entries.values() for one in entry.problems)
