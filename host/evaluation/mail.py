"""The evaluation's own mail server: takes what the tool server sends, delivers nothing, and refuses what it is told to.

Invariant: what it says of a message it has seen itself: which were accepted, how often, and which it refused.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage

from host.stack.ports import LOOPBACK

BYTES_MAX = 1_000_000
SENDER = "returns@shop.example"
_REFUSED = b"550 5.1.1 no such mailbox here\r\n"


@dataclass(frozen=True, slots=True)
class Turned:
    """A message that was refused for good, after the whole of it had come."""

    at: datetime
    message_id: str
    order_id: str


@dataclass
class Mail:
    """`orders` are those that it knows in a message; the notices of `refused` are turned away.

    `accepted` counts messages by their order, as their own text names it, and their Message-ID; `sent_to` has whom the
    sender gave for each, whatever its headers say, and `numbers` what its text names, each on a line of its own.
    """

    orders: frozenset[str]
    refused: frozenset[str]
    port: int = 0
    accepted: Counter[tuple[str | None, str]] = field(default_factory=Counter)
    turned: list[Turned] = field(default_factory=list)
    sent_to: dict[tuple[str | None, str], set[str]] = field(default_factory=dict)
    numbers: dict[tuple[str | None, str], set[str]] = field(default_factory=dict)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak with one client; whatever it does ends this conversation alone."""
        to = set[str]()
        try:
            writer.write(b"220 mail.example\r\n")
            while line := await reader.readline():
                verb = line.strip().upper()[:4]
                if verb == b"RCPT":
                    to.add(line.decode().partition("<")[2].partition(">")[0])
                if verb == b"DATA":
                    writer.write(b"354 go on\r\n")
                    writer.write(self._judge(await reader.readuntil(b"\r\n.\r\n"), to))
                    to = set[str]()
                else:
                    writer.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 ok\r\n")
                await writer.drain()
                if verb == b"QUIT":
                    return
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # the client is gone, or sends what is no mail
        finally:
            writer.close()

    def unplaced(self) -> tuple[str, ...]:
        """Name the messages that were taken and name no order that is known."""
        return tuple(message_id for about, message_id in self.accepted if about is None)

    def of(self, order: str) -> dict[str, int]:
        """Tell how often each message about an order was taken."""
        return {message_id: times for (about, message_id), times in self.accepted.items() if about == order}

    def astray(self, order: str, address: str | None) -> tuple[str, ...]:
        """Name the messages about an order that were taken for anybody else than this address."""
        return tuple(one for (about, one), to in self.sent_to.items() if about == order and to != {address})

    def named(self, order: str) -> dict[str, tuple[str, ...]]:
        """Give the numbers that each message about an order names."""
        return {one: tuple(sorted(named)) for (about, one), named in self.numbers.items() if about == order}

    def _judge(self, content: bytes, to: set[str]) -> bytes:
        message = message_from_bytes(content, policy=policy.default)
        message_id, named = str(message["Message-ID"]), _numbers(message)
        order = next((one for one in named if one in self.orders), None)
        if order in self.refused:
            self.turned.append(Turned(datetime.now(UTC), message_id, str(order)))
            return _REFUSED
        self.accepted[order, message_id] += 1
        self.sent_to.setdefault((order, message_id), set()).update(to)
        self.numbers.setdefault((order, message_id), set()).update(named)
        return b"250 ok\r\n"


def _numbers(message: EmailMessage) -> list[str]:
    """Find what the body names, each behind a colon on a line of its own: its order and its return."""
    return [line.rstrip().rpartition(": ")[2] for line in message.get_content().splitlines() if ": " in line]


@asynccontextmanager
async def mail_server(orders: frozenset[str], refused: frozenset[str]) -> AsyncIterator[Mail]:
    """Listen on a free loopback port for as long as the block lasts."""
    mail = Mail(orders, refused)
    server = await asyncio.start_server(mail.talk, LOOPBACK, 0, limit=BYTES_MAX)
    mail.port = server.sockets[0].getsockname()[1]
    try:
        yield mail
    finally:
        server.close()
