"""Takes the cases in, so many at a time, decides where a case says who does, and turns the clock for the last of them.

    each case: take in ──► it rests ──► somebody decides ──► it has ended ──► the same again, where it is repeated
    then those that nobody decides on: all wait ──► the clock passes their time ──► they have ended

Invariant: the clock moves only while no call is in flight and no other case is open.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import psycopg
from pydantic import BaseModel

from host.domain.principals import Principal
from host.engine.accept import Origin, Pins, accept
from host.engine.approve import ApprovalRefusedError, Desk
from host.engine.parts import Kind
from host.evaluation.people import People
from host.evaluation.watch import CASE_SECONDS_MAX, GaveUpError, Watch
from host.store import trial
from host.store.errors import StoppedError
from host.store.pool import Pool
from shared_contracts.approval import LIFETIME
from shared_contracts.evaluation import EvaluationCase, FaultKind

AHEAD = LIFETIME + timedelta(minutes=1)
AGAIN_SECONDS = 0.2  # while new work is stopped


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case whose request was read as its kind has it, and who asks."""

    case: EvaluationCase
    request: BaseModel
    principal: Principal

    @property
    def by_clock(self) -> bool:
        """Tell whether its end is a time that passes."""
        case = self.case
        nobody = case.decision is not None and case.decision.verdict == "nobody"
        return nobody or (case.fault is not None and case.fault.kind is FaultKind.APPROVAL_EXPIRY)


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


async def conduct(
    bench: Bench, cases: Sequence[Prepared], concurrency: int, seed: int, done: Callable[[Run], None]
) -> list[Run]:
    """Run them all; gives what came of each. `done` hears of each that is through."""
    order = sorted(cases, key=lambda one: one.case.id)
    random.Random(seed).shuffle(order)  # noqa: S311 - an order that can be had again, no secret
    runs = [Run(one) for one in order]
    await _at_a_time(concurrency, [run for run in runs if not run.prepared.by_clock], bench, done)
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


async def _through(bench: Bench, run: Run) -> None:
    """Take a case to its end, or to where nobody decides; what does not rest in time is left as it stands."""
    began = time.monotonic()
    case = run.prepared.case
    try:
        await asyncio.gather(*(_take_in(bench, run) for _ in range(2 if case.repeated == "at_once" else 1)))
        await _end(bench, run)
        if case.repeated == "after":
            await _take_in(bench, run)
            await _end(bench, run)
    except (GaveUpError, ApprovalRefusedError) as error:
        run.said.append(f"{type(error).__name__}: {error}")
    run.seconds += time.monotonic() - began


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
    for workflow_id in run.workflow_ids:
        standing = await bench.watch.rest(workflow_id, ended=False)
        decision = run.prepared.case.decision
        if standing.ended or decision is None or decision.verdict == "nobody":
            continue
        await bench.people.decide(bench.desk, workflow_id, decision)
        await bench.watch.rest(workflow_id, ended=True)


async def _by_clock(bench: Bench, concurrency: int, runs: Sequence[Run], done: Callable[[Run], None]) -> None:
    await _at_a_time(concurrency, runs, bench, lambda _: None)
    waiting = {workflow_id for run in runs for workflow_id in run.workflow_ids}
    if waiting:
        async with bench.pool.connection() as connection:
            busy = await trial.busy(connection, waiting)
        said = f"not turned: {busy} cases were open or at work" if busy else await _turned(bench)
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
