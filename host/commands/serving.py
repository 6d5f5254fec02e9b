"""What `worker` and `migrate` do."""

from __future__ import annotations

import asyncio

from host.commands.output import say, write_json
from host.commands.place import choice, working
from host.settings import Settings, SettingsError, home_root
from host.stack.stack import temporary_database
from host.store.migrate import migrate as bring_up
from host.workflows.catalogue import WORKFLOWS


async def worker(settings: Settings) -> None:
    """Work until a signal, then drain."""
    async with working(settings) as place:
        from host.engine.worker import work
        from host.wiring import runtime

        async with runtime(settings, place.links) as opened:
            say(f"ready: {settings.concurrency} at a time, tools at {place.links.server_url}")
            driver = opened.driver
            await work(driver.parts, opened.queue, opened.wake, driver.listing.refresh, settings.concurrency)
            say("drained")


async def migrate(settings: Settings, *, as_json: bool) -> None:
    """Apply what is missing."""
    if settings.migrate_dsn is not None:
        owner = settings.migrate_dsn.get_secret_value()
        applied = await asyncio.to_thread(bring_up, owner, WORKFLOWS, settings.role_passwords)
    elif settings.dsn is not None:
        raise SettingsError("KESSAI_MIGRATE_DSN is missing: the owner's connection, not that of KESSAI_DSN")
    else:
        async with temporary_database(home_root(settings), choice(settings)):
            applied = ()
    if as_json:
        write_json({"applied": list(applied)})
        return
    for name in applied:
        say(f"applied {name}")
    say("the host's database has this program's schema")
