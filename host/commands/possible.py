"""What is possible with a case where an act was refused or somebody looks: the handover sheet's own table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from host.commands.exits import CommandError, Exit
from host.commands.output import command
from host.engine.approve import ApprovalRefusedError
from host.engine.reapply import NotPossibleError
from host.handover.sheet import ways_of
from host.settings import Settings
from host.store import handover as store
from host.store.pool import Pool
from host.workflows.catalogue import BY_RELEASE
from shared_contracts.handover import Possible


@asynccontextmanager
async def or_what_is_possible(settings: Settings, pool: Pool, workflow_id: UUID) -> AsyncIterator[None]:
    """Turn the refusal of an act into one that says what the case can take instead; raises CommandError."""
    try:
        yield
    except (ApprovalRefusedError, NotPossibleError) as error:
        mend = "\n".join(("Nothing was changed.", *await ways(settings, pool, workflow_id)))
        raise CommandError(Exit.BAD_INPUT, f"not taken: {error}", mend) from error


async def ways(settings: Settings, pool: Pool, workflow_id: UUID) -> list[str]:
    """List them; none of a release that is not carried here."""
    async with pool.connection() as connection:
        found = await store.read(connection, workflow_id)
    if found is None:
        return []
    row, around = found
    workflow = BY_RELEASE.get((row["workflow"]["kind"], row["workflow"]["release"]))
    return [] if workflow is None else spelt(settings, ways_of(row, around, workflow, BY_RELEASE))


def spelt(settings: Settings, ways: tuple[Possible, ...]) -> list[str]:
    """Write the commands that a case can take, one a line."""
    return ["What is possible:", *(command(settings, *one.command.split()[1:]) for one in ways)]
