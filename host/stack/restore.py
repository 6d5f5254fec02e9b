"""A backup becomes a home of its own, which starts stopped.

    begun ──► copies of the dumps, checked ──► cluster, roles, databases as in any new home ──► what they hold is noted
          ──► databases anew, dumps, migrations ──► they hold the same ──► stop engaged ──► finished

Invariant: whoever works in a restored home finds the stop engaged. The home's marker says that it is unfinished from
the moment it is there until the stop has been committed and the database is at rest; killed in between it stays so, and
no command works in it. A restore that fails takes away what it made.

The ledger holds the numbers of transactions, and trusts that no other transaction has the same. A new cluster counts
from the beginning, so it gets an epoch above that of the one that was backed up.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from host.stack import assembly, postgres
from host.stack.assembly import StackChoice, StackParts
from host.stack.binaries import RESETWAL, find_program
from host.stack.bring_up import MIGRATION_SECONDS_MAX
from host.stack.build import installed_build
from host.stack.catalogue import catalogue, differences
from host.stack.errors import LoggedError, StackError, StackProblem
from host.stack.home import Home, begin_home, finish_home, taken
from host.stack.initialise import PLAIN_ENVIRONMENT, initialise
from host.stack.keys import ensure_keys
from host.stack.locks import locked
from host.stack.manifest import Backup, copy_dump, dump_file, read_backup
from host.stack.mode import Mode, stack_lock, write_mode
from host.stack.postgres import Cluster, cluster_of
from host.stack.processes import run_to_end
from host.stack.provision import provision, provision_to_fill
from host.stack.removal import empty_home
from host.stack.roles import OWNER, Side, write_passwords
from host.stack.signals import ended_by_signals
from host.stack.stack import stop_all

FILL_SECONDS_MAX = 6 * 3600.0
_DEFAULT_RIGHTS = re.compile(rb"\d+; \d+ \d+ DEFAULT ACL .* (\S+)\n?\Z")
# Engages the stop of everything in the host's database, whose owner's connection string it is given.
Seal = Callable[[str, Backup], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What was found good before anything was made."""

    backup: Backup
    pg_restore: Path
    pg_dump: Path
    choice: StackChoice


async def restore(root: Path, choice: StackChoice, directory: Path, seal: Seal) -> Backup:
    """Make the home; a `StackError` says why there is none, and then there is nothing of it."""
    found = await asyncio.to_thread(read_backup, directory)
    pg_restore, pg_dump, _ = (
        find_program(name, choice.postgres.bin, found.manifest.postgresql_major)
        for name in ("pg_restore", "pg_dump", RESETWAL)
    )
    plan = _Plan(found, pg_restore, pg_dump, choice)
    hindered = taken(root)
    if hindered is not None:
        raise hindered
    made_root = not os.path.lexists(root)  # noqa: ASYNC240 - one look
    with ended_by_signals() as ending:
        home = begin_home(root)
        try:
            async with locked(stack_lock(home)):
                try:
                    await _fill(home, plan, seal)
                finally:
                    if ending is not None:
                        ending.leave()  # to stop what was started is not cut short
                    await stop_all(home)
                    write_mode(home, Mode.DOWN)
                finish_home(home)
        except BaseException as error:  # whatever it is, it goes on from here; half a system does not stay
            if ending is not None:
                ending.leave()
            await empty_home(root)
            if made_root:
                with suppress(OSError):  # somebody has put something into it
                    home.root.rmdir()
            if isinstance(error, LoggedError):
                raise error.without_log() from error
            raise
    return found


async def _fill(home: Home, plan: _Plan, seal: Seal) -> None:
    write_mode(home, Mode.TEMPORARY)
    dumps = {side: await _copied(home, plan.backup, side) for side in Side}
    write_passwords(home)
    keys = ensure_keys(home)
    cluster = cluster_of(home, plan.choice.postgres)
    await initialise(cluster.binaries, cluster.place, cluster.admin_password(), cluster.user, cluster.log)
    await asyncio.to_thread(_begin_above, cluster, plan.backup.manifest.epoch)
    server = await postgres.start(cluster)
    await provision(cluster, server)
    parts = StackParts(home, server, keys, installed_build(), plan.choice)
    await _migrate(parts)
    ours = await catalogue(parts, cluster.admin_password(), plan.pg_dump)
    await provision_to_fill(cluster, server)
    for side, dump in dumps.items():
        listed, filled = (home.run / f"{side}.{name}" for name in ("listed", "filled"))
        await run_to_end(home, assembly.contents(parts, side, plan.pg_restore, dump, listed), FILL_SECONDS_MAX)
        await asyncio.to_thread(_choose, listed, filled, OWNER[side])
        await run_to_end(home, assembly.fill(parts, side, plan.pg_restore, dump, filled), FILL_SECONDS_MAX)
        for file in (dump, listed, filled):
            file.unlink()
    await provision(cluster, server)
    await _migrate(parts)
    theirs = differences(ours, await catalogue(parts, cluster.admin_password(), plan.pg_dump))
    if theirs:
        raise _not_ours(plan.backup.directory, theirs)
    await run_to_end(home, assembly.note_restored(parts), MIGRATION_SECONDS_MAX)
    await seal(assembly.host_owner_dsn(parts), plan.backup)


def _choose(listed: Path, filled: Path, owner: str) -> None:
    with listed.open("rb") as lines, filled.open("wb") as chosen:
        chosen.writelines(line for line in lines if not of_others(line, owner))


def of_others(line: bytes, owner: str) -> bool:
    """Tell of a line of a dump's list whether it is the rights that a role gives on what it will make.

    Any role may say that of itself, and no owner of another: no backup could be filled in.
    """
    found = _DEFAULT_RIGHTS.match(line)
    return found is not None and found[1] != owner.encode()


async def _copied(home: Home, backup: Backup, side: Side) -> Path:
    """In a directory that nobody else may enter; it takes room for as long as it is not restored."""
    to = dump_file(home.run, side)
    try:
        await copy_dump(backup, side, to)
    except OSError as error:
        raise StackError(
            StackProblem.HOME_NOT_WRITABLE,
            f"{dump_file(backup.directory, side)} cannot be copied into the home {home.root}: {error.strerror}.",
            "Nothing was made. Set KESSAI_HOME to a directory of your own on a disk with room.",
        ) from error
    return to


def _not_ours(directory: Path, differences: tuple[str, ...]) -> StackError:
    return StackError(
        StackProblem.BACKUP_UNUSABLE,
        f"{directory} cannot be restored from: beside rows it holds what this release does not make.",
        "\n".join(differences)
        + "\nNothing was made. Find out who changed the backup, or added to the database that it is of; then take a "
        "backup from before, or one that was made after what was added is removed.",
    )


async def _migrate(parts: StackParts) -> None:
    for program in (assembly.migrate_host, assembly.migrate_tools):
        await run_to_end(parts.home, program(parts), MIGRATION_SECONDS_MAX)


def _begin_above(cluster: Cluster, epoch: int) -> None:
    """Of a cluster that initdb has made and nobody started; PostgreSQL's own program writes its control file."""
    argv = [str(cluster.binaries.directory / RESETWAL), f"--epoch={epoch + 1}", "-D", str(cluster.data)]
    drop = {} if cluster.user is None else cluster.user.drop()
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, cwd="/", env=PLAIN_ENVIRONMENT, umask=0o077, **drop
    )
    if done.returncode != 0:
        raise StackError(
            StackProblem.POSTGRES_FAILED,
            f"{RESETWAL} of {cluster.data} failed with {done.returncode}: {done.stderr.strip()[-600:]}",
            "Mend what it says, then restore again; nothing was kept.",
        )
