"""The tool server's inner half over a real database: one migrated per process, emptied before each use.

shop = open_shop(tmp_path, order("A-1"))        # loaded; each role has a password of its own
shop.run(scene)                                 # async def scene(tools): await ask(tools, "get_order", ...)
shop.rows("SELECT …")                           # what the tables hold, as superuser
"""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import sql

from shared_contracts.contract import FAMILIES, Scope
from shared_contracts.digest import digest
from shared_contracts.task_token import CallDetails, TaskClaims, Use
from shared_contracts.tools import TOOLS
from tests.support import cluster
from tests.support.tool_orders import ASKED_AT, seed
from tool_server.call import Answer, Answered, Caller, Refused
from tool_server.dispatch import Dispatcher
from tool_server.load import load
from tool_server.seed import Seed
from tool_server.settings import Settings
from tool_server.store.bounds import Bounds
from tool_server.store.migrate import migrate
from tool_server.store.roles import ROLES

OWNER = "tools_owner"
AUDIENCE = "http://127.0.0.1:8801/mcp"
# how a role comes to see the rows of one customer, one order and one key: JSON as `Bounds` has it
ENTER: LiteralString = "SELECT calls.enter(%s::jsonb)"
HOLD_A1: LiteralString = (  # what a return of the order A-1 waits for
    'SELECT returns.lock_order(\'acme\', \'A-1\') FROM calls.enter(\'{"tenant": "acme", "reach": "A-1"}\')'
)
NO_CHANGES: Mapping[str, Any] = MappingProxyType({})
T = TypeVar("T")

_made: dict[int, ToolDatabase] = {}


@dataclass(frozen=True)
class ToolDatabase:
    """`owner` is the DSN of the role that migrates and loads; `passwords` holds one file per role."""

    owner: str
    admin: str
    passwords: Path

    def dsn(self, role: str) -> str:
        name = cluster.database_name(self.admin)
        return cluster.dsn_of(name, user=role, password=(self.passwords / role).read_text())


def new_database() -> ToolDatabase:
    """An empty database of an owner who may make roles, and nothing else that a superuser may."""
    owner_password, passwords = _passwords()
    with psycopg.connect(cluster.cluster(), autocommit=True) as admin:
        known = admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (OWNER,)).fetchone()
        verb = sql.SQL("CREATE ROLE" if known is None else "ALTER ROLE")
        rights = sql.SQL("LOGIN CREATEROLE NOSUPERUSER NOCREATEDB PASSWORD")
        admin.execute(sql.SQL("{} {} {} {}").format(verb, sql.Identifier(OWNER), rights, sql.Literal(owner_password)))
    dsn = cluster.create_database(owner=OWNER)
    owner = cluster.dsn_of(cluster.database_name(dsn), user=OWNER, password=owner_password)
    return ToolDatabase(owner, dsn, passwords)


def migrated_database() -> ToolDatabase:
    """A database of this release that nobody else uses."""
    made = new_database()
    asyncio.run(migrate(made.owner, made.passwords))
    return made


@cache
def _passwords() -> tuple[str, Path]:
    """The owner's password and the directory of the roles': roles are the cluster's, so every database has these."""
    passwords = Path(tempfile.mkdtemp(prefix="passwords-", dir=cluster.data_directory().parent))
    for role in ROLES:
        (passwords / role).write_text(secrets.token_hex(12))
        (passwords / role).chmod(0o600)
    return secrets.token_hex(12), passwords


def tool_database() -> ToolDatabase:
    """The process's migrated database, emptied."""
    made = _made.get(os.getpid())
    if made is None:
        made = migrated_database()
        _made[os.getpid()] = made
    _empty(made.admin)
    return made


def _empty(dsn: str) -> None:
    admin = cluster.kept(dsn)
    with admin.transaction():
        admin.execute("SET LOCAL session_replication_role = replica")  # no trigger, no foreign key: all of it goes
        tables = admin.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname = ANY(%s)",
            (["calls", *FAMILIES],),
        ).fetchall()
        admin.execute(sql.SQL("; ").join(sql.SQL("DELETE FROM {}").format(sql.Identifier(*one)) for one in tables))
        admin.execute(
            "CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql RETURN clock_timestamp()"
        )


@dataclass(frozen=True)
class Shop:
    """A loaded database and the settings of a server over it."""

    database: ToolDatabase
    settings: Settings
    maildir: Path

    def run(self, scene: Callable[[Dispatcher], Awaitable[T]]) -> T:
        return asyncio.run(self._opened(scene))

    async def _opened(self, scene: Callable[[Dispatcher], Awaitable[T]]) -> T:
        async with Dispatcher(self.settings) as tools:
            return await scene(tools)

    def rows(self, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        cursor = cluster.kept(self.database.admin).execute(query, values)
        return cursor.fetchall() if cursor.description is not None else []

    def one(self, query: LiteralString, *values: object) -> Any:
        ((value,),) = self.rows(query, *values)
        return value

    def load(self, more: Seed) -> None:
        asyncio.run(load(self.database.owner, more))

    def mails(self) -> list[Path]:
        return sorted((self.maildir / "new").glob("*")) if self.maildir.exists() else []


def open_shop(
    directory: Path,
    *orders: dict[str, Any],
    settings: dict[str, Any] | None = None,
    on: ToolDatabase | None = None,
    **data: Any,
) -> Shop:
    """An emptied database with these orders, or `on` another one; `settings` changes some of a server's settings."""
    database = tool_database() if on is None else on
    asyncio.run(load(database.owner, seed(*orders, **data)))
    return shop_over(database, directory, {} if settings is None else settings)


def shop_over(database: ToolDatabase, directory: Path, settings: Mapping[str, Any] = NO_CHANGES) -> Shop:
    """A database as it is, and a server's settings."""
    plain = {
        "resource": AUDIENCE,
        "issuers_file": directory / "issuers.json",
        "maildir": directory / "mail",
        **{f"{family}_dsn": database.dsn(f"tools_{family}") for family in FAMILIES},
    }
    return Shop(database, Settings(**(plain | settings)), directory / "mail")


def caller(name: str, arguments: Mapping[str, Any], *, tenant: str = "acme", **changes: Any) -> Caller:
    """Whose good `call` token this is: minted for exactly this call, with all that its tool needs."""
    tool = TOOLS.get(name)
    bound = {
        "type": "kessai_call",
        "tool": name,
        "resource": arguments.get("order_id" if tool is None else tool.resource_argument),
        "customer": "C-1",
        "arguments_sha256": digest(dict(arguments)),
        "attempt": 1,
        "requested_at": ASKED_AT,
    }
    details = {name: changes.pop(name) for name in tuple(changes) if name in CallDetails.model_fields}
    scope = changes.pop("scope", " ".join(scope.value for scope in Scope) if tool is None else tool.scope.value)
    claims = {
        "iss": "https://host.example",
        "aud": AUDIENCE,
        "sub": "desk@example.com",
        "client_id": "host",
        "tenant_id": tenant,
        "task_id": "W-1",
        "scope": scope,
        "iat": 0,
        "nbf": 0,
        "exp": 2**33,
        "jti": uuid.uuid4().hex,
        "use": Use.CALL,
        "authorization_details": (CallDetails.model_construct(**{**_NOTHING, **bound, **details}),),
    }
    kid = changes.pop("kid", "k-1")
    return Caller(TaskClaims.model_construct(**(claims | changes)), kid, frozenset(scope.split()))


_NOTHING = dict.fromkeys(CallDetails.model_fields)


def within(reach: str = "A-1", tenant: str = "acme", customer: str = "C-1", key: str = "") -> tuple[str]:
    """The bounds of a token of the task W-1, as the parameter of ENTER."""
    return (Bounds(tenant, customer, reach, "W-1", key).text(),)


async def ask(tools: Dispatcher, name: str, arguments: Mapping[str, Any], **token: Any) -> Answer:
    """Dispatch one call with a token of its own; `key` is short for `idempotency_key`."""
    if "key" in token:
        token["idempotency_key"] = token.pop("key")
    return await tools.dispatch(caller(name, arguments, **token), name, arguments)


async def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    """Wait, bounded, for what only the database can tell."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 — no event of ours tells what another session has committed
            await asyncio.sleep(0.002)


def given(answer: Answer) -> dict[str, Any]:
    """The result of a call that must have been answered."""
    assert isinstance(answer, Answered), answer
    return answer.result


def code_of(answer: Answer) -> str:
    """The code of a call that must have been refused."""
    assert isinstance(answer, Refused), answer
    return answer.code
