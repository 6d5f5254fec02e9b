"""The life of the embedded PostgreSQL: start, adopt, stop, for a caller that holds the stack's lock.

    nothing ──initdb──► cluster ──start──► serving ──SIGINT──► cluster
                           ▲                  │ kill -9, power cut
                           └──── recovery ◄───┘

It listens on 127.0.0.1 and on a socket that only its own user can reach, and asks everybody for a
password. fsync and synchronous_commit are on.
"""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from psycopg import OperationalError
from psycopg.conninfo import make_conninfo

from host.stack.binaries import Binaries, find_binaries
from host.stack.errors import LoggedError, StackError, StackProblem
from host.stack.files import read_json, rotate, tail, write_json
from host.stack.home import Home
from host.stack.initialise import PLAIN_ENVIRONMENT, initialise, password_in
from host.stack.osuser import OsUser, choose_os_user
from host.stack.pids import Identity, boot, spawn
from host.stack.place import place_of, remembered_place, socket_directory
from host.stack.ports import LOOPBACK, choose_port
from host.stack.postmaster import PidFile, clear_left_behind, read_pid_file, running_postmaster
from host.stack.serving import ADMIN, ForeignServerError, NotServingError, prove, wait_ready

POLL_SECONDS = 0.02
CLAIM_SECONDS_MAX = 30.0  # a postmaster writes its whole pid file before it recovers
DYING_SECONDS = 1.0
STOP_SECONDS_MAX = 60.0  # the last checkpoint of a fast shutdown
PORT_TAKEN = "could not create any TCP/IP sockets"
LEFT_BEHIND = ("pre-existing shared memory block", 'lock file "postmaster.pid" already exists')
ATTEMPTS = 5
SETTINGS = {
    "unix_socket_permissions": "0700",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "off",
    "jit": "off",  # our statements are short; compiling one costs more than running it
    "autovacuum_naptime": "10s",  # a new shop's tables grow fast: plans made for empty ones must not live a minute
}
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
FLEETING = dict.fromkeys(DURABLE, "off")


@dataclass(frozen=True, slots=True)
class PostgresChoice:
    """The two settings: programs of an installed PostgreSQL, and the user to become when we are root."""

    bin: Path | None
    os_user: str | None


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster of one home. `durable` is false in test support alone."""

    home: Home
    place: Path
    binaries: Binaries
    user: OsUser | None
    durable: bool

    @property
    def data(self) -> Path:
        """The directory that initdb made."""
        return self.place / "data"

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.home.logs / "postgres.log"

    @property
    def state(self) -> Path:
        """The port and socket of the last start."""
        return self.home.run / "postgres.json"

    def admin_password(self) -> str:
        """Of the superuser, made at first use."""
        return password_in(self.home.passwords / "owner" / ADMIN)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answered and proved to be this cluster's."""

    process: Identity
    port: int
    socket_directory: Path
    system_identifier: int
    started_here: bool

    def conninfo(self, database: str, user: str, **more: str) -> str:
        """Over the socket; `more` is `passfile`, or `password` for a string that stays in this process."""
        return make_conninfo(host=str(self.socket_directory), port=self.port, dbname=database, user=user, **more)


def cluster_of(home: Home, choice: PostgresChoice, *, durable: bool = True) -> Cluster:
    """Find programs, user and place; nothing is started."""
    user = choose_os_user(choice.os_user)
    place = place_of(home, user)
    return Cluster(home, place, find_binaries(choice.bin, user, place), user, durable)


async def start(cluster: Cluster) -> Server:
    """Adopt the running server, or start one. What it started itself does not outlive its failure."""
    taken: set[int] = set()
    for _ in range(ATTEMPTS):
        found = await find(cluster)
        if found is None:
            found = await _try_start(cluster, taken)
        if found is not None:
            return found
    raise _failed(cluster, f"it failed {ATTEMPTS} times")


async def find(cluster: Cluster) -> Server | None:
    """The running server of this cluster, waited for while it recovers; None where none runs."""
    process = running_postmaster(cluster.data)
    if process is None:
        return None
    claim = await _claim(cluster, process)
    if claim is None or claim.status.startswith("stopping"):
        if await process.gone(STOP_SECONDS_MAX):
            return None
        raise _failed(cluster, f"process {process.pid} neither serves nor ends")
    try:
        return await _serving(cluster, process, Path(claim.socket_directory), claim.port, started_here=False)
    except (NotServingError, OperationalError) as error:
        if await process.gone(DYING_SECONDS):  # it was killed, and we saw it before it was gone
            return None
        raise _failed(cluster, str(error)) from error


async def stop(home: Home) -> bool:
    """Fast shutdown; False where nothing ran. Needs no programs, and no user to become."""
    place = remembered_place(home)
    return False if place is None else await stop_data(place / "data")


async def stop_data(data: Path) -> bool:
    """False where nothing ran there."""
    process = running_postmaster(data)
    if process is None:
        return False
    await _end(process, data)
    return True


async def _try_start(cluster: Cluster, taken: set[int]) -> Server | None:
    """None where it is worth looking again: a lost port, or a server of ours that was starting already."""
    if not (cluster.data / "PG_VERSION").exists():
        await initialise(cluster.binaries, cluster.place, cluster.admin_password(), cluster.user, cluster.log)
    _refuse_other_version(cluster)
    last = read_json(cluster.state)
    last = {} if last is None else last
    await clear_left_behind(cluster.data, last.get("boot"))
    if running_postmaster(cluster.data) is not None:
        return None
    directory = socket_directory(cluster.place, _text(last.get("socket_directory")), cluster.user)
    since = rotate(cluster.log)
    port = choose_port(last.get("port"), taken)
    try:
        return await _launch(cluster, directory, port)
    except (NotServingError, OperationalError) as error:
        said = tail(cluster.log, since=since)
        if PORT_TAKEN in said:
            taken.add(port)
        elif any(line in said for line in LEFT_BEHIND):
            await asyncio.sleep(1)  # backends of a killed postmaster are on their way out
        else:
            raise _failed(cluster, str(error), since) from error
    return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


async def _launch(cluster: Cluster, directory: Path, port: int) -> Server:
    settings = SETTINGS | (DURABLE if cluster.durable else FLEETING)
    argv = [str(cluster.binaries.postgres), "-D", str(cluster.data), "-k", str(directory), "-h", LOOPBACK]
    argv += ["-p", str(port), *(f"--{name.replace('_', '-')}={value}" for name, value in settings.items())]
    drop = {} if cluster.user is None else cluster.user.drop()
    write_json(cluster.state, {"port": port, "socket_directory": str(directory), "boot": boot()})
    process = spawn(argv, log=cluster.log, env=PLAIN_ENVIRONMENT, **drop)
    try:
        return await _serving(cluster, process, directory, port, started_here=True)
    except BaseException:  # an interruption too: it goes on from here, and no server is left behind
        await _end(process, cluster.data)
        raise


async def _serving(cluster: Cluster, process: Identity, directory: Path, port: int, *, started_here: bool) -> Server:
    await wait_ready(process, directory, port)
    try:
        identifier = await prove(cluster.data, directory, port, cluster.admin_password())
    except ForeignServerError as error:
        raise StackError(
            StackProblem.POSTGRES_FOREIGN,
            f"The server that answers is not this home's: {error}.",
            "Stop that server, then start again.",
        ) from error
    return Server(process, port, directory, identifier, started_here)


async def _claim(cluster: Cluster, process: Identity) -> PidFile | None:
    deadline = time.monotonic() + CLAIM_SECONDS_MAX
    while process.alive() and time.monotonic() < deadline:
        claim = read_pid_file(cluster.data)
        if claim is not None and claim.pid == process.pid:
            return claim
        await asyncio.sleep(POLL_SECONDS)
    return None


async def _end(process: Identity, data: Path) -> None:
    for number, bound in ((signal.SIGINT, STOP_SECONDS_MAX), (signal.SIGQUIT, 20.0)):
        process.signal(number)
        if await process.gone(bound):
            return
    raise StackError(
        StackProblem.POSTGRES_NOT_STOPPING,
        f"PostgreSQL (process {process.pid}) on {data} does not stop.",
        "Look at its log; kill -9 is safe for the data, and the next start recovers it.",
    )


def _refuse_other_version(cluster: Cluster) -> None:
    found = (cluster.data / "PG_VERSION").read_text("ascii").strip()
    if found != str(cluster.binaries.major):
        raise StackError(
            StackProblem.DATA_OF_OTHER_VERSION,
            f"{cluster.data} was made by PostgreSQL {found}, the programs are {cluster.binaries.major}.",
            "Set KESSAI_POSTGRES_BIN to programs of that version, or dump there and load here.",
        )


def _failed(cluster: Cluster, why: str, since: int = 0) -> StackError:
    what = f"PostgreSQL on {cluster.data} did not get ready: {why}."
    return LoggedError(StackProblem.POSTGRES_FAILED, what, cluster.log, tail(cluster.log, since=since))
