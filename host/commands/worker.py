"""`worker` and `migrate`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict

from host import pulse
from host.commands.exits import CommandError, Exit
from host.commands.output import say, write_json
from host.commands.workplace import choice, working
from host.database import NO_CONNECTION_STRING
from host.settings import Settings, SettingsError, home_root, lacks, of_auditors
from host.stack.stack import temporary_database
from host.store.migrate import make_roles
from host.store.migrate import migrate as bring_up
from host.workflows.catalogue import WORKFLOWS
from shared_contracts.operator import operator

if TYPE_CHECKING:
    from host.wiring import Driver


async def worker(settings: Settings) -> None:
    """Work until a signal, then drain."""
    if (named := of_auditors(settings)) != []:
        mend = "Give them to kessai reconcile alone: who does the work has no part in auditing it."
        raise CommandError(Exit.BAD_INPUT, f"a worker gets no auditor's connection: {', '.join(named)}", mend)
    async with working(settings) as place:
        from host.commands.log import configure
        from host.engine.worker import work
        from host.wiring import runtime

        configure()
        if place.links.sealing is None:
            structlog.get_logger().warning("record_not_sealed", setting="KESSAI_SEALER_DSN")
        async with runtime(settings, place.links) as opened:
            say(f"ready: {settings.concurrency} at a time, tools at {place.links.server_url}")
            for (kind, _), lacks in opened.driver.parts.unfit.items():
                for one in lacks:
                    say(f"{kind} is in read-and-draft mode: {one.condition}. {' '.join(one.why)}")
            driver, file, news = opened.driver, settings.pulse_file, _News()
            _beat(file, works=True)
            try:
                await work(
                    driver.parts, opened.queue, opened.wake, lambda: _round(driver, file, news), settings.concurrency
                )
            finally:
                _beat(file, works=False)
            say("drained")


class _News:
    """Says what has changed, once: a terminal that repeats itself every few seconds is not read."""

    def __init__(self) -> None:
        self._reason: str | None = None

    def tell(self, reason: str | None, words: str) -> None:
        """Say it where the reason is another one than before; None is that there is none any more."""
        if reason != self._reason:
            say(words)
        self._reason = reason


async def _round(driver: Driver, file: Path | None, news: _News) -> None:
    """Read the tool server's list again; whoever watches is told whether the database answers too."""
    from host.tool_client.readiness import NotReady, Ready

    found = await driver.listing.refresh()
    if isinstance(found, NotReady):
        news.tell(found.reason, f"not ready: {found.what} {found.mend}")
    else:
        news.tell(None, "ready again")
    if file is not None:
        async with driver.parts.pool.connection() as connection:
            await connection.execute("SELECT 1")
        _beat(file, works=isinstance(found, Ready))


def _beat(file: Path | None, *, works: bool) -> None:
    if file is None:
        return
    try:
        pulse.beat(file, works=works)
    except OSError as error:
        what = f"the pulse file {file} cannot be written: {error.strerror}"
        mend = "Set KESSAI_PULSE_FILE to a file in a directory of our own."
        raise CommandError(Exit.NOT_READY, what, mend) from error


async def migrate(settings: Settings, *, roles_only: bool, without_rollout: bool, as_json: bool) -> None:
    """Apply what is missing."""
    waived_by = operator() if without_rollout else None
    if settings.migrate_dsn is not None and roles_only:
        owner = _connection_string(settings.migrate_dsn.get_secret_value())
        await asyncio.to_thread(make_roles, owner, settings.role_passwords)
        say("the host's roles are there; its schema is as it was")
        return
    if settings.migrate_dsn is not None:
        owner = _connection_string(settings.migrate_dsn.get_secret_value())
        applied = await asyncio.to_thread(bring_up, owner, WORKFLOWS, settings.role_passwords, waived_by)
    elif settings.dsn is not None or roles_only:
        raise SettingsError(lacks("MIGRATE_DSN"))
    else:
        async with temporary_database(home_root(settings), choice(settings)):
            applied = ()
    if as_json:
        write_json({"applied": list(applied)})
        return
    for name in applied:
        say(f"applied {name}")
    say("the host's database has this program's schema")


def _connection_string(text: str) -> str:
    """Give it back; libpq's own complaint would quote it, with the password that may be in it."""
    try:
        conninfo_to_dict(text)
    except psycopg.ProgrammingError:
        raise SettingsError(f"KESSAI_MIGRATE_DSN {NO_CONNECTION_STRING}") from None
    return text
