"""Heads over real HTTP: a tool server takes those of a trusted host, gives its own for them, and nothing else."""

from __future__ import annotations

import asyncio
import base64
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import SecretStr
from structlog.testing import capture_logs

from host.commands.doctor_seals import checks
from host.engine.seal import run
from host.stack.keys import ensure_key_files, key_files_in
from host.tool_client.heads import exchange
from host.tool_client.readyz import readyz
from shared_contracts.base import dump
from shared_contracts.digest import digest
from shared_contracts.seal import HEAD_CHARACTERS_MAX, Head, SealLag, Signer, keys_of, opened, signer_of, trusted_keys
from tests.support.engine import asynchronous
from tests.support.sealing import record, worked_shop
from tests.support.server import Server, StubDispatcher, message_of, running, wait_until
from tests.support.tool_shop import Shop
from tool_server.dispatch import Dispatcher
from tool_server.errors import SettingsError
from tool_server.sealing import seal_parts

AT = "2026-08-01T00:00:00.000000Z"
NO_CHARACTER = (
    base64.urlsafe_b64encode(b'{"alg":"EdDSA","kid":"\\u0000","typ":"kessai-seal+jws"}').rstrip(b"=").decode()
)
HEAD = Head(side="host", chain=str(uuid.uuid4()), n=7, chained="ab" * 32, horizon="900", whole=True, at=AT)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return worked_shop(tmp_path)


def sealing(directory: Path, shop: Shop) -> dict[str, Any]:
    """A tool server's three settings, with keys as `kessai secrets` makes them."""
    files = key_files_in(directory)
    ensure_key_files(files, "https://host.example")
    return {
        "sealer_dsn": shop.database.dsn("tools_sealer"),
        "seal_key_file": files.seal_tools,
        "seal_keys_file": files.seal_keys,
    }


@pytest.fixture
def server(tmp_path: Path, shop: Shop) -> Iterator[Server]:
    with running(StubDispatcher(), tmp_path, **sealing(tmp_path, shop)) as opened_server:
        yield opened_server


def signer(tmp_path: Path, side: Any) -> Signer:
    return signer_of(side, (tmp_path / f"seal-{side}.jwk").read_bytes())


def kept(shop: Shop) -> list[str]:
    return [text for (text,) in shop.rows("SELECT signed FROM calls.seal_witness ORDER BY seen")]


def test_a_trusted_hosts_head_is_kept_once_and_answered_with_the_logs_own(
    tmp_path: Path, shop: Shop, server: Server
) -> None:
    wait_until(lambda: shop.one("SELECT count(*) FROM calls.seal_head WHERE signed IS NOT NULL") == 1)
    mine = signer(tmp_path, "host").sign(HEAD)
    theirs = {asyncio.run(exchange(server.url, mine)) for _ in range(3)}
    (text,) = theirs
    assert text is not None
    keys = trusted_keys((tmp_path / "seal-keys.json").read_bytes())
    assert opened(text, "tools", keys_of(keys, "tools")).n == shop.one("SELECT count(*) FROM calls.log")
    assert kept(shop) == [mine]
    said = asyncio.run(readyz(server.url)).record
    assert isinstance(said, SealLag)
    assert said.waits is None
    assert said.signed is not None
    assert said.kept is not None


# how long each call waited for its batch, by the database's one clock; and those that no head covers yet
LAG: LiteralString = """
    SELECT max(h.at - l.at) FILTER (WHERE h.signed IS NOT NULL), count(*) FILTER (WHERE h.signed IS NULL)
    FROM calls.log AS l LEFT JOIN calls.seal_link AS k ON k.source = 'call' AND k.row_id = l.seq::text
    LEFT JOIN LATERAL (SELECT * FROM calls.seal_head WHERE n >= k.n ORDER BY n LIMIT 1) AS h ON true
    WHERE l.jti LIKE 'lag-%%'"""


def test_a_call_is_sealed_within_a_second_by_the_server_that_answered_it(tmp_path: Path, shop: Shop) -> None:
    arguments = {"order_id": "A-1"}
    details = {"tool": "get_order", "resource": "A-1", "arguments_sha256": digest(arguments)}
    with running(Dispatcher(shop.settings), tmp_path, **sealing(tmp_path, shop)) as server:
        for n in range(20):
            token = server.issuer.token(tenant_id="acme", jti=f"lag-{n}", details=details)
            assert "structuredContent" in message_of(server.call("get_order", arguments, token=token))["result"]
        wait_until(lambda: shop.rows(LAG)[0][1] == 0)
    ((lag, _),) = shop.rows(LAG)
    assert lag < timedelta(seconds=1)
    assert shop.one("SELECT count(*) FROM calls.log WHERE jti LIKE 'lag-%%'") == 20


@contextmanager
def without_heads(admin: str, table: LiteralString) -> Iterator[None]:
    """A database whose record cannot be sealed meanwhile."""
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"ALTER TABLE {table} RENAME TO seal_head_elsewhere")
        try:
            yield
        finally:
            connection.execute(f"ALTER TABLE {table}_elsewhere RENAME TO seal_head")


def test_the_tool_servers_log_says_that_sealing_waits_and_that_it_goes_on(tmp_path: Path, shop: Shop) -> None:
    with capture_logs() as lines, running(StubDispatcher(), tmp_path, **sealing(tmp_path, shop)):
        with without_heads(shop.database.admin, "calls.seal_head"):
            wait_until(lambda: any(line["event"] == "sealing_waits" for line in lines))
        wait_until(lambda: any(line["event"] == "sealing_goes_on" for line in lines))
    said = [line["event"] for line in lines if line["event"].startswith("sealing_")]
    assert (said.count("sealing_goes_on"), said[-1]) == (1, "sealing_goes_on")


@asynchronous
async def test_a_workers_log_says_that_sealing_waits_and_that_it_goes_on(shop: Shop) -> None:
    def said(event: str) -> bool:
        return any(line["event"] == event for line in lines)

    async with record(shop) as kept_apart:
        stop = asyncio.Event()
        with capture_logs() as lines:
            running_seal = asyncio.create_task(run(kept_apart.sealer, stop))
            with without_heads(kept_apart.admin, "seal_head"):
                await asyncio.to_thread(wait_until, partial(said, "sealing_waits"))
            await asyncio.to_thread(wait_until, partial(said, "sealing_goes_on"))
            stop.set()
            await running_seal
    told = [line["event"] for line in lines if line["event"].startswith("sealing_")]
    assert (told.count("sealing_goes_on"), told[-1]) == (1, "sealing_goes_on")


def test_nothing_but_a_trusted_hosts_head_is_kept_and_none_is_told_ours(
    tmp_path: Path, shop: Shop, server: Server
) -> None:
    host, tools = signer(tmp_path, "host"), signer(tmp_path, "tools")
    head, payload, signature = host.sign(HEAD).split(".")
    wrong = [
        "", "x", "a.b.c", head, f"{NO_CHARACTER}.{payload}.{signature}",
        f"{head}.{payload}", f"{head}.{payload}.", f"{head}.{payload}.{signature}.", "é.é.é",
        f"{head}.{payload}.{signature[:-4]}AAAA",
        f"{head}.{host.sign(HEAD.model_copy(update={'n': 8})).split('.')[1]}.{signature}",
        replace(host, key=Ed25519PrivateKey.generate()).sign(HEAD),  # a stranger's
        tools.sign(HEAD),  # signed by the other side, which cannot speak for a host
        tools.sign(HEAD.model_copy(update={"side": "tools"})),  # its own head, sent back to it
        host.sign(HEAD.model_copy(update={"side": "tools"})),  # a host that speaks for the tool server
        server.issuer.token(), server.issuer.probe(),  # good tokens, and no heads
        json.dumps(dump(HEAD)),
    ]  # fmt: skip
    for text in wrong:
        answer = server.client.post(f"{server.origin}/heads", content=text.encode())
        assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (403, "invalid_request"), text
        assert "head" not in answer.json()
    assert server.client.post(f"{server.origin}/heads", content=b"x" * (HEAD_CHARACTERS_MAX + 1)).status_code == 413
    assert server.client.get(f"{server.origin}/heads").status_code == 405
    assert kept(shop) == []


def test_a_head_is_no_token(tmp_path: Path, server: Server) -> None:
    for side in ("host", "tools"):
        answer = server.call(token=signer(tmp_path, side).sign(HEAD.model_copy(update={"side": side})))
        assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (401, "token_invalid")
    assert server.call().status_code == 200


def test_what_was_logged_last_is_sealed_when_the_server_ends(tmp_path: Path, shop: Shop, server: Server) -> None:
    server.stop()
    calls = shop.one("SELECT count(*) FROM calls.log")
    wait_until(lambda: shop.one("SELECT count(*) FROM calls.seal_link") == calls)


def test_of_the_three_settings_none_is_given_without_the_others(tmp_path: Path, shop: Shop) -> None:
    whole = sealing(tmp_path, shop)
    assert seal_parts(shop.settings) is None
    assert seal_parts(shop.settings.model_copy(update=_typed(whole))) is not None
    for name in whole:
        missing = {key: value for key, value in _typed(whole).items() if key != name}
        with pytest.raises(SettingsError, match=f"KESSAI_TOOLS_{name.upper()}: needed too"):
            seal_parts(shop.settings.model_copy(update=missing))
    (tmp_path / "seal-tools.jwk").chmod(0o640)
    with pytest.raises(SettingsError, match="others can use it"):
        seal_parts(shop.settings.model_copy(update=_typed(whole)))
    (tmp_path / "seal-tools.jwk").chmod(0o600)
    (tmp_path / "seal-tools.jwk").write_text("{}")
    with pytest.raises(SettingsError, match="no private Ed25519 JWK"):
        seal_parts(shop.settings.model_copy(update=_typed(whole)))


def _typed(settings: dict[str, Any]) -> dict[str, Any]:
    return settings | {"sealer_dsn": SecretStr(settings["sealer_dsn"])}


def test_where_nothing_is_sealed_there_is_no_such_place(tmp_path: Path) -> None:
    with running(StubDispatcher(), tmp_path) as server:
        assert server.client.post(f"{server.origin}/heads", content=b"x").status_code == 404
        (found,) = checks(None, asyncio.run(readyz(server.url)).record)
    assert not found.well
    assert "KESSAI_TOOLS_SEALER_DSN" in found.mend
