"""The evaluation's own wire between worker and database: lets a commit happen, and keeps its answer from the worker.

    worker ──► wire ──► database       the statement that stores an answer is passed on, the database says that it is
                │                      done, and the connection breaks before the worker hears of it
                └── what the database said

Invariant: a commit is known by the case that stands in what it stores, and is noted once the database has said that it
is done; one that the database refuses is passed back as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from psycopg.conninfo import make_conninfo

from host.stack.ports import LOOPBACK

MESSAGE_BYTES_MAX = 64_000_000
_ENDS_BATCH = (b"S", b"Q")  # Sync, Query: the database answers now
_READY, _DONE, _REFUSED = b"Z", b"C", b"E"
_IDLE = b"I"  # no transaction is open any more
Note = Callable[[str, str], None]


@dataclass
class _Link:
    """One connection of the worker's; `cut` is the order whose commit's answer is kept back."""

    cut: tuple[bytes, str] | None = None
    kept: list[bytes] = field(default_factory=list)


@dataclass
class CommitWire:
    """`upstream` is the database's port, `port` this one's; `note` is told the order and what was seen."""

    upstream: int
    note: Note
    port: int = 0
    _armed: dict[bytes, str] = field(default_factory=dict)

    def dsn(self, dsn: str) -> str:
        """Give a connection string that comes by here."""
        return make_conninfo(dsn, host=LOOPBACK, port=self.port, sslmode="disable", gssencmode="disable")

    def arm(self, workflow_id: str, order_id: str) -> None:
        """Cut at the next commit that stores something of this case."""
        self._armed[f'"{workflow_id}"'.encode()] = order_id  # as it stands in a document, and in no question

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass everything on, until one side hangs up or a commit's answer is lost."""
        link = _Link()
        try:
            down, up = await asyncio.open_connection(LOOPBACK, self.upstream)
        except OSError:
            writer.transport.abort()
            return
        ways = (self._ask(link, reader, up), self._answer(link, down, writer))
        tasks = [asyncio.create_task(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for one in (up, writer):
                one.transport.abort()

    async def _ask(self, link: _Link, reader: asyncio.StreamReader, up: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            up.write(await _untyped(reader))
            asked = b""
            while True:
                kind, message = await _typed(reader)
                asked += message
                if kind in _ENDS_BATCH:
                    link.cut = self._due(asked)
                    asked = b""
                up.write(message)
                await up.drain()

    def _due(self, asked: bytes) -> tuple[bytes, str] | None:
        found = next((one for one in self._armed if one in asked), None)
        return None if found is None else (found, self._armed.pop(found))

    async def _answer(self, link: _Link, down: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                kind, message = await _typed(down)
                if link.cut is None:
                    writer.write(message)
                    await writer.drain()
                    continue
                link.kept.append(message)
                if kind == _READY and self._lost(link):
                    return
                if kind == _READY:
                    writer.write(b"".join(link.kept))
                    link.kept, link.cut = [], None

    def _lost(self, link: _Link) -> bool:
        """Tell whether it was committed, and note so; what was refused waits for the next."""
        said = [message[:1] for message in link.kept]
        if link.cut is None:
            return False
        if _REFUSED in said or _DONE not in said or link.kept[-1][5:6] != _IDLE:
            self._armed[link.cut[0]] = link.cut[1]
            return False
        done = next(message for message in link.kept if message[:1] == _DONE)
        words, size = done[5:].rstrip(b"\0").decode(errors="replace"), sum(map(len, link.kept))
        self.note(link.cut[1], f"the database said “{words}” of the commit; {size} bytes never reached the worker")
        return True


@asynccontextmanager
async def commit_wire(upstream: int, note: Note) -> AsyncIterator[CommitWire]:
    """Listen on a free loopback port for as long as the block lasts."""
    made = CommitWire(upstream, note)
    server = await asyncio.start_server(made.talk, LOOPBACK, 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


async def _untyped(reader: asyncio.StreamReader) -> bytes:
    """Read the message that begins a connection."""
    length = await reader.readexactly(4)
    return length + await _rest(reader, length, 4)


async def _typed(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Read a message of any later kind, with its kind's letter."""
    head = await reader.readexactly(5)
    return head[:1], head + await _rest(reader, head[1:], 4)


async def _rest(reader: asyncio.StreamReader, length: bytes, counted: int) -> bytes:
    size = int.from_bytes(length, "big") - counted
    if not 0 <= size <= MESSAGE_BYTES_MAX:
        raise ConnectionError("this is not the database's protocol")
    return await reader.readexactly(size)
