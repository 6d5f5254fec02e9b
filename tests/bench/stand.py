"""A whole stack of the bench's own: an empty home, PostgreSQL that is durable, a real tool server, a shop to buy from.

Invariant: nothing is measured before it was seen that every role's commits reach the disk.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from host.settings import Settings
from host.stack import assembly, postgres, processes
from host.stack.assembly import StackChoice
from host.stack.binaries import wheel_directory
from host.stack.build import installed_build
from host.stack.home import Home, open_home
from host.stack.keys import ensure_keys
from host.stack.links import Links
from host.stack.postgres import Cluster, PostgresChoice, Server
from host.stack.removal import empty_home
from host.stack.roles import Side, dsn
from host.stack.serving import ADMIN
from host.stack.stack import Endpoints, down, temporary_stack, up
from tests.bench.shop import write_seed

UNLIMITED = 100_000  # calls a second; the rate that one may call with is no subject of a bench
CHOICE = StackChoice(
    postgres=PostgresChoice(bin=None, os_user=None),
    tool_server_port=None,
    tool_server_settings={f"KESSAI_TOOLS_RATE_{whose}": str(UNLIMITED) for whose in ("PRINCIPAL", "TENANT")},
    worker_settings={f"KESSAI_RATE_{whose}": str(UNLIMITED) for whose in ("PRINCIPAL", "TENANT")},
)
DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
LOAD_SECONDS_MAX = 120.0
_IN_MEMORY = {"tmpfs", "ramfs"}


class NotDurableError(Exception):
    """Commits would not survive a power cut, so that no figure would mean anything."""


@dataclass(frozen=True)
class Stand:
    """What measures work with. `numbers` gives the next order that nobody has returned yet."""

    home: Home
    cluster: Cluster
    server: Server
    links: Links
    numbers: Iterator[int]
    server_pid: int

    def admin(self, database: str = "postgres") -> str:
        """Give the superuser's connection string; it stays in this process."""
        return self.server.conninfo(database, ADMIN, password=self.cluster.admin_password())

    def role(self, side: Side, role: str) -> str:
        """Give a role's own connection string."""
        return dsn(self.home, self.server, side, role)

    @property
    def pgbench(self) -> Path:
        """The wheel's own."""
        return wheel_directory() / "pgbench"


@asynccontextmanager
async def stand(orders: int) -> AsyncIterator[Stand]:
    """Bring a stack up without a worker; everything is gone afterwards."""
    with directory() as within:
        root = within / "home"
        try:
            async with temporary_stack(root, CHOICE) as ends:
                yield await _furnished(root, within, ends, orders)
        finally:
            await empty_home(root)


@asynccontextmanager
async def stand_with_worker(orders: int, concurrency: int) -> AsyncIterator[Stand]:
    """Bring a stack up with a worker of its own; everything is gone afterwards."""
    with directory() as within:
        root = within / "home"
        choice = replace(CHOICE, worker_settings={**CHOICE.worker_settings, "KESSAI_CONCURRENCY": str(concurrency)})
        try:
            await up(root, choice)
            async with temporary_stack(root, choice) as ends:
                yield await _furnished(root, within, ends, orders)
        finally:
            await down(root)
            await empty_home(root)


@contextmanager
def directory() -> Iterator[Path]:
    """A new directory that PostgreSQL's own user can pass through."""
    path = Path(tempfile.mkdtemp(prefix="kessai-bench-"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path)


async def _furnished(root: Path, within: Path, ends: Endpoints, orders: int) -> Stand:
    home = open_home(root)
    cluster = postgres.cluster_of(home, CHOICE.postgres)
    server = await postgres.start(cluster)
    made = Stand(home, cluster, server, ends.links, iter(count()), ends.tool_server_pid)
    refuse_unless_durable(made)
    seed = within / "shop.json"
    write_seed(seed, orders)
    build = replace(installed_build(), demo_files=(seed,))
    parts = assembly.StackParts(home, server, ensure_keys(home), build, CHOICE)
    await processes.run_to_end(home, assembly.load_demo(parts), LOAD_SECONDS_MAX)
    with psycopg.connect(made.admin(Side.TOOLS), autocommit=True) as admin:
        admin.execute("ANALYZE")
    return made


def refuse_unless_durable(made: Stand) -> None:
    """Ask as the roles that commit: a role's or a database's own setting would win over the server's."""
    found = _filesystem(made.cluster.data)
    if found in _IN_MEMORY:
        raise NotDurableError(f"the data lies on {found}, which no power cut survives; set TMPDIR to a disk")
    asked = [(Side.HOST, "host_rt"), *((Side.TOOLS, f"tools_{family}") for family in ("returns", "notices"))]
    for side, role in asked:
        with psycopg.connect(made.role(side, role)) as connection:
            for name in DURABLE:
                row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
                if row is None or row[0] != "on":
                    raise NotDurableError(f"{name} is off for {role}")


def wal_syncs(made: Stand) -> int:
    """Count how often the log was brought to the disk, by whatever name this PostgreSQL tells it."""
    with psycopg.connect(made.admin()) as admin:
        query = "SELECT coalesce(sum(fsyncs), 0)::bigint FROM pg_stat_io WHERE object = 'wal'"
        if admin.info.server_version < 180_000:
            query = "SELECT wal_sync FROM pg_stat_wal"
        row = admin.execute(query).fetchone()
    return 0 if row is None else int(row[0])


def settings(concurrency: int) -> Settings:
    """Give the host's settings; all others are the defaults."""
    return Settings(concurrency=concurrency, rate_principal=UNLIMITED, rate_tenant=UNLIMITED)


def machine(made: Stand) -> dict[str, Any]:
    """Describe what was measured on."""
    with psycopg.connect(made.admin()) as admin:
        version = admin.info.server_version
    return {
        "processors": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "postgresql": f"{version // 10_000}.{version % 10_000}",
        "filesystem": _filesystem(made.cluster.data),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def _filesystem(path: Path) -> str:
    """Give the type of the file system that a path lies on."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, found, *_ = line.split()
        if path.resolve().is_relative_to(place) and len(place) >= len(best):
            best, kind = place, found
    return kind
