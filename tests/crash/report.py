"""What a crash run tells: what was hit, what came of it, and each thing that should not be. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from host.domain.state import NOT_COUNTED
from host.engine.again import sends_max
from host.workflows.returns import RETURNS
from shared_contracts.tools import TOOLS
from tests.crash.audit import Books, Row, Verdict
from tests.crash.feed import OPEN_LEAST
from tests.crash.killer import Kill

WRITE_SHARE = 0.1  # of the kills, at least, have to meet a running write
TAKEOVER_SECONDS = 20.0  # what is promised of a driver that was killed
LIMITS = RETURNS.limits


@dataclass(frozen=True)
class Told:
    """Everything that is known after a run."""

    seed: int
    seconds: float
    kills: list[Kill]
    books: Books
    verdict: Verdict
    stuck: set[UUID]
    recoveries: dict[UUID, int]

    @property
    def hits(self) -> list[Kill]:
        return [kill for kill in self.kills if kill.hit]


def faults(told: Told) -> list[str]:
    """Whatever is wrong with the system, or with the run: it must have been worth something."""
    found = [*told.verdict.faults, *_late(told), *_needless(told)]
    found += [f"stuck: {workflow} had not ended at the end" for workflow in told.stuck]
    found += [f"thin: {kill.open} cases were open at a kill" for kill in told.kills if kill.open < OPEN_LEAST]
    if sum(kill.inside_write for kill in told.hits) < WRITE_SHARE * len(told.hits):
        found.append("too few kills met a running write")
    return found


def lines(told: Told) -> Iterator[str]:
    """The histogram, the ends, and every fault."""
    yield from _histogram(told)
    yield from _ends(told)
    found = faults(told)
    yield from (f"FAULT {fault}" for fault in found)
    yield f"{len(found)} faults (seed {told.seed})"


def _histogram(told: Told) -> Iterator[str]:
    """A kill of one process hits several workflows; each is counted where it stood."""
    places = Counter((kill.process, *flight.place) for kill in told.kills for flight in kill.hit)
    yield f"{'process killed':<16}{'control state':<15}{'request under way':<38}workflows hit"
    for (process, control, what), count in sorted(places.items()):
        yield f"{process:<16}{control:<15}{what:<38}{count}"
    killed = ", ".join(f"{n} {name}" for name, n in sorted(Counter(kill.process for kill in told.hits).items()))
    inside, late = sum(kill.inside_write for kill in told.hits), len(told.kills) - len(told.hits)
    yield f"{len(told.hits)} kills in {told.seconds:.0f} s ({killed}), {inside} of them inside a running write"
    yield f"{late} more kills came too late to hit anything"
    least = min(kill.open for kill in told.kills)
    yield f"at least {least} cases were open at every kill, {sum(places.values())} workflows were hit in all"


def _ends(told: Told) -> Iterator[str]:
    books, verdict = told.books, told.verdict
    yield f"{len(books.workflows)} cases: {verdict.completed} COMPLETED, {len(verdict.reviewed)} NEEDS_REVIEW"
    sides = (len(books.returns), len(books.notices), len(books.mails), len(books.log))
    yield "{} returns, {} notices, {} mails, {} calls".format(*sides)
    spent = Counter(f"{row['purpose']} {row['outcome']}" for row in books.attempts if row["outcome"] != "success")
    yield "requests without success: " + (", ".join(f"{n} {what}" for what, n in sorted(spent.items())) or "none")
    spread = Counter(told.recoveries.values())
    yield "recoveries of a case: " + ", ".join(f"{times}: {count}" for times, count in sorted(spread.items()))
    for workflow, reason in verdict.reviewed.items():
        story = "; ".join(f"{a['step']}.{a['n']} {a['tool']} {a['outcome']}" for a in _attempts(told, workflow))
        yield f"NEEDS_REVIEW {workflow} ({reason}): {story}"


def _attempts(told: Told, workflow: UUID) -> list[Row]:
    return [row for row in told.books.attempts if row["workflow_id"] == workflow]


def _late(told: Told) -> Iterator[str]:
    """Budgets of recoveries, and the time until somebody went on with what a dead driver had under way."""
    for workflow, times in told.recoveries.items():
        if times > LIMITS.recoveries + 1:  # with the one above the bound a person has it
            yield f"recoveries: {workflow} began again {times} times"
    for row in told.books.attempts:
        seconds = (row["ended_at"] - row["started_at"]).total_seconds() if row["ended_at"] is not None else 0.0
        if row["outcome"] == "cut_off" and seconds > TAKEOVER_SECONDS:
            yield f"late takeover: {row['workflow_id']} after {seconds:.1f} s"


def _needless(told: Told) -> Iterator[str]:
    """A person has a case only where a bound that the rules set was spent by requests that count."""
    for workflow, reason in told.verdict.reviewed.items():
        own = _attempts(told, workflow)
        last = [row for row in own if row["step"] == own[-1]["step"]]
        sent = max(row["n"] for row in last if row["purpose"] == "call")
        counted = [row for row in last if row["outcome"] not in NOT_COUNTED]
        sends = [row for row in counted if row["purpose"] == "call"]
        reads = Counter(row["purpose"] for row in counted if row["n"] > sent)
        spent = told.recoveries[workflow] > LIMITS.recoveries
        spent = spent or (len(sends) > 0 and len(sends) >= sends_max(TOOLS[sends[0]["tool"]]))
        if not spent and max(reads.values(), default=0) < LIMITS.engine_reads_per_send:
            yield f"needless: {workflow} went to a person ({reason}) with its bounds unspent"
