"""SMTP servers on loopback: one that nobody here wrote, and one that breaks off wherever it is told to.

async with honest_server() as server:               # aiosmtpd; server.messages
async with breaking_server("data_end", None) as server: # closes instead of answering the message's end
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

SILENT = "silent"  # no answer at all, until the client gives up or the test ends

_GOOD = {
    "connect": "220 ready",
    "ehlo": "250 localhost",
    "mail": "250 OK",
    "rcpt": "250 OK",
    "data": "354 go on",
    "data_end": "250 OK",
    "quit": "221 bye",
}


@dataclass
class SmtpServer:
    """Where it listens, what it took, and when a whole message had reached it."""

    port: int = 0
    messages: list[bytes] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    sender: str = ""
    said: bytearray = field(default_factory=bytearray)  # to an honest server, from the first word to the last
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def settings(self) -> dict[str, Any]:
        return {
            "smtp_host": "127.0.0.1",
            "smtp_port": self.port,
            "smtp_tls": "none",
            "mail_from": "Shop <returns@shop.example>",
        }

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802 — its name there
        self.messages.append(bytes(envelope.content or b""))
        self.recipients += [str(name) for name in envelope.rcpt_tos]
        self.sender = str(envelope.mail_from)
        return "250 OK"


class _Listening(SMTP):
    """Keeps the client's side of the dialogue beside what it means."""

    def data_received(self, data: bytes) -> None:
        self.event_handler.said.extend(data)
        super().data_received(data)


@asynccontextmanager
async def honest_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[SmtpServer]:
    told = SmtpServer()
    loop = asyncio.get_running_loop()
    made = partial(_Listening, told, hostname="mail.example", loop=loop)
    server = await loop.create_server(made, "127.0.0.1", 0, ssl=tls)
    told.port = server.sockets[0].getsockname()[1]
    try:
        yield told
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def breaking_server(at: str, reply: str | None) -> AsyncIterator[SmtpServer]:
    """A server that answers `reply` at that step of the dialogue; None closes the connection, SILENT hangs."""
    told = SmtpServer()
    replies: dict[str, str | None] = {**_GOOD, at: reply}

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            step = "connect"
            while await _answer(told, replies[step], writer) and step != "quit":
                step = await _next_step(told, step, reader)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has left
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    told.port = server.sockets[0].getsockname()[1]
    try:
        yield told
    finally:
        told.ended.set()
        server.close()


async def _answer(told: SmtpServer, reply: str | None, writer: asyncio.StreamWriter) -> bool:
    if reply is None:
        return False
    if reply == SILENT:
        await told.ended.wait()
        return False
    writer.write(f"{reply}\r\n".encode())
    await writer.drain()
    return True


async def _next_step(told: SmtpServer, step: str, reader: asyncio.StreamReader) -> str:
    if step == "data":
        told.messages.append(await reader.readuntil(b"\r\n.\r\n"))
        told.arrived.set()
        return "data_end"
    return (await reader.readuntil(b"\r\n")).decode().split()[0].lower()
