"""Which database and tool server a command works with: those of its settings, or this machine's own stack."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from host.commands.exits import CommandError, Exit
from host.database import database
from host.settings import Settings, for_tool_server, for_worker, home_root, links, not_owners_alone
from host.stack.assembly import StackChoice, StackParts, host_dsn, host_owner_dsn, sealing_of
from host.stack.links import Links
from host.stack.postgres import PostgresChoice
from host.stack.removal import empty_home
from host.stack.stack import temporary_parts, temporary_stack
from host.store.pool import Pool

POOL_SIZE_READING = 2


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where the work is done. What is None is not ours to know: it belongs to another machine."""

    links: Links
    maildir: Path | None
    tool_server_pid: int | None


@dataclass(frozen=True, slots=True)
class OwnersPlace:
    """The owner's connection; None: it is not ours. The stack's parts; None: the tool server is another machine's."""

    dsn: str | None
    parts: StackParts | None


def choice(settings: Settings) -> StackChoice:
    """Gather what a person decided about this machine's stack."""
    return StackChoice(
        postgres=PostgresChoice(settings.postgres_bin, settings.postgres_os_user),
        tool_server_port=settings.tool_server_port,
        tool_server_settings=for_tool_server(),
        worker_settings=for_worker(settings),
    )


@asynccontextmanager
async def working(settings: Settings) -> AsyncIterator[Workplace]:
    """Give database and tool server, brought up where nobody else keeps them up."""
    found = links(settings)
    if found is not None:
        yield Workplace(found, None, None)
        return
    # what drives is imported while the other program starts: each takes a second of its own core
    ahead = asyncio.create_task(asyncio.to_thread(importlib.import_module, "host.wiring"))
    async with temporary_stack(home_root(settings), choice(settings)) as ends:
        await ahead
        yield Workplace(ends.links, ends.maildir, ends.tool_server_pid)


async def emptied(settings: Settings) -> None:
    """Empty this machine's home, and only that; raises CommandError where the work is done elsewhere, StackError."""
    if links(settings) is not None:
        mend = "It empties this machine's own stack; leave it out, or unset KESSAI_DSN."
        raise CommandError(Exit.BAD_INPUT, "--fresh has nothing to empty", mend)
    await empty_home(home_root(settings), only_unused=True)


@asynccontextmanager
async def engines_dsn(settings: Settings) -> AsyncIterator[str]:
    """Give the engine's connection to the host's database, which is started where nobody else keeps it up."""
    if settings.dsn is not None:
        yield settings.dsn.get_secret_value()
        return
    not_owners_alone(settings)
    async with temporary_parts(home_root(settings), choice(settings)) as parts:
        yield host_dsn(parts)
        await _seal(parts)


@asynccontextmanager
async def reading(settings: Settings) -> AsyncIterator[Pool]:
    """Give the host's database alone."""
    async with engines_dsn(settings) as dsn, database(dsn, POOL_SIZE_READING) as pool:
        yield pool


@asynccontextmanager
async def owning(settings: Settings) -> AsyncIterator[OwnersPlace]:
    """Give what an operator's acts need: the owner's connection and, on one machine, the tool server's programs."""
    if settings.migrate_dsn is not None or settings.dsn is not None:
        owner = settings.migrate_dsn
        yield OwnersPlace(None if owner is None else owner.get_secret_value(), None)
        return
    async with temporary_parts(home_root(settings), choice(settings)) as parts:
        yield OwnersPlace(host_owner_dsn(parts), parts)
        await _seal(parts)


async def _seal(parts: StackParts) -> None:
    """Seal what the command has written, where no worker may be up that would; what is left the next process seals."""
    from host.engine.seal import seal_all
    from host.sealing import nobody, sealer_of

    with suppress(psycopg.Error):
        await seal_all(sealer_of(sealing_of(parts), nobody))
