"""A TCP proxy between a tool server and its database, to shut, to open again, and to cut at a COMMIT."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from shared_contracts.contract import FAMILIES
from tests.support.tool_shop import Shop
from tool_server.settings import Settings


@dataclass
class Wire:
    """What stands between server and database: open, closed, or cut at the next COMMIT."""

    port: int = 0
    is_open: bool = True
    cut: str = ""
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def close(self) -> None:
        self.is_open = False
        for writer in self.writers:
            writer.close()

    def open(self) -> None:
        self.is_open = True

    def cut_at_commit(self, *, after: bool) -> None:
        self.cut = "after" if after else "before"


@asynccontextmanager
async def gate(shop: Shop, settings: Settings | None = None) -> AsyncIterator[tuple[Settings, Wire]]:
    """A TCP proxy on loopback before the database, and settings that go through it."""
    wire = Wire()
    plain = shop.settings if settings is None else settings
    given_dsn = {name: getattr(plain, f"{name}_dsn").get_secret_value() for name in FAMILIES}
    target = conninfo_to_dict(given_dsn["orders"])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not wire.is_open:
            writer.close()
            return
        there, back = await asyncio.open_unix_connection(f"{target['host']}/.s.PGSQL.{target['port']}")
        wire.writers |= {writer, back}
        await asyncio.gather(_carry(reader, back, wire, writer), _carry(there, writer, None, back))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    through = {
        f"{name}_dsn": make_conninfo(dsn, host="127.0.0.1", port=wire.port, sslmode="disable")
        for name, dsn in given_dsn.items()
    }
    try:
        yield Settings(**{**dict(plain), **through}), wire
    finally:
        wire.close()
        server.close()


async def _carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wire: Wire | None, other: asyncio.StreamWriter
) -> None:
    try:
        while data := await reader.read(65536):
            cut = wire.cut if wire is not None and b"COMMIT" in data else ""
            if cut != "before":
                writer.write(data)
                await writer.drain()
            if cut != "":
                assert wire is not None
                wire.cut = ""
                break
    except ConnectionError:
        pass  # one side has left; the other is closed below
    finally:
        other.close()
        writer.close()
