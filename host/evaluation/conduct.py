"""Takes the cases in, so many at a time, decides where a case says who does, and turns the clock for the last of them.

    each case: take in ──► it rests ──► somebody decides ──► it has ended ──► the same again, where it is repeated
    then, kind by kind, those to which something is done that hurts all: each kind's together, and no other case
    then those after which an approver decides nothing more
    then those whose end is a time that passes: all wait ──► the clock passes it ──► they have ended
                              where somebody has said yes by then: no worker ──► the yes ──► the clock ──► a worker

Invariant: the clock moves only while no call is in flight and no other case is open.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import psycopg

from host.domain.acting import By
from host.engine.accept import Origin, Pins, accept
from host.engine.approve import ApprovalRefusedError, Desk
from host.engine.parts import Kind
from host.engine.reapply import NotPossibleError
from host.engine.review import order_compensation
from host.evaluation.outages import OLDER_VERSION, Outages
from host.evaluation.people import People
from host.evaluation.prepared import Prepared
from host.evaluation.watch import CASE_SECONDS_MAX, GaveUpError, Watch
from host.evaluation.wire import Wire, until
from host.store import trial
from host.store.errors import StoppedError
from host.store.pool import Pool
from shared_contracts.approval import LIFETIME
from shared_contracts.evaluation import OUTAGES, FaultKind
from shared_contracts.tools import TOOLS

AHEAD = LIFETIME + timedelta(minutes=1)
UNDONE_FOR = "the customer takes the request back"
AGAIN_SECONDS = 0.2  # while new work is stopped
LISTS = 2  # a worker that has read the tools so often since a case came has had the time to begin it
LISTED_SECONDS_MAX = 30.0


@dataclass
class Run:
    """What came of a case: its workflows, and how long it took on the wall."""

    prepared: Prepared
    workflow_ids: list[UUID] = field(default_factory=list)
    seconds: float = 0.0
    turned: str | None = None  # what was seen of the clock, where it was turned for this case
    said: list[str] = field(default_factory=list)  # what kept the evaluation from doing its part


@dataclass(frozen=True, slots=True)
class Bench:
    """What a run needs; the two owners' connections are the evaluation's alone."""

    pool: Pool
    owner: Pool
    tools_owner: str
    desk: Desk
    kind: Kind
    pins: Pins
    people: People
    watch: Watch
    outages: Outages
    line: Wire


async def conduct(
    bench: Bench, cases: Sequence[Prepared], concurrency: int, seed: int, done: Callable[[Run], None]
) -> list[Run]:
    """Run them all; gives what came of each. `done` hears of each that is through."""
    order = sorted(cases, key=lambda one: one.case.id)
    random.Random(seed).shuffle(order)  # noqa: S311 - an order that can be had again, no secret
    runs = [Run(one) for one in order]
    alone = [run for run in runs if run.prepared.undisturbed]
    await _at_a_time(concurrency, alone, bench, done)
    for kind in OUTAGES:
        those = [run for run in runs if run.prepared.outage is kind]
        for at in range(0, len(those), concurrency):
            await _hurt(bench, kind, those[at : at + concurrency], done)
    await _at_a_time(concurrency, [run for run in runs if run.prepared.spends_a_key], bench, done)
    await _by_clock(bench, concurrency, [run for run in runs if run.prepared.by_clock], done)
    return runs


async def _at_a_time(concurrency: int, runs: Sequence[Run], bench: Bench, done: Callable[[Run], None]) -> None:
    waiting = deque(runs)

    async def hand() -> None:
        while waiting:
            run = waiting.popleft()
            await _through(bench, run)
            done(run)

    async with asyncio.TaskGroup() as hands:
        for _ in range(min(concurrency, len(runs))):
            hands.create_task(hand())


async def _hurt(bench: Bench, kind: FaultKind, runs: Sequence[Run], done: Callable[[Run], None]) -> None:
    """Run the cases of one kind together, so that it is done to all of them at once."""
    if kind is FaultKind.OLDER_CONTRACT:
        await _under_older(bench, runs)
        for run in runs:
            done(run)
    else:
        together = 1 if kind is FaultKind.COMMIT_LOST else len(runs)  # steps of several cases may share a commit
        bench.outages.expect(together)
        await _at_a_time(together, runs, bench, done)


async def _under_older(bench: Bench, runs: Sequence[Run]) -> None:
    """Bring the cases, or the decisions that they wait for, before a tool server of older contracts, and wait."""
    deciding = [run for run in runs if run.prepared.case.decision is not None]
    for run in deciding:
        with _telling(run):
            await _take_in(bench, run)
            await bench.watch.rest(run.workflow_ids[0], ended=False)
    before = Counter(bench.line.answered)
    async with bench.outages.older():
        await _listed(bench.line, 1)  # until then the worker may not know yet
        for run in runs:
            with _telling(run):
                await (_decide(bench, run) if run in deciding else _take_in(bench, run))
        listed = await _listed(bench.line, LISTS)
    for run in runs:
        order = str(run.prepared.case.request["order_id"])
        passed = bench.line.answered[order] - before[order]
        said = f"{listed} lists of tools were answered under the older version {OLDER_VERSION}"
        if listed < LISTS or passed > 0:
            run.said.append(f"{said}, and {passed} calls of the case meanwhile")
        else:
            bench.line.note(order, f"{said}, and no call of the case")
    await asyncio.gather(*(_through(bench, run) for run in runs))


async def _listed(line: Wire, times: int) -> int:
    """Wait until the worker has read the older server's tools so often again; gives how often it has."""
    before = line.listed[OLDER_VERSION]
    await until(lambda: line.listed[OLDER_VERSION] >= before + times, LISTED_SECONDS_MAX)
    return line.listed[OLDER_VERSION] - before


async def _through(bench: Bench, run: Run) -> None:
    """Take a case to its end, or to where nobody decides; what does not rest in time is left as it stands."""
    began = time.monotonic()
    case = run.prepared.case
    with _telling(run):
        await asyncio.gather(*(_take_in(bench, run) for _ in range(2 if case.repeated == "at_once" else 1)))
        await _end(bench, run)
        if case.repeated == "after":
            await _take_in(bench, run)
            await _end(bench, run)
        if case.undone_by is not None:
            await _undo(bench, run, case.undone_by)
    run.seconds += time.monotonic() - began


@contextmanager
def _telling(run: Run) -> Iterator[None]:
    """Keep what went wrong with one case to that case."""
    try:
        yield
    except (GaveUpError, ApprovalRefusedError, NotPossibleError) as error:
        run.said.append(f"{type(error).__name__}: {error}")


async def _take_in(bench: Bench, run: Run) -> None:
    """Hand the request in, as often as new work is stopped meanwhile."""
    origin = Origin(run.prepared.principal)
    until = time.monotonic() + CASE_SECONDS_MAX
    while True:
        try:
            taken = await accept(bench.pool, bench.kind, run.prepared.request, origin, bench.pins, bench.desk.wake)
        except StoppedError as error:
            if time.monotonic() > until:
                raise GaveUpError("new work stayed stopped") from error
            await asyncio.sleep(AGAIN_SECONDS)
        else:
            if taken.workflow_id not in run.workflow_ids:
                run.workflow_ids.append(taken.workflow_id)
            return


async def _end(bench: Bench, run: Run) -> None:
    """Decide as often as somebody is asked who says something; a case that a time ends is left to it."""
    prepared = run.prepared
    for workflow_id in run.workflow_ids:
        position = await bench.watch.rest(workflow_id, ended=False)
        if not position.ended:
            await _try(bench, run, workflow_id)
        for by, verdict in () if prepared.late else prepared.verdicts:
            position = await bench.watch.rest(workflow_id, ended=False)
            if position.ended:
                break
            await bench.people.decide(bench.desk, workflow_id, by, verdict)
        await bench.watch.rest(workflow_id, ended=prepared.verdicts != () and not prepared.by_clock)


async def _try(bench: Bench, run: Run, workflow_id: UUID) -> None:
    """Say yes in the name of somebody who may not, where the case has one; whether that counts is seen afterwards."""
    decision = run.prepared.case.decision
    if decision is not None and decision.tried_by is not None:
        with suppress(ApprovalRefusedError):
            await bench.people.decide(bench.desk, workflow_id, decision.tried_by, "approve")


async def _decide(bench: Bench, run: Run) -> None:
    """Take the decision that is due, whatever stands in its way."""
    for workflow_id in run.workflow_ids:
        for by, verdict in run.prepared.verdicts[:1]:
            await bench.people.decide(bench.desk, workflow_id, by, verdict)


async def _undo(bench: Bench, run: Run, by: str) -> None:
    """Have an operator order that what a case has made is undone, once a person has the case."""
    for workflow_id in run.workflow_ids:
        await bench.watch.rest(workflow_id, ended=True)
        await order_compensation(bench.desk, workflow_id, By(by, str(os.getuid()), None), UNDONE_FOR, TOOLS)
        await bench.watch.rest(workflow_id, ended=True)


async def _by_clock(bench: Bench, concurrency: int, runs: Sequence[Run], done: Callable[[Run], None]) -> None:
    await _at_a_time(concurrency, runs, bench, lambda _: None)
    waiting = {workflow_id for run in runs for workflow_id in run.workflow_ids}
    if waiting:
        async with bench.pool.connection() as connection:
            busy = await trial.busy(connection, waiting)
        said = f"not turned: {busy} cases were open or at work" if busy else await _passed(bench, runs)
        for run in runs:
            began = time.monotonic()
            if busy:
                run.said.append(said)
                continue
            run.turned = said
            try:
                for workflow_id in run.workflow_ids:
                    await bench.watch.rest(workflow_id, ended=True)
            except GaveUpError as error:
                run.said.append(f"it did not end after the clock had passed its time: {error}")
            run.seconds += time.monotonic() - began
    for run in runs:
        done(run)


async def _passed(bench: Bench, runs: Sequence[Run]) -> str:
    """Turn the clocks; what is decided before that is acted on by nobody until they are turned."""
    late = [run for run in runs if run.prepared.late]
    if not late:
        return await _turned(bench)
    async with bench.outages.without_worker():
        for run in late:
            with _telling(run):
                await _decide(bench, run)
        return await _turned(bench)


async def _turned(bench: Bench) -> str:
    """Turn the clocks of both databases; gives what they said before and after."""
    seen = dict[str, str]()
    async with bench.owner.connection() as owner:
        seen["host"] = await _turn(owner)
    async with await psycopg.AsyncConnection.connect(bench.tools_owner, autocommit=True) as owner:
        seen["tools"] = await _turn(owner)
    return "; ".join(f"the clock of {name} went {said}" for name, said in seen.items())


async def _turn(owner: psycopg.AsyncConnection[tuple[object, ...]]) -> str:
    before = await trial.now(owner)
    await trial.turn_clock(owner, AHEAD)
    after = await trial.now(owner)
    if after - before < LIFETIME:
        raise RuntimeError("the clock did not turn")
    return f"from {before.isoformat(timespec='seconds')} to {after.isoformat(timespec='seconds')}"
