"""Checks of one machine's stack, one line each with the mend. They look; they change nothing.

Each answers with findings; a check that cannot be made says so and is not passed over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg

from host.stack.binaries import MAJOR_MIN
from host.stack.errors import StackError
from host.stack.files import read_secret, refuse_shared
from host.stack.home import Home
from host.stack.keys import key_files, public_part, read_signing_key
from host.stack.ports import is_free
from host.stack.roles import AUDITOR, LIMITED, Side
from shared_contracts.named_file import Unread, read_text
from shared_contracts.told import unconnected

MADE_ANEW = "start the stack again: it is made anew"
CLOCK_SECONDS_MAX = 2.0  # well inside the leeway that a token's times are given
MUST_BE_ON = ("fsync", "synchronous_commit", "full_page_writes")
AUDITORS_PREFIX = b"KESSAI_AUDIT_"
AUDITORS = tuple(role.encode() for role in AUDITOR.values())
OVERRIDING = ("PGPASSWORD", "PGOPTIONS", "PGSERVICE", "PGSERVICEFILE", "PGHOSTADDR", "PGTARGETSESSIONATTRS")


@dataclass(frozen=True, slots=True)
class Check:
    """One line. `mend` is empty where all is well; with one, what is well is warned of."""

    check: str
    well: bool
    detail: str
    mend: str


def check_files(home: Home) -> list[Check]:
    """Every secret is ours alone, and the signing key is one."""
    files = key_files(home)
    roles = [home.passwords / side / role for side in Side for role in LIMITED[side]]
    owners = sorted((home.passwords / "owner").glob("[!.]*"))
    secrets = [*roles, *owners, *sorted(home.passfiles.glob("[!.]*"))]
    return [
        *(_tried(f"secret {path.relative_to(home.root)}", partial(_is_secret, path)) for path in secrets),
        _tried("signing key", lambda: f"kid {read_signing_key(files.signing)['kid']}"),
        _published(home),
        *(
            _tried(f"directory {path.name}", partial(_is_private, path))
            for path in (home.keys, home.passwords, home.passfiles, home.run, home.mail, home.logs)
        ),
    ]


def check_environment(names: Mapping[str, str]) -> list[Check]:
    """Variables of libpq that would win over our connection strings."""
    found = [name for name in OVERRIDING if name in names]
    if not found:
        return [Check("libpq variables", True, "none that would override ours", "")]
    return [
        Check("libpq variables", False, f"{name} is set and overrides our connection strings", f"unset {name}")
        for name in found
    ]


def check_unaudited(name: str, pid: int) -> Check:
    """Whether a program that works has an auditor's connection, as its own environment says; no value is repeated."""
    check = f"auditors apart from {name}"
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError as error:
        return Check(check, True, f"not told here: {error.strerror}", "")
    if entries == [b""]:
        return Check(check, True, "not told here: it is only beginning, or has ended", "")
    found = sorted(
        variable.decode("utf-8", "replace")
        for variable, _, value in (entry.partition(b"=") for entry in entries)
        if variable.startswith(AUDITORS_PREFIX) or any(role in value for role in AUDITORS)
    )
    if not found:
        return Check(check, True, "it has no connection of theirs", "")
    mend = "end it, and start it without: they are for kessai reconcile alone"
    return Check(check, False, f"process {pid} has {', '.join(found)}", mend)


def check_auditors(set_here: list[str], working_with: str | None) -> Check:
    """Whether the auditors' connections stand among the settings of somebody who works."""
    if not set_here:
        return Check("auditors' connections", True, "none here", "")
    if working_with is None:
        return Check("auditors' connections", True, f"{', '.join(set_here)}, for kessai reconcile", "")
    what = f"{', '.join(set_here)} beside {working_with}"
    return Check("auditors' connections", False, what, "set them for kessai reconcile alone")


def check_port(name: str, port: int, *, ours: bool) -> Check:
    """`ours` says that our own process holds it."""
    if ours or is_free(port):
        return Check(f"port of {name}", True, f"{port} {'is ours' if ours else 'is free'}", "")
    return Check(f"port of {name}", False, f"{port} is held by another program", "end it, or set another port")


async def check_database(dsn: str) -> list[Check]:
    """Durability, version and clock of the server behind a connection string."""
    try:
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True, connect_timeout=5) as connection:
            settings = [await _setting(connection, name) for name in MUST_BE_ON]
            return [*settings, _version(connection.info.server_version), await _clock(connection)]
    except psycopg.OperationalError as error:
        asks = error.pgconn is not None and error.pgconn.needs_password
        what, mend = unconnected(str(error), wants_password=asks, setting="KESSAI_DSN")
        return [Check("database", False, what, f"{mend} On one machine: kessai up")]


def _tried(check: str, look: Callable[[], str]) -> Check:
    try:
        return Check(check, True, look(), "")
    except StackError as error:
        return Check(check, False, error.what, error.mend)
    except FileNotFoundError as error:
        return Check(check, False, f"{error.filename} is missing", MADE_ANEW)


def _is_secret(path: Path) -> str:
    read_secret(path)
    return "readable by nobody who should not"


def _is_private(directory: Path) -> str:
    refuse_shared(directory)
    return "open to its owner alone"


def _published(home: Home) -> Check:
    files = key_files(home)
    try:
        kid = str(public_part(read_signing_key(files.signing))["kid"])
    except StackError as error:
        return Check("published keys", False, str(error), "mend the signing key, then start the stack again")
    text = read_text(files.jwks)
    if isinstance(text, Unread):
        return Check("published keys", False, f"{files.jwks} cannot be read: {text.why}", MADE_ANEW)
    if kid in text and files.next.exists():
        what = f"hold {kid}, and one that does not sign yet: a rotation was begun"
        return Check("published keys", False, what, "finish it: kessai keys rotate")
    if kid in text:
        return Check("published keys", True, f"hold {kid}", "")
    return Check("published keys", False, f"{files.jwks} lacks {kid}", MADE_ANEW)


async def _setting(connection: psycopg.AsyncConnection[tuple[object, ...]], name: str) -> Check:
    row = await (await connection.execute("SELECT current_setting(%s)", (name,))).fetchone()
    value = None if row is None else row[0]
    well = value == "on"
    mend = "" if well else f"ALTER SYSTEM SET {name} = on: without it a crash loses what was recorded"
    return Check(f"PostgreSQL {name}", well, str(value), mend)


def _version(version: int) -> Check:
    well = version >= MAJOR_MIN * 10_000
    mend = "" if well else f"use PostgreSQL {MAJOR_MIN} or newer"
    return Check("PostgreSQL version", well, f"{version // 10_000}.{version % 10_000}", mend)


async def _clock(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> Check:
    """Against the middle of the round trip. Tokens go by our clock, everything else by the database's."""
    before = time.time()
    row = await (await connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8")).fetchone()
    after = time.time()
    apart = abs(float(str(row[0])) - (before + after) / 2) if row is not None else float("inf")
    well = apart <= CLOCK_SECONDS_MAX + (after - before) / 2
    mend = "" if well else "let both machines follow the same time server"
    return Check("clocks", well, f"this process and the database are {apart:.3f} s apart", mend)
