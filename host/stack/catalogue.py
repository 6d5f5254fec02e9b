"""What two databases and their cluster hold beside rows: functions, triggers, policies, rights, roles, everything.

Invariant: no restored database is worked on that holds anything which our own migrations would not have made. What a
dump brings along is not looked through for what is harmful; it is compared with what is known to be ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

from psycopg import AsyncConnection

from host.stack import assembly
from host.stack.assembly import StackParts
from host.stack.processes import run_to_end
from host.stack.roles import Side
from host.stack.serving import ADMIN
from shared_contracts.named_file import Unread, read_file

SECONDS_MAX = 300.0
BYTES_MAX = 64 * 2**20  # a hundred times ours
SHOWN_MAX = 12
# The cluster's own word, from a database that no dump was restored into: roles, who is a member of what, settings of
# roles and databases, and the databases' owners and rights. Numbers that change with each making are left out.
CLUSTER: LiteralString = """
SELECT 'ROLE ' || rolname, (to_jsonb(r) - 'oid')::text FROM pg_roles r
UNION ALL SELECT 'MEMBERSHIP of ' || member::regrole || ' in ' || roleid::regrole || ' by ' || grantor::regrole,
    (to_jsonb(m) - 'oid')::text FROM pg_auth_members m
UNION ALL SELECT 'SETTINGS of role ' || coalesce(rolname, 'any') || ' in database ' || coalesce(datname, 'any'),
    setconfig::text FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = setrole
    LEFT JOIN pg_database d ON d.oid = setdatabase
UNION ALL SELECT 'DATABASE ' || datname,
    (to_jsonb(d) - '{oid,datfrozenxid,datminmxid,datlastsysoid}'::text[])::text FROM pg_database d
UNION ALL SELECT 'TABLESPACE ' || spcname, (to_jsonb(t) - 'oid')::text FROM pg_tablespace t"""
_HEADING = re.compile(r"^-- Name: (?P<name>.*); Type: (?P<type>.*); Schema: (?P<schema>.*); Owner: .*$", re.MULTILINE)
_KEY = re.compile(r"^\\restrict (\w+)$", re.MULTILINE)  # made up by each run of pg_dump
_REST = "the text between"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """`cluster` by what each row is of; `schemas` as pg_dump writes them."""

    cluster: Mapping[str, str]
    schemas: Mapping[Side, str]


async def catalogue(parts: StackParts, admin_password: str, pg_dump: Path) -> Catalogue:
    """Ask the cluster first: a role's own settings could change what a database says."""
    target = parts.server.conninfo("postgres", ADMIN, password=admin_password)
    async with await AsyncConnection.connect(target, autocommit=True) as admin:
        rows = await (await admin.execute(CLUSTER)).fetchall()
    return Catalogue(dict(rows), {side: await _schema(parts, side, pg_dump) for side in Side})


async def _schema(parts: StackParts, side: Side, pg_dump: Path) -> str:
    file = parts.home.run / f"{side}.schema"
    try:
        await run_to_end(parts.home, assembly.describe(parts, side, pg_dump, file), SECONDS_MAX)
        content = read_file(file, BYTES_MAX)
    finally:
        file.unlink(missing_ok=True)
    text = content.why if isinstance(content, Unread) else content.decode("utf-8", "backslashreplace")
    key = _KEY.search(text)
    return text if key is None else text.replace(key[1], "")


def differences(wanted: Catalogue, found: Catalogue) -> tuple[str, ...]:
    """Name what is there and should not be, is not there, or is another; nothing where they are alike."""
    named = list(_compared("", wanted.cluster, found.cluster))
    for side in Side:
        if wanted.schemas[side] != found.schemas[side]:
            parts = list(_compared(f"{side}: ", _parts(wanted.schemas[side]), _parts(found.schemas[side])))
            named += parts if parts else [f"{side}: the same things in another order"]
    more = len(named) - SHOWN_MAX
    return (*named[:SHOWN_MAX], *([f"… and {more} more"] if more > 0 else []))


def _compared(prefix: str, wanted: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(wanted.keys() | found.keys()):
        if name not in wanted:
            yield f"{prefix}{name} is not ours"
        elif name not in found:
            yield f"{prefix}{name} is missing"
        elif wanted[name] != found[name]:
            yield f"{prefix}{name} is another"


def _parts(schema: str) -> dict[str, str]:
    """Only to name what differs: whether anything does is told by the whole text."""
    headings = list(_HEADING.finditer(schema))
    ends = [*(heading.start() for heading in headings[1:]), len(schema)]
    parts: dict[str, str] = {_REST: schema[: headings[0].start()] if headings else schema}
    for heading, end in zip(headings, ends, strict=True):
        name = f"{heading['type']} {heading['schema']}.{heading['name']}"
        parts[name] = parts.get(name, "") + schema[heading.end() : end]
    return parts
