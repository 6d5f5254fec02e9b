"""`withdraw` and `reapply`: a person's own act on a case that waits, or that ended with nothing done."""

from __future__ import annotations

from datetime import datetime

from host.commands.approve import desk_of
from host.commands.exits import CommandError, Exit
from host.commands.lookup import found_id
from host.commands.output import command, console, write_json
from host.commands.possible import or_what_is_possible
from host.commands.run import moment
from host.engine.approve import load_case
from host.engine.reapply import reapply, withdraw
from host.rights import pins
from host.settings import Settings
from host.views import Reapplied, Withdrawn
from shared_contracts.base import dump
from shared_contracts.digest import NotCanonicalError, storable_text
from shared_contracts.operator import operator

NAME_MAX = 80


async def take_back(settings: Settings, name: str, by: str | None, *, as_json: bool) -> None:
    """End a waiting case for its requester."""
    try:
        who = storable_text(operator() if by is None else by)
    except NotCanonicalError as error:
        raise CommandError(Exit.BAD_INPUT, "--as is no name", str(error)) from error
    if not 1 <= len(who) <= NAME_MAX:
        raise CommandError(
            Exit.BAD_INPUT, "--as is no name", f"A name has 1 to {NAME_MAX} characters. Nothing was changed."
        )
    async with desk_of(settings) as desk:
        workflow_id = await found_id(desk.pool, name)
        async with or_what_is_possible(settings, desk.pool, workflow_id):
            await withdraw(desk, workflow_id, who)
    if as_json:
        write_json(dump(Withdrawn(workflow_id=workflow_id, withdrawn_by=who)))
        return
    console().print(f"withdrawn: {workflow_id} is REJECTED, and nothing was made")


async def ask_anew(settings: Settings, name: str, as_of: str | None, *, as_json: bool) -> None:
    """Take the same case in as a new one."""
    asked_at = None if as_of is None else moment(as_of)
    async with desk_of(settings) as desk:
        old = await found_id(desk.pool, name)
        async with or_what_is_possible(settings, desk.pool, old):
            taken = await reapply(desk, old, pins(settings, desk.authorization), asked_at)
            first, now = await load_case(desk, old), await load_case(desk, taken.workflow_id)
    view = Reapplied(
        workflow_id=taken.workflow_id,
        supersedes=old,
        created=taken.created,
        requested_at=now.task.requested_at,
    )
    if as_json:
        write_json(dump(view))
    else:
        _tell(settings, view, first.task.requested_at)


def _tell(settings: Settings, new: Reapplied, first: datetime) -> None:
    """Say as of when the new case is judged, since that is what it is most often rejected for."""
    to = console()
    was = "is new" if new.created else "was asked for before, and keeps the time that it began with"
    to.print(f"workflow {new.workflow_id} {was}; it supersedes {new.supersedes}", soft_wrap=True)
    to.print(
        f"it is judged as asked for at {_told(new.requested_at)}; the old one was at {_told(first)}", soft_wrap=True
    )
    if new.requested_at > first:
        again = command(settings, "reapply", str(new.workflow_id), "--as-of", _told(first))
        to.print(f"where that is too late and it ends as REJECTED, with the old time: {again}", soft_wrap=True)
    to.print(f"a worker takes it, or: {command(settings, 'run', str(new.workflow_id))}", style="dim", soft_wrap=True)


def _told(at: datetime) -> str:
    return at.astimezone().isoformat(timespec="seconds")
