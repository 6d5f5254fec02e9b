"""Both sides' records over real databases, sealed and exchanged as the two programs do it, and a superuser beside them.

async with record(worked_shop(tmp_path)) as kept:
    await kept.seal()
    kept.host("DELETE FROM audit WHERE …")      # as somebody whom no trigger and no grant keeps from anything
    (await kept.verified())["host"].findings
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from psycopg import AsyncConnection, sql

from host.domain.sealed import Finding, Verdict
from host.engine.drive import drive
from host.engine.parts import Parts
from host.engine.seal import Sealer, seal_all
from host.evaluation import sealed
from host.evaluation.audit import Auditors
from host.store import seals
from shared_contracts.approval import jwk_of
from shared_contracts.base import dump
from shared_contracts.seal import SealKey, SealKeys, SideName, Signer, keys_of, opened
from tests.support.cluster import database_name, dsn_of
from tests.support.engine import engine, take
from tests.support.fake_tools import FakeTools
from tests.support.tool_orders import line, order
from tests.support.tool_prepared import made_return, sent_notice
from tests.support.tool_shop import Shop, open_shop
from tool_server.dispatch import Dispatcher
from tool_server.store import seals as tool_seals
from tool_server.store.pool import Pool

PASSWORD = "the-sealers-own"
HOST_ROWS = ("act", "audit", "checkpoint", "decision", "effect", "approver_key", "stop_log", "external_task")
TOOL_ROWS = ("act", "tool_switch", "revocation")
SEALED = ("seal_chain", "seal_link", "seal_head", "seal_witness", "seal_cut", "seal_restored")
HOST_TABLES = [("public", name) for name in (*HOST_ROWS, *SEALED)]
TOOL_TABLES = [("returns", "approvers"), *(("calls", name) for name in ("log", *TOOL_ROWS, *SEALED))]


def signers() -> tuple[Signer, Signer, SealKeys]:
    """Both sides' keys, made for one test."""
    host, tools = Signer("host", Ed25519PrivateKey.generate()), Signer("tools", Ed25519PrivateKey.generate())
    public = {one.side: (SealKey(**dump(jwk_of(one.key.public_key()))),) for one in (host, tools)}
    return host, tools, SealKeys(**public)


def role_dsn(admin: str, role: str) -> str:
    """A role's own connection to a host's database of a test."""
    name = database_name(admin)
    with psycopg.connect(admin) as connection:
        connection.execute(f"ALTER ROLE {role} PASSWORD '{PASSWORD}'")
        connection.execute(
            sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(sql.Identifier(name), sql.Identifier(role))
        )
    return dsn_of(name, user=role, password=PASSWORD)


@dataclass
class Kept:
    """Both records, and what is needed to seal and to verify them."""

    parts: Parts
    shop: Shop
    admin: str
    sealer: Sealer
    tools_signer: Signer
    keys: SealKeys
    auditors: Auditors

    async def exchange(self, head: str) -> str | None:
        """What a tool server does with a host's head."""
        async with Pool("sealer", self.shop.database.dsn("tools_sealer")) as pool:
            await tool_seals.witness(pool, opened(head, "host", keys_of(self.keys, "host")), head)
            return await tool_seals.newest(pool)

    async def seal_tools(self) -> None:
        async with Pool("sealer", self.shop.database.dsn("tools_sealer")) as pool:
            while await tool_seals.seal_batch(pool, self.tools_signer):
                pass

    async def seal(self) -> None:
        """Seal both, and let each keep the other's head."""
        await self.seal_tools()
        await seal_all(self.sealer)

    async def seal_host_alone(self) -> None:
        """Seal the host's side while the tool server cannot be reached."""
        async with await AsyncConnection.connect(self.sealer.dsn, autocommit=True) as connection:
            while await seals.seal_batch(connection, self.sealer.signer):
                pass

    def host(self, *statements: str) -> list[tuple[Any, ...]]:
        return _spoil(self.admin, statements)

    def tools(self, *statements: str) -> list[tuple[Any, ...]]:
        return _spoil(self.shop.database.admin, statements)

    def note(self, *resources: str) -> None:
        """New lines of the audit."""
        with psycopg.connect(self.admin) as connection, connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO audit (actor, action, resource, result, details, at)"
                " VALUES ('sato', 'noted', %s, 'done', '{}', clock_now())",
                [(resource,) for resource in resources],
            )

    def numbers(self, resource: str) -> Callable[[str], str]:
        """Fill in the numbers of the row about this resource, of the line that seals it, and of the last call."""
        with psycopg.connect(self.admin) as connection:
            query = "SELECT audit_id, n FROM audit JOIN seal_link ON row_id = audit_id::text AND source = 'audit'"
            row = connection.execute(query + " WHERE resource = %s", (resource,)).fetchone()
        assert row is not None
        ((call,),) = self.tools("SELECT max(seq) FROM calls.log")
        known = {"{N2}": str(row[0]), "{L2}": str(row[1]), "{CALL}": str(call)}

        def fill(text: str) -> str:
            for place, number in known.items():
                text = text.replace(place, number)
            return text

        return fill

    def remember(self) -> Callable[[], None]:
        """Note what both databases hold of the record; gives what puts it back."""
        for dsn, tables in ((self.admin, HOST_TABLES), (self.shop.database.admin, TOOL_TABLES)):
            with psycopg.connect(dsn) as connection:
                connection.execute("CREATE SCHEMA remembered")
                for table in tables:
                    copy = sql.Identifier("remembered", table[-1])
                    connection.execute(sql.SQL("CREATE TABLE {} AS TABLE {}").format(copy, sql.Identifier(*table)))
        return self._put_back

    def _put_back(self) -> None:
        for dsn, tables in ((self.admin, HOST_TABLES), (self.shop.database.admin, TOOL_TABLES)):
            with psycopg.connect(dsn) as connection:
                connection.execute("SET session_replication_role = replica")
                for table in tables:
                    name, copy = sql.Identifier(*table), sql.Identifier("remembered", table[-1])
                    connection.execute(sql.SQL("DELETE FROM {}").format(name))
                    connection.execute(sql.SQL("INSERT INTO {} OVERRIDING SYSTEM VALUE TABLE {}").format(name, copy))

    def forget(self) -> None:
        """Leave nothing of it in the database that the next test gets."""
        for dsn in (self.admin, self.shop.database.admin):
            with psycopg.connect(dsn) as connection:
                connection.execute("DROP SCHEMA remembered CASCADE")

    async def verified(self) -> Mapping[SideName, Verdict]:
        return await sealed.verified(self.auditors, self.keys)

    async def found(self, side: SideName = "host") -> list[Finding]:
        return (await self.verified())[side].findings


def _spoil(dsn: str, statements: tuple[str, ...]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    with psycopg.connect(dsn) as connection:
        connection.execute("SET session_replication_role = replica")  # no trigger of ours runs
        for statement in statements:
            cursor = connection.execute(statement.encode())
            rows = [] if cursor.description is None else cursor.fetchall()
    return rows


def worked_shop(directory: Path) -> Shop:
    """A tool server's side with one return and its notice."""
    shop = open_shop(directory, order("A-1", line("L1", quantity=2), shipping_fee=550))

    async def scene(tools: Dispatcher) -> None:
        await sent_notice(tools, await made_return(tools, key="R"), key="N")

    shop.run(scene)
    return shop


@asynccontextmanager
async def record(shop: Shop) -> AsyncIterator[Kept]:
    """Beside the shop a host's side with one case that was driven to its end; nothing is sealed yet."""
    host, tools, keys = signers()
    async with engine(FakeTools()) as parts:
        await drive(parts, await take(parts))
        admin = dsn_of(database_name(parts.pool.conninfo))
        kept: list[Kept] = []

        async def exchange(head: str) -> str | None:
            return await kept[0].exchange(head)

        sealer = Sealer(role_dsn(admin, "host_sealer"), host, keys_of(keys, "tools"), exchange)
        auditors = Auditors(role_dsn(admin, "host_auditor"), shop.database.dsn("tools_auditor"))
        kept.append(Kept(parts, shop, admin, sealer, tools, keys, auditors))
        kept[0].note("N-1", "N-2", "N-3")
        yield kept[0]
