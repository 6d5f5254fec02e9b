"""A backup becomes a home of its own, which starts stopped.

    begun ──► cluster, roles, databases as in any new home ──► dumps ──► migrations ──► stop engaged ──► finished

Invariant: whoever works in a restored home finds the stop engaged. The home's marker says that it is unfinished from
the moment it is there until the stop has been committed and the database is at rest; killed in between it stays so, and
no command works in it. A restore that fails takes away what it made.

The ledger holds the numbers of transactions, and trusts that no other transaction has the same. A new cluster counts
from the beginning, so it gets an epoch above that of the one that was backed up.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from host.stack import assembly, postgres
from host.stack.assembly import StackChoice, StackParts
from host.stack.binaries import RESETWAL, find_program
from host.stack.build import installed_build
from host.stack.errors import StackError, StackProblem
from host.stack.home import Home, begin_home, finish_home, taken
from host.stack.initialise import PLAIN_ENVIRONMENT, initialise
from host.stack.keys import ensure_keys
from host.stack.locks import locked
from host.stack.manifest import Backup, dump_file, read_backup
from host.stack.mode import Mode, stack_lock, write_mode
from host.stack.postgres import Cluster, cluster_of
from host.stack.processes import run_to_end
from host.stack.provision import provision
from host.stack.removal import empty_home
from host.stack.roles import Side, write_passwords
from host.stack.signals import ended_by_signals
from host.stack.stack import MIGRATION_SECONDS_MAX, stop_all

FILL_SECONDS_MAX = 6 * 3600.0
# Engages the stop of everything in the host's database, whose owner's connection string it is given.
Seal = Callable[[str, Backup], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What was found good before anything was made."""

    backup: Backup
    program: Path
    choice: StackChoice


async def restore(root: Path, choice: StackChoice, directory: Path, seal: Seal) -> Backup:
    """Make the home; a `StackError` says why there is none, and then there is nothing of it."""
    found = await asyncio.to_thread(read_backup, directory)
    programs = [
        find_program(name, choice.postgres.bin, found.manifest.postgresql_major) for name in ("pg_restore", RESETWAL)
    ]
    plan = _Plan(found, programs[0], choice)
    hindered = taken(root)
    if hindered is not None:
        raise hindered
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
        except BaseException:  # whatever it is, it goes on from here; half a system does not stay
            if ending is not None:
                ending.leave()
            await empty_home(root)
            raise
    return found


async def _fill(home: Home, plan: _Plan, seal: Seal) -> None:
    write_mode(home, Mode.TEMPORARY)
    write_passwords(home)
    keys = ensure_keys(home)
    cluster = cluster_of(home, plan.choice.postgres)
    await initialise(cluster.binaries, cluster.place, cluster.admin_password(), cluster.user, cluster.log)
    await asyncio.to_thread(_begin_above, cluster, plan.backup.manifest.epoch)
    server = await postgres.start(cluster)
    await provision(cluster, server)
    parts = StackParts(home, server, keys, installed_build(), plan.choice)
    for side in Side:
        await run_to_end(home, assembly.roles(parts, side), MIGRATION_SECONDS_MAX)
        fill = assembly.fill(parts, side, plan.program, dump_file(plan.backup.directory.absolute(), side))
        await run_to_end(home, fill, FILL_SECONDS_MAX)
    for program in (assembly.migrate_host, assembly.migrate_tools, assembly.note_restored):
        await run_to_end(home, program(parts), MIGRATION_SECONDS_MAX)
    await seal(assembly.host_owner_dsn(parts), plan.backup)


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
