"""A token stands in the header of the request that it was made for and nowhere else, on the whole way of a return.

What counts as a part of one is any twelve characters of it, plain or as hexadecimal digits.
"""

from __future__ import annotations

import asyncio
import logging
import re
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from structlog.testing import capture_logs

from host.engine.drive import drive
from host.tool_client.client import ToolClient
from host.tool_client.gateway import Gateway
from host.tool_client.mint import Minter, SigningKey
from host.tool_client.pace import Pace, Rates
from host.tool_client.readiness import Listing, Ready
from shared_contracts.digest import digest
from shared_contracts.tools import TOOLS
from tests.support.engine import PINS, engine, owners, rows, take
from tests.support.scripted_planner import ScriptedPlanner
from tests.support.server import Server, message_of, running
from tests.support.smtp import honest_server
from tests.support.tool_orders import ASKED_AT, line, order
from tests.support.tool_prepared import ORDER, RETURN
from tests.support.tool_shop import Shop, open_shop
from tool_server.dispatch import Dispatcher
from tool_server.http import BoundedHttp

LENGTH = 12
OWN_PLACE = re.compile(rb"(?im)^authorization: bearer [\w.-]+\r$")


def windows(text: str, length: int) -> set[str]:
    return {text[at : at + length] for at in range(len(text) - length + 1)}


def told(text: str, tokens: list[str]) -> set[str]:
    """The parts of tokens that stand in the text."""
    plain = set().union(*(windows(token, LENGTH) for token in tokens))
    spelt = {part.encode().hex() for part in plain}
    return (plain & windows(text, LENGTH)) | (spelt & windows(text.lower(), 2 * LENGTH))


class Remembering(Minter):
    """Keeps what it mints."""

    def __init__(self, *trust: Any) -> None:
        super().__init__(*trust)
        self.minted: list[str] = []

    def _mint(self, *arguments: Any) -> str:
        token = super()._mint(*arguments)
        self.minted.append(token)
        return token


class Telling:
    """A connection's way out, which keeps what goes there."""

    def __init__(self, transport: asyncio.Transport, said: bytearray) -> None:
        self._transport, self._said = transport, said

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._said.extend(data)
        self._transport.write(data)


class Heard(BoundedHttp):
    """Keeps all bytes of each connection, both ways."""

    asked: list[bytearray]
    answered: list[bytearray]

    def connection_made(self, transport: Any) -> None:
        self._asked, answered = bytearray(), bytearray()
        self.asked.append(self._asked)
        self.answered.append(answered)
        super().connection_made(Telling(transport, answered))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        self._asked.extend(data)
        super().data_received(data)


def everything(connection: psycopg.Connection[Any]) -> str:
    """Every row of every table, as text."""
    tables = connection.execute(
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    ).fetchall()
    each = sql.SQL("SELECT string_agg(t::text, chr(10)) FROM {} AS t")
    return "\n".join(str(connection.execute(each.format(sql.Identifier(*one))).fetchall()) for one in sorted(tables))


async def returned(server: Server, minter: Minter, planner: ScriptedPlanner) -> tuple[str, str]:
    """Run a return to its end over the wire; gives where it stands and all that the host's database holds then."""
    async with ToolClient(server.url, minter.probe) as client:
        listing = Listing(client, TOOLS)
        assert isinstance(await listing.refresh(), Ready)
        gateway = Gateway(client, minter, listing, Pace(Rates(100.0, 100.0)))
        async with engine(gateway, planner) as parts:
            state = await drive(parts, await take(parts, requested_at=ASKED_AT.isoformat()))
            assert await rows(parts, "SELECT count(*) > 3, (SELECT count(*) > 3 FROM offer) FROM call") == [
                (True, True)
            ]
            with owners(parts) as connection:
                return state.task.state, everything(connection)


def test_no_part_of_a_token_is_in_what_a_planner_sees_in_arguments_bodies_logs_or_tables(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    Heard.asked, Heard.answered = [], []
    shop = open_shop(tmp_path, order("A-1", line("1"), tenant_id="acme-jp"), snapshot=PINS.order_snapshot)
    planner = ScriptedPlanner()
    with (
        caplog.at_level(logging.DEBUG),
        capture_logs() as logged,
        running(Dispatcher(shop.settings), tmp_path / "keys", Heard) as server,
    ):
        key = SigningKey(server.issuer.kid, server.issuer.private)
        minter = Remembering(key, server.issuer.name, server.issuer.resource)
        state, host = asyncio.run(returned(server, minter, planner))
    asked, answered = (b"\n".join(way) for way in (Heard.asked, Heard.answered))
    with psycopg.connect(shop.database.admin) as connection:
        tools = everything(connection)
    (mail,) = shop.mails()
    places = {
        "the planner": repr(planner.views) + repr(planner.shown), "the host's tables": host, "the tools' tables": tools,
        "requests": OWN_PLACE.sub(b"", asked).decode("latin-1"), "answers": answered.decode("latin-1"),
        "logs": caplog.text + repr(logged) + "".join(capfd.readouterr()), "the mail": mail.read_text("utf-8"),
    }  # fmt: skip
    assert (state, len(planner.views)) == ("COMPLETED", 4)
    assert len(minter.minted) >= 7
    assert {name: found for name, text in places.items() if (found := told(text, minter.minted))} == {}
    assert all(len(text) > 500 for text in places.values())
    assert len(OWN_PLACE.findall(asked)) >= len(minter.minted)
    assert all(token in asked.decode("latin-1") for token in minter.minted), "the look for them would find them"


def noticed(shop: Shop, directory: Path) -> list[str]:
    """Have a return made, its notice sent and that one corrected; gives the tokens that asked for it."""
    tokens: list[str] = []
    with running(Dispatcher(shop.settings), directory / "keys") as server:

        def ask(name: str, **more: Any) -> dict[str, Any]:
            arguments = {**ORDER, **more}
            bound = {"tool": name, "resource": arguments["order_id"], "arguments_sha256": digest(arguments)}
            details = {**bound, "idempotency_key": name, "requested_at": ASKED_AT.isoformat()}
            tokens.append(server.issuer.token(tenant_id="acme", details=details))
            result = message_of(server.call(name, arguments, token=tokens[-1]))["result"]
            assert not result.get("isError"), result
            return dict(result["structuredContent"])

        number = ask("create_return", **RETURN)["return_id"]
        notice = ask("send_return_notice", return_id=number)
        correction = ask("send_correction_notice", return_id=number, corrects=notice["message_id"])
        assert (notice["status"], correction["status"]) == ("sent", "sent")
    return tokens


@pytest.mark.parametrize("channel", ["smtp", "maildir"])
def test_no_notice_carries_a_part_of_the_token_that_asked_for_it(channel: str, tmp_path: Path) -> None:
    async def scene() -> tuple[list[str], list[bytes], str]:
        async with honest_server() as smtp:
            settings = smtp.settings() if channel == "smtp" else {}
            shop = await asyncio.to_thread(open_shop, tmp_path, order("A-1"), settings=settings)
            tokens = await asyncio.to_thread(noticed, shop, tmp_path)
        outbox = str(shop.rows("SELECT o::text, encode(o.content, 'escape') FROM notices.outbox AS o"))
        mails = smtp.messages if channel == "smtp" else [file.read_bytes() for file in shop.mails()]
        return tokens, mails, smtp.said.decode("latin-1") + outbox

    tokens, mails, said = asyncio.run(scene())
    assert (len(tokens), len(mails), said.count("RCPT TO")) == (3, 2, 2 if channel == "smtp" else 0)
    read = [message_from_bytes(mail, policy=policy.SMTP) for mail in mails]
    texts = [said, *(mail.decode("latin-1") for mail in mails), *(str(one.items()) + one.get_content() for one in read)]
    assert [told(text, tokens) for text in texts] == [set()] * 5
    assert told(f"said {tokens[1][30:42]}", tokens)
    assert told(tokens[2][50:62].encode().hex(), tokens)
