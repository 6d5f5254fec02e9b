"""`kessai run`: take one case in, drive it until it rests, and show its timeline from the record.

Invariant: whatever is wrong with the case is said before anything is started or written; the same case again calls
nothing and says so.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from psycopg import AsyncConnection
from pydantic import BaseModel
from rich.console import Console

from host.commands import ending
from host.commands.exits import CommandError, Exit
from host.commands.follow import Follower, Timeline
from host.commands.lookup import found_id, record_of
from host.commands.output import command, console, say, write_json
from host.commands.workplace import Workplace, emptied, working
from host.domain.principals import AuthorizationSet, Principal
from host.domain.workflow import Workflow
from host.engine.accept import (
    CASE_BYTES_MAX,
    CaseError,
    Origin,
    Taken,
    accept,
    beginning,
    read_case,
    read_document,
)
from host.engine.drive import drive
from host.settings import Settings
from host.workflows.catalogue import CURRENT
from shared_contracts.base import YEARS, dump
from shared_contracts.named_file import Unread, read_file
from shared_contracts.printed import plain

if TYPE_CHECKING:
    from host.wiring import Driver

STANDARD_INPUT = 0
MEND = """Nothing was started. What another program writes is piped into kessai run -
examples/ has good cases, shared_contracts/schemas/case.<kind>.json their schemas."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A case that was read and fits its kind."""

    workflow: Workflow
    case: BaseModel
    principal: str | None
    as_of: datetime | None


@dataclass(frozen=True, slots=True)
class Continuation:
    """A workflow that is there already, by any of its names."""

    name: str


Asked = Submission | Continuation


def prepare(argument: str, principal: str | None, as_of: str | None) -> Asked:
    """Tell a case from a name, and read the case; raises CaseError and CommandError."""
    path = Path(argument)
    content = _standard_input() if argument == "-" else read_file(path, CASE_BYTES_MAX)
    if isinstance(content, Unread) and content.missing:
        if path.suffix == ".json" or os.sep in argument:
            raise CommandError(
                Exit.BAD_INPUT, f"there is no file {argument}", "Name a case's file; examples/ has some of every kind."
            )
        if as_of is not None:
            raise CommandError(
                Exit.BAD_INPUT, "--as-of belongs to a new case", "A workflow keeps the time it began with."
            )
        return Continuation(argument)
    if isinstance(content, Unread):
        raise CommandError(Exit.BAD_INPUT, f"{argument}: the case cannot be read: {content.why}", MEND)
    try:
        workflow, case = read_case(read_document(content), CURRENT)
    except CaseError as error:
        raise CommandError(Exit.BAD_INPUT, f"{argument}: {error}", MEND) from error
    return Submission(workflow, case, principal, None if as_of is None else moment(as_of))


def _standard_input() -> bytes | Unread:
    """Read a case from whatever it is, but never more of it than a case may have."""
    try:
        with open(STANDARD_INPUT, "rb", closefd=False) as given:
            content = given.read(CASE_BYTES_MAX + 1)
    except OSError as error:
        return Unread(f"{error.strerror}; name a file")
    return content if len(content) <= CASE_BYTES_MAX else Unread(f"it is larger than {CASE_BYTES_MAX} bytes")


def moment(text: str) -> datetime:
    """Read a time with its offset; raises CommandError."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        read = None
    if read is None or read.tzinfo is None or not YEARS[0] <= read.year <= YEARS[1]:
        mend = "Write it with its offset, such as 2026-07-30T10:00:00+09:00."
        raise CommandError(Exit.BAD_INPUT, f"--as-of {text!r} is no time", mend)
    if read > datetime.now(UTC):
        mend = "It is when the customer asked; without it a case counts as asked for now. Nothing was changed."
        raise CommandError(Exit.BAD_INPUT, f"--as-of {text} has not come yet", mend)
    return read


async def run(settings: Settings, asked: Asked, *, fresh: bool, as_json: bool) -> Exit:
    """Run to rest; gives the exit code."""
    to = None if as_json else console()
    if fresh:
        await emptied(settings)
    async with working(settings) as place:
        from host import wiring  # here, since it brings the protocol's client along: a second by itself
        from host.commands.log import configure

        configure()
        async with wiring.driver(settings, place.links) as driver:
            known = await _workflow(driver, asked, settings)
            try:
                return await _follow(settings, place, driver, asked, known, to)
            except asyncio.CancelledError:
                say(f"interrupted; go on with: {command(settings, 'run', str(known.workflow_id))}")
                raise


async def _workflow(driver: Driver, asked: Asked, settings: Settings) -> Taken:
    parts = driver.parts
    if isinstance(asked, Continuation):
        return Taken(await found_id(parts.pool, asked.name), created=False)
    principal = principal_of(parts.authorization, asked, settings)
    kind, case = await beginning(parts.pool, parts.kinds, asked.workflow, asked.case)
    # nobody is woken: this process drives it, and a sweeper brings it to a worker should this process die
    return await accept(parts.pool, kind, case, Origin(principal, asked.as_of), driver.pins, _nobody)


def principal_of(authorization: AuthorizationSet, asked: Submission, settings: Settings) -> Principal:
    """Find who asks: as the command says, as the setting says, or whom the authorization set names for the kind."""
    named = asked.principal
    if named is None and "principal" not in settings.model_fields_set:
        named = authorization.asking_for(asked.workflow.kind)
    name = settings.principal if named is None else named
    principal = authorization.by_name().get(name)
    if principal is None:
        names = ", ".join(sorted(authorization.by_name()))
        raise CommandError(Exit.BAD_INPUT, f"there is no principal {name!r}", f"The principals are: {names}.")
    return principal


async def _nobody(connection: AsyncConnection[Any], workflow_id: UUID) -> None:
    """Wake no worker."""
    del connection, workflow_id


async def _follow(
    settings: Settings, place: Workplace, driver: Driver, asked: Asked, known: Taken, to: Console | None
) -> Exit:
    timeline = Timeline(driver.parts.pool, known.workflow_id, to)
    _head(to, place, asked, known)
    again = isinstance(asked, Submission) and not known.created
    follower = Follower(timeline, None if again else lambda: drive(driver.parts, known.workflow_id))
    position = await timeline.show_while(follower.to_rest())
    record = await record_of(driver.parts.pool, known.workflow_id)
    if to is None:
        write_json(dump(record))
    else:
        ending.show(to, record, settings, place.maildir)
    return ending.code(position, settings, known.workflow_id)


def _head(to: Console | None, place: Workplace, asked: Asked, known: Taken) -> None:
    again = isinstance(asked, Submission) and not known.created
    if to is None:
        if again:
            say(f"already known: workflow {known.workflow_id}; nothing is called")
        return
    pid = "on another machine" if place.tool_server_pid is None else f"pid {place.tool_server_pid}"
    to.print(f"workflow {known.workflow_id}", style="bold")
    to.print(f"host pid {os.getpid()} · tool server {pid} at {plain(place.links.server_url)}", style="dim")
    if again:
        to.print("This case is already known: nothing is called, this is what its record says.", style="yellow")
