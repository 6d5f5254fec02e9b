"""One embedded PostgreSQL per test process: real, with passwords, without fsync; gone when the process is.

    dsn = create_database()                 # an empty database, superuser's DSN
    dsn = create_database(template="name")  # a copy of one that nobody is connected to
    drop_database(dsn)
    kept(dsn).execute("DELETE …")           # one connection for all tests; a new one has to read every catalog first

Each pytest-xdist worker has its own, so that roles and their passwords never meet. What a killed run
left behind is stopped and removed by the next one.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import tempfile
import uuid
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from host.stack import postgres
from host.stack.home import open_home
from host.stack.locks import Hold
from host.stack.place import remembered_place, remove_place
from host.stack.serving import ADMIN

PREFIX = f"kessai-test-{os.geteuid()}-"
HOLD = "holder.lock"
KEPT = "the tests' own"  # the application's name of a connection that is no part of what is tested
T = TypeVar("T")


@dataclass(frozen=True)
class TestCluster:
    """`dsn` is the superuser's, of the database `postgres`."""

    __test__ = False
    dsn: str
    data: Path
    directory: Path
    hold: Hold


_running: dict[int, TestCluster] = {}  # by process: a forked child has no right to its parent's
_kept: dict[tuple[int, str], psycopg.Connection[Any]] = {}


def cluster() -> str:
    """The superuser's DSN of this process's cluster, which the first call starts."""
    running = _running.get(os.getpid())
    if running is None:
        _sweep()
        running = _start()
        _running[os.getpid()] = running
        atexit.register(_end, os.getpid())
    return running.dsn


def data_directory() -> Path:
    """Of the cluster that `cluster` started."""
    cluster()
    return _running[os.getpid()].data


def server_log() -> Path:
    """What the cluster's server writes of its work."""
    cluster()
    return open_home(_running[os.getpid()].directory / "home").logs / "postgres.log"


def create_database(template: str | None = None, owner: str | None = None) -> str:
    """A new database's DSN, as superuser. Closed to PUBLIC, as the product's own databases are.

    Copied through the log: copying files would wait for two checkpoints, which take long while others write.
    """
    name = f"t_{uuid.uuid4().hex}"
    if template is not None:
        _leave(template)
    source = sql.Identifier("template0" if template is None else template)
    with psycopg.connect(cluster(), autocommit=True) as admin:
        admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY wal_log OWNER {}").format(
                sql.Identifier(name), source, sql.Identifier(ADMIN if owner is None else owner)
            )
        )
        admin.execute(sql.SQL("REVOKE CONNECT, TEMPORARY ON DATABASE {} FROM PUBLIC").format(sql.Identifier(name)))
    return dsn_of(name)


def drop_database(dsn: str) -> None:
    """Whoever is still connected is disconnected."""
    _leave(database_name(dsn))
    name = sql.Identifier(database_name(dsn))
    with psycopg.connect(cluster(), autocommit=True) as admin:
        admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))


def kept(dsn: str) -> psycopg.Connection[Any]:
    """This process's own connection to a database, as superuser; each statement commits. Another where it was ended."""
    name = database_name(dsn)
    found = _kept.get((os.getpid(), name))
    if found is not None:
        with suppress(psycopg.OperationalError):
            found.execute("SELECT 1")
            return found
    made = psycopg.connect(dsn_of(name), autocommit=True, application_name=KEPT)
    _kept[os.getpid(), name] = made
    return made


def _leave(name: str) -> None:
    found = _kept.pop((os.getpid(), name), None)
    if found is not None:
        found.close()


def database_name(dsn: str) -> str:
    """The `dbname` of a DSN."""
    return str(conninfo_to_dict(dsn)["dbname"])


def dsn_of(database: str, *, user: str | None = None, password: str | None = None) -> str:
    """The same server, another database; another role where one is named."""
    parts = conninfo_to_dict(cluster())
    parts["dbname"] = database
    if user is not None:
        parts |= {"user": user, "password": password}
    return make_conninfo(**parts)


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Also from within a running loop: a test's own may be waiting for the database that it asks for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)  # the usual case, and the only one at exit, where no thread starts
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _start() -> TestCluster:
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    hold = Hold(directory / "holder.new")
    hold.exclusive()
    (directory / "holder.new").rename(directory / HOLD)  # it is never seen without its lock
    directory.chmod(0o711)  # as root, the server's own user has to pass
    home = open_home(directory / "home")
    made = postgres.cluster_of(home, postgres.PostgresChoice(bin=None, os_user=None), durable=False)
    server = at_once(postgres.start(made))
    password = made.admin_password()
    dsn = server.conninfo("postgres", ADMIN, password=password)
    with psycopg.connect(dsn, autocommit=True) as admin:
        # thousands of connections, and no password that anybody would guess at
        admin.execute("ALTER SYSTEM SET scram_iterations = 1")
        admin.execute("SET scram_iterations = 1")
        admin.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(ADMIN), sql.Literal(password)))
        admin.execute("SELECT pg_reload_conf()")
    return TestCluster(dsn, made.data, directory, hold)


def _end(owner: int) -> None:
    running = _running.pop(os.getpid(), None)
    if running is not None and owner == os.getpid():
        for process, name in list(_kept):
            if process == owner:
                _leave(name)
        _remove(running.directory)
        running.hold.close()


def _sweep() -> None:
    """A run that was killed holds its lock no longer."""
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(FileNotFoundError):  # its own process, or another sweeper, is removing it
            if (directory / HOLD).exists():
                _remove_if_free(directory)


def _remove_if_free(directory: Path) -> None:
    hold = Hold(directory / HOLD)
    if hold.exclusive():
        _remove(directory)
    hold.close()


def _remove(directory: Path) -> None:
    home = open_home(directory / "home")
    place = remembered_place(home)
    if place is not None:
        at_once(postgres.stop_data(place / "data"))
        remove_place(home, place)
    shutil.rmtree(directory, ignore_errors=True)
