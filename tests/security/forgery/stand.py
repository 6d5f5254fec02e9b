"""The server as it is deployed, in a process of its own over its own database, and everything that it leaves behind.

Invariant: what is looked at is what an operator would look at: the answer's bytes, every table, the call log, the
process's log. The database is the stand's alone, so that whatever changes in it the request changed.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import psycopg
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import ECAlgorithm
from psycopg import sql

from shared_contracts.contract import FAMILIES
from tests.security.forgery.forge import DUE, Forge, Keys, Wire
from tests.support import cluster
from tests.support.server import listens, wait_until
from tests.support.tokens import Issuer
from tests.support.tool_approvals import Person, action_now, trusted
from tests.support.tool_orders import line, order
from tests.support.tool_shop import Shop, new_database, open_shop
from tool_server.approvers import revoke as revoke_approver
from tool_server.store.migrate import migrate
from tool_server.store.switches import revoke

BEGINNING = "eyJ"  # of every token, since it begins with `{"`
SEEN = 12  # so many characters of a token anywhere are a part of it

Asked = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True)
class Met:
    """What a request met: the answer as it came, and what it left behind."""

    status: int
    head: dict[str, str]
    body: bytes
    rows: tuple[tuple[str, str], ...]  # outcome and whole text of each new row of the call log
    said: str  # what the process logged meanwhile
    changed: frozenset[str]  # the tables that are another

    @property
    def data(self) -> dict[str, Any]:
        """The error's own data, or what the tool told as an error."""
        message = json.loads(self._message)
        if "error" in message:
            return dict(message["error"].get("data", {}))
        result = message["result"]
        return dict(result["_meta"]["dev.kessai/error"]) if result.get("isError") else {}

    @property
    def _message(self) -> bytes:
        lines = [line for line in self.body.splitlines() if line.startswith(b"data: ")]
        return lines[-1].removeprefix(b"data: ") if lines else self.body

    def shows(self, secret: str) -> bool:
        """Whether a recognisable part of the text stands anywhere in it."""
        places = [self.said, self.body.decode("latin-1"), repr(self.head), *(text for _, text in self.rows)]
        parts = {secret[at : at + SEEN] for at in range(max(1, len(secret) - SEEN + 1))} if len(secret) >= SEEN else {}
        return any(part in place for place in places for part in parts)


@dataclass
class Stand:
    """A server that runs. `hits` is what was asked at the address that nobody may ask."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path
    shop: Shop
    books: psycopg.Connection[Any]
    keys: Keys
    listener: str
    hits: list[str]
    _digests: sql.Composed
    bodies: dict[Any, tuple[str | None, bytes]] = field(default_factory=dict)
    _told: int = 0
    _count: tuple[Any, ...] = ()
    _tables: dict[str, str] = field(default_factory=dict)

    def forge(self) -> Forge:
        """For one attempt."""
        return Forge(self.keys, self.port, self.listener)

    def send(self, wire: Wire, rows: Callable[[Asked], int] = lambda _: 0) -> Met:
        """Send the bytes and see what they met; so many rows of the call log are waited for, and more are seen too.

        What the protocol's own code refuses is logged after its answer.
        """
        last, before = self._count[1], dict(self._tables)
        status, head, body = asked = self.asked(wire)
        wanted = rows(asked)
        wait_until(lambda: self.look() and len(self._rows(last)) >= wanted)
        changed = frozenset(name for name, digest in self._tables.items() if before[name] != digest)
        return Met(status, head, body, self._rows(last), self._said(), changed)

    def _rows(self, last: int) -> tuple[tuple[str, str], ...]:
        if self._count[1] == last:
            return ()
        query = "SELECT outcome, l::text FROM calls.log AS l WHERE seq > %s ORDER BY seq"
        return tuple(self.books.execute(query, (last,)).fetchall())

    def asked(self, wire: Wire) -> Asked:
        """The answer to these bytes; a connection that is closed without one has status 0."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            response = HTTPResponse(connection, method=wire.line.partition(b" ")[0].decode())
            try:
                connection.sendall(wire.written)
                if wire.cut:
                    connection.shutdown(socket.SHUT_WR)
                response.begin()
            except TimeoutError:
                raise
            except OSError:  # RemoteDisconnected is one
                return 0, {}, b""
            with response:
                return response.status, dict(response.getheaders()), response.read()

    def passes(self, wire: Wire) -> None:
        """A step that is carried out, before the attempt."""
        met = self.send(wire)
        assert (met.status, met.data) == (200, {}), met

    @contextmanager
    def published(self, *members: Any, by: Issuer | None = None) -> Iterator[None]:
        """The host's key set, or another issuer's, is another one meanwhile."""
        path = self.keys.host.jwks_file if by is None else by.jwks_file
        text = path.read_text()
        _replace(path, json.dumps({"keys": list(members)}))
        try:
            yield
        finally:
            _replace(path, text)

    def members(self) -> list[dict[str, Any]]:
        """What the host publishes."""
        return list(json.loads(self.keys.host.jwks_file.read_text())["keys"])

    def revoke_token(self, jti: str) -> None:
        """As an operator does."""
        asyncio.run(revoke(self.shop.database.owner, "jti", jti, "operator"))
        self.look()

    def _said(self) -> str:
        with self.log.open("rb") as file:
            file.seek(self._told)
            said = file.read()
        self._told += len(said)
        return said.decode()

    def look(self) -> bool:
        """Read all tables anew where any transaction has written since the last look, and only there."""
        count = self.books.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text, (SELECT coalesce(max(seq), 0) FROM calls.log)"
        ).fetchone()
        assert count is not None
        if count != self._count:
            self._count, self._tables = count, dict(self.books.execute(self._digests).fetchall())
        return True


def _digests(books: psycopg.Connection[Any]) -> sql.Composed:
    tables = books.execute(
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname = ANY(%s) AND tablename <> 'log'",
        (["calls", *FAMILIES],),
    ).fetchall()
    each = sql.SQL("SELECT {}, coalesce(md5(string_agg(t::text, '/' ORDER BY t::text)), '') FROM {} AS t")
    return sql.SQL(" UNION ALL ").join(
        each.format(sql.Literal(f"{schema}.{table}"), sql.Identifier(schema, table)) for schema, table in tables
    )


def _replace(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


def _issuer(directory: Path, resource: str, kid: str, name: str = "https://host.example") -> Issuer:
    return Issuer(Ed25519PrivateKey.generate(), kid, name, directory, resource)


def _keys(directory: Path, port: int, shop: Shop) -> Keys:
    """All published: two keys of the host, one of them on its way out, a revoked one, and a partner's two."""
    resource = f"http://127.0.0.1:{port}/mcp"
    host = Issuer.at(directory, resource)
    second, revoked = (_issuer(directory, resource, kid) for kid in ("key-2", "key-revoked"))
    partner = Issuer.at(directory / "partner", resource, "partner-1", "https://partner.example")
    curve = ec.generate_private_key(ec.SECP256R1())
    on_curve = {**ECAlgorithm.to_jwk(curve.public_key(), as_dict=True), "kid": "curve", "alg": "ES256"}
    _replace(host.jwks_file, json.dumps({"keys": [one.jwk() for one in (host, second, revoked)]}))
    _replace(partner.jwks_file, json.dumps({"keys": [partner.jwk(), on_curve]}))
    rows = [(host.name, "jwks.json", "every"), (partner.name, "partner/jwks.json", ["acme", "beta"])]
    names = ("issuer", "jwks_file", "tenants")
    _replace(host.issuers_file, json.dumps([dict(zip(names, row, strict=True)) for row in rows]))
    people = [Person.named(name) for name in ("tanaka", "suzuki", "gone")]
    asyncio.run(_trust(shop, revoked.kid, *people, Person.named("clerk-1"), Person.named("petty", 100)))
    action = shop.run(lambda tools: action_now(tools, DUE))
    stranger = _issuer(directory, resource, host.kid)
    return Keys(host, second, revoked, partner, stranger, curve, *people, action)


async def _trust(shop: Shop, kid: str, *people: Person) -> None:
    await trusted(shop, *people)
    await revoke_approver(shop.database.owner, "gone", "operator")
    await revoke(shop.database.owner, "kid", kid, "operator")


def _environment(shop: Shop, keys: Keys, port: int) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("KESSAI_")}
    ours = {
        "resource": keys.host.resource, "issuers_file": keys.host.issuers_file, "port": port,
        "maildir": shop.maildir, "rate_principal": 100_000, "rate_tenant": 100_000,
        "rate_failures": 100_000,
        **{f"{name}_dsn": shop.settings.dsn_of(name).get_secret_value() for name in FAMILIES},
    }  # fmt: skip
    return plain | {f"KESSAI_TOOLS_{name.upper()}": str(value) for name, value in ours.items()}


@contextmanager
def _listening() -> Iterator[tuple[str, list[str]]]:
    """An address, and what was asked there."""
    hits: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                hits.append("somebody")
                connection.close()

        thread = threading.Thread(target=serve, name="nobody-asks")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/", hits
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)


@contextmanager
def opened_stand(directory: Path) -> Iterator[Stand]:
    """Start the server, and end it."""
    database = new_database()
    asyncio.run(migrate(database.owner, database.passwords))
    dear = line(price=60_000, quantity=90)
    theirs = order("T-1", line("LT"), tenant_id="other"), order("B-1", line("LB"), customer_id="C-2")
    shop = open_shop(
        directory, order("A-1", line(price=100, quantity=90)), order("A-2"), order("A-9", dear), *theirs, on=database
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    keys, log = _keys(directory / "keys", port, shop), directory / "log"
    with ExitStack() as ending:
        books = ending.enter_context(psycopg.connect(database.admin, autocommit=True))
        listener, hits = ending.enter_context(_listening())
        err = ending.enter_context(log.open("wb"))
        command = [str(Path(sys.executable).with_name("kessai-tools")), "serve"]
        process = subprocess.Popen(command, env=_environment(shop, keys, port), stdout=err, stderr=err)
        ending.callback(process.wait, 30)
        ending.callback(process.kill)
        wait_until(lambda: listens(port) or process.poll() is not None)
        stand = Stand(port, process, log, shop, books, keys, listener, hits, _digests(books))
        stand.look()
        yield stand
        process.terminate()
        assert process.wait(30) == 0
        kept = books.execute("SELECT string_agg(l::text, '') FROM calls.log AS l").fetchone()
        assert BEGINNING not in str(kept)
        assert BEGINNING not in cluster.server_log().read_text(errors="replace")
