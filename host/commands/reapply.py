"""`withdraw` and `reapply`: a person's own act on a case that waits, or that ended with nothing done."""

from __future__ import annotations

import getpass

from host.commands.approve import desk_of
from host.commands.exits import CommandError, Exit
from host.commands.lookup import found_id
from host.commands.output import command, console, write_json
from host.commands.run import moment
from host.engine.reapply import reapply, withdraw
from host.rights import pins
from host.settings import Settings
from host.views import Reapplied, Withdrawn
from shared_contracts.base import dump
from shared_contracts.digest import NotCanonicalError, storable_text

NAME_MAX = 80


async def take_back(settings: Settings, name: str, by: str | None, *, as_json: bool) -> None:
    """End a waiting case for its requester."""
    try:
        who = storable_text(getpass.getuser() if by is None else by)
    except NotCanonicalError as error:
        raise CommandError(Exit.BAD_INPUT, "--as is no name", str(error)) from error
    if not 1 <= len(who) <= NAME_MAX:
        raise CommandError(Exit.BAD_INPUT, "--as is no name", f"A name has at most {NAME_MAX} characters.")
    async with desk_of(settings) as desk:
        workflow_id = await found_id(desk.pool, name)
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
        taken = await reapply(desk, old, pins(settings, desk.authorization), asked_at)
    if as_json:
        write_json(dump(Reapplied(workflow_id=taken.workflow_id, supersedes=old, created=taken.created)))
        return
    was = "is new" if taken.created else "was asked for before"
    to = console()
    to.print(f"workflow {taken.workflow_id} {was}; it supersedes {old}")
    to.print(f"a worker takes it, or: {command(settings, 'run', str(taken.workflow_id))}", style="dim")
