"""`resume`: find out what nobody knows, record it, and only then lift the stop; release what is held by parts.

look up what is in doubt ──► count and record ──► lift: one case at a time ──► release parts ──► full

Invariant: the record is written whatever comes of it, and the lift is checked again by the database itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from psycopg import AsyncConnection

from host.commands.exits import CommandError, Exit
from host.commands.operators import operator_of
from host.commands.output import say, write_json
from host.commands.resume_next import Wanted, again, check, next_act, waiting
from host.commands.resume_sheet import show
from host.commands.stop import read_reason
from host.commands.workplace import POOL_SIZE_READING, owning, working
from host.database import NotReadyError, database
from host.domain.acting import By
from host.domain.principals import Act
from host.settings import Settings
from host.stack.links import Links
from host.stop_views import (
    Accepted,
    EffectCounts,
    HeldCases,
    OutsideWrite,
    ReconciledState,
    ReconciliationView,
    ResumeView,
    StoppedAgain,
    ToUndo,
    Unsettled,
)
from host.store import stops
from host.store.errors import NotLiftedError, StoppedError
from host.store.pool import Pool
from shared_contracts.base import dump, parse

T = TypeVar("T")


@dataclass
class _Done:
    """What came of it so far."""

    reconciled: stops.Reconciled | None = None
    lifted: bool = False
    refused: list[str] = field(default_factory=list)
    again: list[stops.Again] = field(default_factory=list)
    released: list[UUID] = field(default_factory=list)


async def resume(settings: Settings, wanted: Wanted, *, as_json: bool) -> Exit:
    """Do what can be done; gives the exit code. Raises CommandError."""
    _, by = operator_of(settings, wanted.by, Act.RESUME)
    reason = read_reason(wanted.reason)
    check(settings, wanted)
    done = _Done()
    async with working(settings) as place, database(place.links.dsn, POOL_SIZE_READING) as pool:
        stopped = await _stopped(pool)
        if stopped:
            if wanted.full:
                mend = f"Lift the stop first, then release what is held: {again(settings)}\nNothing was changed."
                raise CommandError(Exit.STOPPED, "work is stopped; --full is the last step", mend)
            await _lift(settings, place.links, pool, by, reason, done)
        else:
            await _refuse_without_need(settings, pool, wanted)
        if not done.refused:
            await _go_on(settings, pool, wanted, by, reason, done)
        view = await _view(settings, pool, by, reason, done)
    if as_json:
        write_json(dump(view))
    else:
        show(settings, view)
    return Exit.STOPPED if done.refused else Exit.DONE


async def _stopped(pool: Pool) -> bool:
    async with pool.connection() as connection:
        return _anything(await stops.scopes(connection))


def _anything(scopes: Sequence[stops.Stop]) -> bool:
    return any(one.engaged for one in scopes if one.scope in stops.EVERYTHING)


async def _refuse_without_need(settings: Settings, pool: Pool, wanted: Wanted) -> None:
    """Nothing is stopped: refuse what would change nothing, with what is held and which command comes next."""
    async with pool.connection() as connection:
        held, scopes = await stops.held(connection), await stops.scopes(connection)
    parallel = _one_at_a_time(scopes)
    if (wanted.full and parallel) or (wanted.state is not None and held):
        return
    coming = next_act(settings, held, stopped=False, one_at_a_time=parallel)
    if held:
        mend = f"Held are: {waiting(held)}. The next part: {coming}"
    elif parallel:
        mend = f"No case is held, and one is driven at a time; to end that: {coming}"
    else:
        mend = "No case is held, and several are driven at a time already: work goes on as usual."
    raise CommandError(Exit.BAD_INPUT, "nothing is stopped; nothing was changed", mend)


def _one_at_a_time(scopes: Sequence[stops.Stop]) -> bool:
    return any(one.engaged for one in scopes if one.scope == stops.PARALLEL)


async def _lift(settings: Settings, links: Links, pool: Pool, by: By, reason: str, done: _Done) -> None:
    """Find out, record, and lift where nothing stands against it, such as what was found by it."""
    async with pool.connection() as connection:
        before = await stops.newest_act(connection)
    await _find_out(settings, links, pool, by)
    async with pool.connection() as connection, connection.transaction():
        await stops.be_patient(connection)  # it reads every case
        reconciled = done.reconciled = await stops.reconcile(connection, by, reason, before)
        done.again += await stops.stopped_since(connection, before)
    if done.again:
        done.refused.append("it was stopped again since the look-up began")
    if reconciled.unsettled:
        done.refused.append(f"nobody knows the outcome of {len(reconciled.unsettled)} effects")
    if reconciled.to_undo:
        done.refused.append(f"{len(reconciled.to_undo)} cases are still to be undone")
    if done.refused:
        return
    try:
        await _as_owner(settings, lambda owner: stops.lift(owner, by, reason, reconciled.reconciliation_id))
    except NotLiftedError as error:
        done.refused.append(_first_line(error))
    else:
        done.lifted = True


async def _find_out(settings: Settings, links: Links, pool: Pool, by: By) -> None:
    """Look up what is in doubt; where the tool server cannot be asked, it stays so and the record says it."""
    async with pool.connection() as connection, connection.transaction():
        await stops.be_patient(connection)
        if not await stops.in_doubt(connection):
            return
    from host import wiring  # here, since it brings the protocol's client along
    from host.commands.log import configure
    from host.engine.stops import find_out

    configure()
    try:
        async with wiring.driver(settings, links) as driver:
            await find_out(driver.parts, by)
    except NotReadyError as error:
        say(f"nothing could be looked up: {error}")


async def _go_on(settings: Settings, pool: Pool, wanted: Wanted, by: By, reason: str, done: _Done) -> None:
    try:
        if wanted.full:
            await _as_owner(settings, lambda owner: stops.end_one_at_a_time(owner, by, reason))
        elif wanted.state is not None and wanted.limit is not None:
            state, most = wanted.state, wanted.limit
            done.released += await _as_owner(settings, lambda owner: stops.release(owner, by, reason, state, most))
            if not done.released and not done.lifted:
                raise await _none_held(settings, pool, state)
    except (NotLiftedError, StoppedError) as error:
        done.refused.append(_first_line(error))


async def _none_held(settings: Settings, pool: Pool, state: str) -> CommandError:
    async with pool.connection() as connection:
        held, scopes = await stops.held(connection), await stops.scopes(connection)
    coming = next_act(settings, held, stopped=False, one_at_a_time=_one_at_a_time(scopes))
    mend = f"Held are: {waiting(held) or 'none'}." + ("" if coming is None else f" Next: {coming}")
    return CommandError(Exit.BAD_INPUT, f"no case is held in {state!r}; nothing was changed", mend)


async def _as_owner(settings: Settings, act: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
    """Act in one transaction of the owner's, which waits for whatever is committing now."""
    async with _owner(settings) as pool, pool.connection() as connection, connection.transaction():
        await stops.be_patient(connection)
        return await act(connection)


@asynccontextmanager
async def _owner(settings: Settings) -> AsyncIterator[Pool]:
    async with owning(settings) as place:
        if place.dsn is None:
            raise CommandError(Exit.NOT_READY, "KESSAI_MIGRATE_DSN is not set", "Only the owner lifts a stop.")
        async with database(place.dsn, 1) as pool:
            yield pool


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


async def _view(settings: Settings, pool: Pool, by: By, reason: str, done: _Done) -> ResumeView:
    async with pool.connection() as connection:
        held, scopes = await stops.held(connection), await stops.scopes(connection)
    stopped, parallel = _anything(scopes), _one_at_a_time(scopes)
    return ResumeView(
        actor=by.name,
        reason=reason,
        lifted=done.lifted,
        refused=tuple(done.refused),
        again=tuple(
            StoppedAgain(actor=one.actor, reason=one.reason, cause=one.cause, workflow_id=one.workflow_id)
            for one in done.again
        ),
        reconciliation=None if done.reconciled is None else _reconciliation(done.reconciled),
        released=tuple(done.released),
        held=tuple(HeldCases(state=one.state, cases=one.cases) for one in held),
        one_at_a_time=parallel,
        next=next_act(settings, held, stopped=stopped, one_at_a_time=parallel),
    )


def _reconciliation(one: stops.Reconciled) -> ReconciliationView:
    return ReconciliationView(
        reconciliation_id=one.reconciliation_id,
        at=one.at,
        states=tuple(
            ReconciledState(state=state, cases=counted["cases"], effects=EffectCounts(**counted["effects"]))
            for state, counted in sorted(one.states.items())
        ),
        unsettled=tuple(parse(Unsettled, row) for row in one.unsettled),
        accepted=tuple(parse(Accepted, row) for row in one.accepted),
        to_undo=tuple(parse(ToUndo, row) for row in one.to_undo),
        outside=tuple(parse(OutsideWrite, row) for row in one.outside),
    )
