"""`rollout` and `check`: let cases in by stages, close a stage by what it has shown, and keep what a person found.

Invariant: a stage is passed only over a comparison that is made now, and the database counts everything else again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from psycopg import AsyncConnection

from host.commands import rollout_sheet
from host.commands.auditors import auditing
from host.commands.exits import CommandError, Exit
from host.commands.lookup import found_id
from host.commands.operators import operator_of
from host.commands.output import command, console, say, write_json
from host.commands.owners import as_owner
from host.commands.rollout_form import write_form
from host.commands.rollout_read import read_rollout
from host.commands.stop import read_reason
from host.commands.workplace import reading
from host.domain.acting import By
from host.domain.principals import Act
from host.domain.rollout import CASES, WHAT, OpenStage, Reconciled, stands_against
from host.evaluation.audit import reconciled
from host.rollout_views import CaseChecked
from host.settings import Settings
from host.store import rollout
from host.store.errors import InvariantError
from shared_contracts.base import dump

Verdict = Literal["ok", "wrong"]


async def status(settings: Settings, form: str | None, *, as_json: bool) -> Exit:
    """Show where the rollout stands, and write the form where one is wanted."""
    async with reading(settings) as pool:
        view = await read_rollout(pool)
        if form is not None:
            await write_form(pool, view, form)
    if as_json:
        write_json(dump(view))
    else:
        rollout_sheet.show(console(), view)
    return Exit.DONE


async def open_stage(settings: Settings, stage: int, name: str, reason: str | None, *, as_json: bool) -> Exit:
    """Open a stage. Raises CommandError, ActRefusedError."""
    by = _may(settings, name)
    why = f"{WHAT[_known(stage)]}: {CASES[stage]} cases" if reason is None else read_reason(reason)
    try:
        await as_owner(settings, lambda owner: rollout.open_stage(owner, stage, by, why))
    except InvariantError as error:
        mend = f"Nothing was opened. First: {command(settings, 'release', 'record', 'report.json', '--as', name)}"
        raise CommandError(Exit.BAD_INPUT, "no release is recorded that could be rolled out", mend) from error
    return await status(settings, None, as_json=as_json)


async def waive(settings: Settings, name: str, reason: str, *, as_json: bool) -> Exit:
    """Say that no rollout runs. Raises CommandError, ActRefusedError."""
    by, why = _may(settings, name), read_reason(reason)
    await as_owner(settings, lambda owner: rollout.waive(owner, by, why))
    return await status(settings, None, as_json=as_json)


async def close(settings: Settings, stage: int, name: str, reason: str, *, abandon: bool, as_json: bool) -> Exit:
    """Close a stage, as passed or given up; gives 1 where something stands against it. Raises CommandError."""
    by, why = _may(settings, name), read_reason(reason)
    open_now = await _stage(settings, _known(stage))
    if abandon:
        await _closed(settings, stage, lambda owner: rollout.abandon(owner, stage, by, why))
        return await status(settings, None, as_json=as_json)
    against = stands_against(open_now, None)
    if against:
        return _refused(settings, stage, against)
    compared = await _compared(settings)
    against = stands_against(open_now, compared)
    if against:
        return _refused(settings, stage, against)
    try:
        await _closed(settings, stage, lambda owner: rollout.pass_stage(owner, stage, compared, by, why))
    except InvariantError as error:
        what = f"stage {stage} is not closed: what it was counted by has changed meanwhile"
        raise CommandError(Exit.FAILED, what, "Nothing was changed. Try again.") from error
    return await status(settings, None, as_json=as_json)


async def _compared(settings: Settings) -> Reconciled:
    async with auditing(settings) as auditors:
        found = (await reconciled(auditors)).as_compared()
    return Reconciled(found.compared, len(found.untracked), len(found.missing), len(found.duplicate))


async def _stage(settings: Settings, stage: int) -> OpenStage:
    async with reading(settings) as pool, pool.connection() as connection:
        found = await rollout.current_stage(connection)
    if found is None or found.stage != stage:
        raise _not_open(stage)
    return found


async def _closed(
    settings: Settings, stage: int, act: Callable[[AsyncConnection[Any]], Awaitable[rollout.Act | None]]
) -> None:
    if await as_owner(settings, act) is None:
        raise _not_open(stage)


def _not_open(stage: int) -> CommandError:
    return CommandError(
        Exit.BAD_INPUT,
        f"stage {stage} is not open",
        "Nothing was changed. kessai rollout status shows where it stands.",
    )


def _refused(settings: Settings, stage: int, against: tuple[str, ...]) -> Exit:
    say(f"kessai: stage {stage} stays open:")
    for one in against:
        say(f"  {one}")
    give_up = command(settings, "rollout", "close", str(stage), "--as", "NAME", "--reason", "TEXT", "--abandon")
    say(f"  To give it up, unpassed: {give_up}")
    return Exit.FAILED


def _known(stage: int) -> int:
    if stage not in CASES:
        stages = ", ".join(f"{one} ({what}, {CASES[one]} cases)" for one, what in WHAT.items())
        raise CommandError(Exit.BAD_INPUT, f"there is no stage {stage}", f"The stages are: {stages}.")
    return stage


def _may(settings: Settings, name: str) -> By:
    return operator_of(settings, name, Act.ROLLOUT)[1]


async def check(settings: Settings, case: str, verdict: Verdict, name: str, reason: str, *, as_json: bool) -> Exit:
    """Keep what a person found who looked at a case that has ended. Raises CommandError, ActRefusedError."""
    operator, by = operator_of(settings, name, Act.CHECK)
    why = read_reason(reason, "what is wrong with the case has to be said" if verdict == "wrong" else None)
    async with reading(settings) as pool:
        workflow_id = await found_id(pool, case)
        async with pool.connection() as connection:
            tenant = await rollout.tenant(connection, workflow_id)
    if not operator.covers(tenant):
        what = f"{name} checks cases of {operator.tenant_id}, and this one is of {tenant}"
        raise CommandError(Exit.BAD_INPUT, what, "Nothing was changed.")
    await as_owner(settings, lambda owner: rollout.check(owner, workflow_id, verdict, by, why))
    view = CaseChecked(workflow_id=workflow_id, verdict=verdict, by=by.name, reason=why)
    if as_json:
        write_json(dump(view))
    else:
        console().print(f"{workflow_id} was checked by {by.name}: {verdict}", soft_wrap=True, markup=False)
    return Exit.DONE
