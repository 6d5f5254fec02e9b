"""What `doctor` looks at: settings, the home's files and keys, database, rights, tool server, clocks and versions.

It starts nothing: where a part does not run, that is what it says, with the command that starts it.
"""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from psycopg import AsyncConnection
from psycopg.errors import InsufficientPrivilege
from rich.text import Text

from host.check_views import Checks, CheckView
from host.commands import doctor_lines, doctor_seals, stopped
from host.commands.exits import Exit
from host.commands.output import command, console, write_json
from host.commands.rollout_read import said_now
from host.commands.stopped import WORKS_AS
from host.database import NotReadyError, database
from host.rights import read_authorization
from host.settings import (
    Settings,
    SettingsError,
    connections,
    elsewhere,
    home_root,
    libpq_variables,
    links,
    load,
    of_auditors,
)
from host.stack import doctor as look
from host.stack.assembly import TOOL_SERVER, WORKER, resource_at
from host.stack.doctor import Check
from host.stack.errors import StackError
from host.stack.home import Home, existing_home, obstacle, unfinished
from host.stack.keys import issuer_of, key_files
from host.stack.links import Links
from host.stack.mode import Mode
from host.stack.status import POSTGRES, PartState, PartStatus, StackStatus, status
from host.store import record as store
from host.store import seals
from shared_contracts.base import dump
from shared_contracts.printed import plain
from shared_contracts.seal import SealLag

if TYPE_CHECKING:
    from host.tool_client.readyz import Told

PACKAGES = ("kessai", "mcp", "psycopg", "procrastinate", "pydantic")
ALIVE = frozenset({PartState.RUNNING, PartState.NOT_READY})
READINESS = "tool server's readiness"


async def doctor(*, as_json: bool) -> Exit:
    """Check everything that can be checked from here."""
    findings = [finding async for finding in _findings()]
    view = Checks(
        well=all(finding.well for finding in findings),
        checks=tuple(
            CheckView(check=f.check, well=f.well, detail=" ".join(f.detail.split()), mend=f.mend) for f in findings
        ),
    )
    if as_json:
        write_json(dump(view))
    else:
        _show(view)
    return Exit.DONE if view.well else Exit.NOT_READY


def _show(view: Checks) -> None:
    to = console()
    for one in view.checks:
        warned = Text("ok    ", style="green") if one.mend == "" else Text("warn  ", style="yellow")
        to.print(warned if one.well else Text("FAIL  ", style="red"), end="")
        said = one.detail if one.mend == "" else f"{one.detail.rstrip('.')}; {one.mend}"
        to.print(plain(f"{one.check}: {said}"), soft_wrap=True)


async def _findings() -> AsyncIterator[Check]:
    yield Check("versions", True, f"Python {platform.python_version()}, {', '.join(map(_packaged, PACKAGES))}", "")
    try:
        settings = load()
        found = links(settings)
    except SettingsError as error:
        yield Check("settings", False, str(error), "mend the variable that is named")
        return
    where = "this machine's own stack" if found is None else "the database and tool server of the settings"
    yield Check("settings", True, f"{len(settings.model_fields_set)} set; works with {where}", "")
    yield _authorization(settings)
    for finding in look.check_environment(libpq_variables()):
        yield finding
    yield look.check_auditors(of_auditors(settings), elsewhere(settings))
    lines = list(doctor_lines.checks(settings.server_url, connections(settings)))
    for finding in lines:
        yield finding
    if not all(finding.well for finding in lines):
        return
    async for finding in _own_stack(settings) if found is None else _elsewhere(settings, found):
        yield finding


def _authorization(settings: Settings) -> Check:
    """Say which set counts: the one that comes with the program is an example, with names that others know."""
    try:
        version = read_authorization(settings.authz_file).version
    except NotReadyError as error:
        return Check("authorization set", False, str(error), "mend the file that KESSAI_AUTHZ_FILE names")
    chosen = "authz_file" in settings.model_fields_set
    of = str(settings.authz_file) if chosen else "the program, an example; KESSAI_AUTHZ_FILE names one of your own"
    return Check("authorization set", True, f"{version} of {of}", "")


def _packaged(name: str) -> str:
    return f"{name} {version(name)}"


async def _elsewhere(settings: Settings, found: Links) -> AsyncIterator[Check]:
    for finding in await _database(found.dsn):
        yield finding
    halted = await stopped.read(found.dsn)
    if halted.unknown is None:  # where the database cannot be read, that is what is said of it
        engaged = any(one.engaged for one in halted.scopes)
        mend = command(settings, "resume", "--as", "NAME", "--reason", "TEXT") if engaged else ""
        yield Check("stops", not engaged, stopped.words(halted), mend)
    yield await _tool_server(settings, found)
    told = await _told(found.server_url)
    yield _readiness(told)
    ours = await _lag(found.dsn)
    for finding in doctor_seals.checks(ours, told.record):
        yield finding


async def _own_stack(settings: Settings) -> AsyncIterator[Check]:
    root = home_root(settings)
    home, seen = existing_home(root), await status(root)
    hindered = obstacle(root) if home is None else unfinished(root)
    yield Check("home", hindered is None, f"{root}: {seen.why}", "" if hindered is None else hindered.mend)
    if home is None or hindered is not None:
        return
    for finding in look.check_files(home):
        yield finding
    own = _links(home, seen)
    for part in seen.parts:
        yield _part(part, up=seen.mode is Mode.UP)
        if part.name in {TOOL_SERVER, WORKER} and part.pid is not None and part.state in ALIVE:
            yield look.check_unaudited(f"the {part.name.replace('_', ' ')}", part.pid)
        if part.name == TOOL_SERVER and part.state is PartState.NOT_READY and part.port is not None:
            yield _readiness(await _told(resource_at(part.port)))
    if own is not None:
        async for finding in _elsewhere(settings, own):
            yield finding
    elif settings.tool_server_port is not None:
        yield look.check_port("the tool server", settings.tool_server_port, ours=False)


def _links(home: Home, seen: StackStatus) -> Links | None:
    """Give the addresses of a stack that runs; None where database or tool server do not."""
    running = {part.name: part for part in seen.parts if part.state is PartState.RUNNING}
    postgres, server = running.get(POSTGRES), running.get(TOOL_SERVER)
    if postgres is None or postgres.port is None or server is None or server.port is None:
        return None
    url = resource_at(server.port)
    return Links(stopped.dsn_of(home, postgres.port), url, url, issuer_of(home), key_files(home).signing)


def _part(part: PartStatus, *, up: bool) -> Check:
    name = part.name.replace("_", " ")
    match part.state:
        case PartState.RUNNING:
            return Check(name, True, f"runs as process {part.pid}, port {part.port or 'none'}", "")
        case PartState.STOPPED if (
            up
        ):  # such as a tool server that did not start again with the settings of the last `up`
            return Check(name, False, "does not run, though the stack is up", f"see {part.log}, then: kessai up")
        case PartState.STOPPED:
            return Check(name, True, "does not run; kessai run or kessai up starts it", "")
        case PartState.DIED:
            return Check(name, False, "died", f"see {part.log}, then: kessai up")
        case PartState.NOT_READY:
            return Check(name, False, f"process {part.pid} is not ready", f"see {part.log}")


async def _database(dsn: str) -> list[Check]:
    findings = await look.check_database(dsn)
    if any(finding.check == "database" for finding in findings):
        return findings
    try:
        async with database(dsn, 1) as pool, pool.connection() as connection:
            rights = await store.rights(connection)
            rollout = await _rollout(connection)
    except NotReadyError as error:
        return [*findings, Check("schema", False, str(error), "kessai migrate")]
    mend = "" if rights.narrow else f"let KESSAI_DSN name {WORKS_AS}, which writes through functions alone"
    said = f"{rights.role}" + ("" if rights.narrow else " may do more than the engine needs")
    return [
        *findings,
        Check("schema", True, "is this program's", ""),
        Check("rights", rights.narrow, said, mend),
        *rollout,
    ]


async def _rollout(connection: AsyncConnection[Any]) -> list[Check]:
    """Say whom cases are taken in for; nothing to a role that may not know: of it the rights say what is wrong."""
    try:
        let_in, whom = await said_now(connection)
    except InsufficientPrivilege:
        return []
    mend = "" if let_in else "kessai rollout open 1 lets the first ones in, kessai rollout waive everybody"
    return [Check("rollout", let_in, whom, mend)]


async def _tool_server(settings: Settings, found: Links) -> Check:
    from host.wiring import driver

    try:
        async with driver(settings, found) as opened:
            names = ", ".join(sorted(opened.listing.available))
            return Check("tool server", True, f"{found.server_url} takes our tokens and offers {names}", "")
    except (NotReadyError, StackError) as error:
        return Check("tool server", False, str(error), "mend what it names")


async def _lag(dsn: str) -> SealLag | None:
    """How far behind the host's own seals are; None where the database cannot be read: its checks tell that."""
    try:
        async with database(dsn, 1) as pool, pool.connection() as connection:
            return await seals.lag(connection)
    except (NotReadyError, InsufficientPrivilege):
        return None


async def _told(server_url: str) -> Told:
    """What it says of itself: its keys, its database and each family's role in it, its mail, its seals."""
    from host.tool_client.readyz import readyz

    return await readyz(server_url)


def _readiness(told: Told) -> Check:
    if told.ready is None:
        return Check(READINESS, True, f"not told here: {told.reason}", "")
    said = "it can serve calls" if told.ready else f"not ready: {plain(told.reason)}"
    return Check(
        READINESS, told.ready, said, "" if told.ready else "see “Status and doctor” in RUNBOOK.md, and its log"
    )
