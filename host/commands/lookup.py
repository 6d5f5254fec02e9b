"""What the reading commands share: find a workflow by any of its names, and read its record."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from host.commands import sheets
from host.commands.exits import CommandError, Exit
from host.commands.output import error_console
from host.domain.workflow import Workflow
from host.record import assemble
from host.store import record as store
from host.store.pool import Pool
from host.workflows.catalogue import BY_RELEASE
from shared_contracts.digest import NotCanonicalError, storable_text
from shared_contracts.printed import plain
from shared_contracts.record import Record

MATCHES_SHOWN = 20
NAMES = "a workflow, request, step, call, return or message"


async def found_id(pool: Pool, name: str) -> UUID:
    """Find the one workflow that a name belongs to; raises CommandError, after a table where there are several."""
    try:
        storable_text(name)
    except NotCanonicalError as error:
        mend = "Write it as UTF-8; see kessai list."
        raise CommandError(Exit.BAD_INPUT, "the name is no text that can be kept", mend) from error
    async with pool.connection() as connection:
        found = await store.find(connection, name, MATCHES_SHOWN + 1)
        several = [] if len(found) < 2 else await store.matches(connection, name, found[:MATCHES_SHOWN])
    if not found:
        raise CommandError(
            Exit.BAD_INPUT, f"nothing is known of {plain(name)!r}", f"Give the id of {NAMES}; see kessai list."
        )
    if len(found) > 1:
        sheets.matches(error_console(), several, more=len(found) > MATCHES_SHOWN)
        raise CommandError(
            Exit.BAD_INPUT,
            f"{plain(name)!r} belongs to several workflows",
            "A call's id is the planner's and may come in every workflow; give the step_id or the workflow's id.",
        )
    return found[0]


async def rows_of(pool: Pool, workflow_id: UUID) -> dict[str, Any]:
    """Read everything of a workflow; raises CommandError."""
    async with pool.connection() as connection:
        row = await store.read(connection, workflow_id)
    if row is None:
        raise CommandError(Exit.BAD_INPUT, f"there is no workflow {workflow_id}")
    return row


def workflow_of(row: dict[str, Any]) -> Workflow:
    """Give the release that the workflow runs under; raises CommandError."""
    w = row["workflow"]
    workflow = BY_RELEASE.get((w["kind"], w["release"]))
    if workflow is None:
        mend = "Use a program that carries it."
        raise CommandError(
            Exit.NOT_READY, f"the workflow is of release {w['release']}, which is not carried here", mend
        )
    return workflow


def recorded(row: dict[str, Any]) -> Record:
    """Assemble the record under the release that the workflow runs under; raises CommandError."""
    return assemble(row, workflow_of(row))


async def record_of(pool: Pool, workflow_id: UUID) -> Record:
    """Read a record."""
    return recorded(await rows_of(pool, workflow_id))
