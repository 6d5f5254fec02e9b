"""One cell: a case is begun, a program dies on one side of a commit, and whoever is left goes on; then all is counted.

    begin ──► the victim runs, armed ──► it dies ──► another of its kind, the command again ──► the case's end

Invariant: what a cell is judged by was counted by the auditors and in the Maildir, and a victim that did not die makes
the cell wrong.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from email import message_from_bytes
from pathlib import Path as File
from typing import Any
from uuid import UUID

from host.evaluation.audit import reconciled_case
from host.evaluation.crash import people
from host.evaluation.crash.documents import CrashCell, Effects
from host.evaluation.crash.lane import (
    ENDED_SECONDS,
    LOOK_SECONDS,
    Lane,
    LateError,
    gone,
    kill,
    until,
)
from host.evaluation.crash.names import COMMAND, SEALS, SERVER, TRACE, WORKER, Boundary, When, said
from host.evaluation.crash.paths import NOTHING, Begun, Path
from host.stack import assembly
from host.stack.pids import Identity
from host.store import crash, trial
from shared_contracts.approval import LIFETIME

AHEAD = LIFETIME + timedelta(minutes=1)
GRACE_SECONDS = 5.0  # after a case's end, for what a victim commits later
PATIENT_SECONDS = "60"  # a lease that is renewed by nobody while commits are counted
# A worker's own life is the same whatever it drives, and how often its heart beats is a matter of time: the first of
# each is looked at, on one path.
LIFE = {"procrastinate_register_worker", "procrastinate_update_heartbeat", "procrastinate_prune_stalled_workers"}
LIVED = "return/worker"


@dataclass(frozen=True, slots=True)
class End:
    """What came of a case. `reached` None: there is no such case."""

    workflow_id: UUID | None
    reached: str | None
    effects: Effects
    recoveries: int
    wrong: tuple[str, ...]


async def count(lane: Lane, path: Path) -> tuple[tuple[Boundary, ...], tuple[str, ...]]:
    """Run a path without a kill; gives its boundaries as they came, and what is wrong with its end."""
    file = lane.file(f"{path.name.replace('/', '-')}.trace")
    file.unlink(missing_ok=True)
    async with _begun(lane, path, {TRACE: str(file)}) as (begun, victim):
        if path.victim == COMMAND:
            await gone(victim, ENDED_SECONDS)
            await lane.keep(WORKER)
        with suppress(LateError):
            await until(lambda: _there(lane, path, begun), ENDED_SECONDS)
            await lane.idle()
        await kill(victim)
        found = await _end(lane, path, begun)
    if path.name == LIVED:
        await _alive(lane, file)
    boundaries = _boundaries(path, file)
    return boundaries, found.wrong if boundaries else (*found.wrong, "it committed nothing")


async def _alive(lane: Lane, file: File) -> None:
    """Let a worker live for a moment with nothing to do, until it has committed what only the time brings."""
    await lane.fresh()
    await lane.keep(SERVER)
    await lane.drop(WORKER)
    await lane.forgettable()
    worker = await lane.started(lane.worker(), {TRACE: str(file)})

    async def beaten() -> bool:
        return LIFE.issubset(line["name"] for line in _lines(file))

    await until(beaten, ENDED_SECONDS)
    await kill(worker)


def _lines(file: File) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def _boundaries(path: Path, file: File) -> tuple[Boundary, ...]:
    came = dict.fromkeys(Boundary(line["name"], line["n"]) for line in _lines(file) if line["name"] not in SEALS)
    return tuple(one for one in came if one.name not in LIFE or (one.n == 1 and path.name == LIVED))


async def crashed(lane: Lane, path: Path, boundary: Boundary, when: When) -> CrashCell:
    """Run a path and kill its victim there."""
    order, since = boundary.order(when), len(lane.said(path.victim))
    seconds: float | None = None
    async with _begun(lane, path, order) as (begun, victim):
        with suppress(LateError):
            await _death(lane, path, begun, victim)
            died = time.monotonic()
            await _go_on(lane, path, begun)
            await until(lambda: _over(lane, path, begun), ENDED_SECONDS)
            if await _there(lane, path, begun):
                seconds = round(time.monotonic() - died, 3)
        fired = lane.was_killed(path.victim, victim) and said(order) in lane.said(path.victim)[since:]
        found = await _end(lane, path, begun)
    wrong = found.wrong if fired else ("the kill did not fire", *found.wrong)
    return CrashCell(
        path=path.name, victim=path.victim, boundary=str(boundary), when=when, fired=fired,
        workflow_id=found.workflow_id, expected=path.end, reached=found.reached, effects=found.effects,
        recoveries=found.recoveries, resume_seconds=seconds, wrong=wrong, right=wrong == (),
    )  # fmt: skip


def unreached(path: Path, boundary: Boundary, when: When, why: str) -> CrashCell:
    """Give the cell of a case that did not even come where the kill was due."""
    return CrashCell(
        path=path.name, victim=path.victim, boundary=str(boundary), when=when, fired=False, workflow_id=None,
        expected=path.end, reached=None, effects=NOTHING, recoveries=0, resume_seconds=None, wrong=(why,), right=False,
    )  # fmt: skip


@asynccontextmanager
async def _begun(lane: Lane, path: Path, order: Mapping[str, str]) -> AsyncIterator[tuple[Begun, Identity]]:
    """Have the path's case under way with its victim at work, and nothing left of either afterwards."""
    await lane.fresh()
    await lane.keep(SERVER)
    if path.victim == WORKER:
        begun = await path.begin(lane)
        await lane.drop(WORKER)
    else:
        await lane.keep(WORKER)
    if path.victim == SERVER:
        await lane.drop(SERVER)
        victim = await lane.started(assembly.tool_server(lane.parts, lane.port), order)
        begun = await path.begin(lane)
    if path.victim == COMMAND:
        begun = await path.begin(lane)
        victim = lane.start(lane.command(*begun.words), order)
    async with _later(lane, path):
        if path.victim == WORKER:
            patient = {"KESSAI_LEASE_SECONDS": PATIENT_SECONDS} if TRACE in order else {}
            victim = lane.start(lane.worker(**patient), order)
        person = asyncio.create_task(_decide(lane, path, begun))
        try:
            yield begun, victim
        finally:
            person.cancel()
            await asyncio.wait({person})
            await lane.clear()


@asynccontextmanager
async def _later(lane: Lane, path: Path) -> AsyncIterator[None]:
    """Let the host's clock pass the time of a yes, where the path says so."""
    if not path.expires:
        yield
        return
    async with lane.owner.connection() as owner:
        await crash.forget_queue(owner)  # or what the dropped worker had in hand would be the next one's first commit
        await trial.turn_clock(owner, AHEAD)
        try:
            yield
        finally:
            await lane.drop(WORKER)
            await trial.turn_clock(owner, timedelta())


async def _decide(lane: Lane, path: Path, begun: Begun) -> None:
    """Say yes when the case asks; where it never does, its end says so."""
    if path.decided:
        with suppress(LateError):
            (case,) = await begun.cases()
            await people.approve_when_asked(lane, case)


async def _death(lane: Lane, path: Path, begun: Begun, victim: Identity) -> None:
    """Wait for it; a case that has long come to its end without it, or a time that is over, ends the waiting."""
    deadline, through = time.monotonic() + ENDED_SECONDS, None
    while victim.alive():
        now = time.monotonic()
        if through is None and await _there(lane, path, begun):
            through = now
        if now > deadline or (through is not None and now > through + GRACE_SECONDS):
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _go_on(lane: Lane, path: Path, begun: Begun) -> None:
    """Do what is done about a dead one: another is started, a command is typed again, for nobody knows what it did."""
    await lane.keep(SERVER)
    await lane.keep(WORKER)
    if path.victim == COMMAND:
        await lane.run(lane.command(*begun.words))


async def _there(lane: Lane, path: Path, begun: Begun) -> bool:
    cases = await begun.cases()
    found = await lane.position(cases[0]) if cases else None
    return found is not None and _text(found) == path.end and found.under_way == 0


async def _over(lane: Lane, path: Path, begun: Begun) -> bool:
    """Tell whether it is there, or has ended otherwise, which no waiting mends."""
    if path.stock is not None or not (cases := await begun.cases()):  # a person has had it from the beginning
        return await _there(lane, path, begun)
    found = await lane.position(cases[0])
    return (found is not None and found.ended and found.under_way == 0) or await _there(lane, path, begun)


def _text(found: crash.Position) -> str:
    return f"{found.state}/{found.reason}{'/closed' if found.closed else ''}"


async def _end(lane: Lane, path: Path, begun: Begun) -> End:
    """Count what stands on both sides."""
    cases = await begun.cases()
    if len(cases) != 1:
        return End(None, None, NOTHING, 0, (f"there are {len(cases)} cases of it",))
    position = await lane.position(cases[0])
    if position is None:
        return End(cases[0], None, NOTHING, 0, ("the case is gone",))
    provider = await crash.provider(lane.auditors.tools, cases[0])
    effects = Effects(
        returns=provider.returns, notices=provider.notices, cancellations=provider.cancellations,
        corrections=provider.corrections,
    )  # fmt: skip
    wrong = [*_differing(path, position, effects), *_mails(lane, provider)]
    compared = await reconciled_case(lane.auditors, str(cases[0]))
    wrong += [f"{one.kind} {one.tool} {one.id}: {one.why}" for one in compared.findings]
    async with lane.pool.connection() as connection:
        stopped = [one for one in await crash.stops(connection) if crash.OURS not in one]
    wrong += [f"stopped {one}" for one in stopped]
    return End(cases[0], _text(position), effects, position.recoveries, tuple(wrong))


def _differing(path: Path, position: crash.Position, effects: Effects) -> list[str]:
    wrong = [] if _text(position) == path.end else [f"it stands in {_text(position)}"]
    if position.under_way:
        wrong.append(f"{position.under_way} of it under way")
    due = dict(path.effects)
    return wrong + [f"{name} {found}, and {due[name]} expected" for name, found in effects if found != due[name]]


def _mails(lane: Lane, provider: crash.Provider) -> list[str]:
    """A mail is a file, so two files with one Message-ID are two mails."""
    lying = Counter(mails(lane))
    return [f"{lying[one]} mails of {one}" for one in provider.messages if lying[one] != 1]


def mails(lane: Lane) -> list[str]:
    """Give the Message-ID of every mail that left."""
    files = list(lane.mail.iterdir()) if lane.mail.is_dir() else []
    return [str(message_from_bytes(file.read_bytes())["Message-ID"]) for file in files]
