"""`backup` and `restore`, of this machine's own stack alone: another database has its own operator and tools.

Invariant: what was restored is stopped for everything, in the operator's name, before it can be used.
"""

from __future__ import annotations

from pathlib import Path

from psycopg import AsyncConnection

from host.commands.exits import CommandError, Exit
from host.commands.output import command, say, write_json
from host.commands.workplace import choice
from host.domain.acting import By
from host.settings import Settings, elsewhere, home_root
from host.stack import backup as making
from host.stack import restore as remaking
from host.stack.errors import StackError, StackProblem
from host.stack.manifest import Backup, dump_file
from host.stack.roles import Side
from host.store import seals, stops
from host.views import BackupView, DumpView, RestoreView
from shared_contracts.base import dump
from shared_contracts.operator import operator

ELSEWHERE = """Back them up with that server's own pg_dump, host first, then tools, and restore with its pg_restore.
Before anything works on what was restored: kessai stop. RUNBOOK.md, “Back up and restore”, has the steps.
If you mean this machine's home, unset them first."""
TYPED = (StackProblem.BACKUP_PLACE_UNUSABLE, StackProblem.BACKUP_UNUSABLE, StackProblem.HOME_TAKEN)


async def backup(settings: Settings, directory: Path, *, as_json: bool) -> None:
    """Write one, and say what is in it."""
    _refuse_elsewhere(settings, "backup")
    try:
        made = await making.back_up(home_root(settings), choice(settings), directory)
    except StackError as error:
        raise _told(error) from error
    if as_json:
        write_json(dump(_view(made)))
        return
    say(f"backed up to {made.directory}: {_sizes(made)}")
    say("It has what customers said and ordered in it, and no key, no password and no mail of the home.")


async def restore(settings: Settings, directory: Path, *, as_json: bool) -> None:
    """Make a home of one, and say what it wants before it works again."""
    _refuse_elsewhere(settings, "restore")
    root = home_root(settings)
    try:
        found = await remaking.restore(root, choice(settings), directory, _seal)
    except StackError as error:
        raise _told(error) from error
    if as_json:
        view = RestoreView(
            home=str(root), directory=str(found.directory), made_at=found.manifest.made_at, stopped=stops.EVERYTHING
        )
        write_json(dump(view))
        return
    say(f"restored into {root} what was backed up at {found.manifest.made_at.isoformat()}; nothing of it runs")
    say("Everything is stopped: no case is taken in, no tool is called, until every effect was looked up and it is")
    say(f"let go on: {command(settings, 'resume', '--as', 'NAME', '--reason', 'TEXT')}")
    say("To read works now: list, show, explain. Of what came after the backup nothing is known: RUNBOOK.md.")


async def _seal(dsn: str, found: Backup) -> None:
    reason = f"restored from the backup of {found.manifest.made_at.isoformat()}; its effects are not reconciled"
    async with await AsyncConnection.connect(dsn) as connection:
        await seals.note_restored(connection)
        await stops.engage(connection, stops.EVERYTHING, By(operator(), operator(), None), reason, "restore")
        # what was restored is the backup's own, its functions too: that all is stopped is looked at, not believed
        cursor = await connection.execute("SELECT scope FROM stop WHERE engaged")
        engaged = {row[0] async for row in cursor}
    if not {*stops.EVERYTHING, stops.PARALLEL} <= engaged:
        mend = "Do not use this home. Look at who could write the backup; then restore another one."
        raise CommandError(Exit.NOT_READY, "what was restored does not stop when it is told to", mend)


def _refuse_elsewhere(settings: Settings, command: str) -> None:
    names = elsewhere(settings)
    if names is None and settings.migrate_dsn is not None:
        names = "KESSAI_MIGRATE_DSN"
    if names is not None:
        what = f"{command} is for this machine's own stack, and {names} name databases elsewhere"
        raise CommandError(Exit.BAD_INPUT, what, ELSEWHERE)


def _told(error: StackError) -> Exception:
    """As bad input where what was typed is the mistake; everything else is as it is."""
    return CommandError(Exit.BAD_INPUT, error.what, error.mend) if error.problem in TYPED else error


def _view(found: Backup) -> BackupView:
    manifest = found.manifest
    return BackupView(
        directory=str(found.directory), made_at=manifest.made_at, postgresql=manifest.postgresql,
        dumps=tuple(
            DumpView(
                file=dump_file(found.directory, side).name, bytes=of.bytes, sha256=of.sha256,
                schema_versions=of.schema_versions,
            )
            for side in Side
            for of in (manifest.of(side),)
        ),
    )  # fmt: skip


def _sizes(found: Backup) -> str:
    return ", ".join(f"{side}.dump {found.manifest.of(side).bytes:,} bytes" for side in Side)
