"""A tool server that does what it is told, down to the bytes: the one double of the wire.

It negotiates and lists as a real server does; `tools/call` runs the behaviour named in `behaviour`, or in
`by_order` for the call's order. What arrived is in `received`. Run as a program it serves until it is killed:

    python -m tests.support.hostile_server PORT [BEHAVIOUR]
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from shared_contracts.contract import CONTRACT_META
from shared_contracts.tools import TOOLS
from tests.support.hostile_wire import BEHAVIOURS, Received, Wire
from tests.support.misbehaviours import MODERN

LEGACY = "2025-11-25"


@dataclass
class FakeToolServer:
    """`era` is modern, legacy, or session (legacy with a session id); `negotiate` may stand in for discovery."""

    behaviour: str = "answers"
    by_order: dict[str, str] = field(default_factory=dict)
    era: str = "modern"
    negotiate: str | None = None
    contracts: dict[str, Any] = field(default_factory=dict)  # what the list says instead of our own
    unlisted: frozenset[str] = frozenset()
    capabilities: dict[str, Any] = field(default_factory=lambda: {"tools": {"listChanged": False}})
    released: asyncio.Event = field(default_factory=asyncio.Event)
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    sessions: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def calls(self) -> list[Received]:
        return [request for request in self.received if request.method == "tools/call"]

    async def __aenter__(self) -> Self:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                await self._serve(await _request(reader), writer)
        writer.close()
        self._tasks.discard(task)

    async def _serve(self, request: Received, writer: asyncio.StreamWriter) -> None:
        self.received.append(request)
        wire = Wire(self, writer, request)
        match request.method:
            case "server/discover" if self.negotiate is not None:
                await BEHAVIOURS[self.negotiate](wire)
            case "server/discover" if self.era == "modern":
                await wire.result({"supportedVersions": [MODERN], "capabilities": self.capabilities, **_CACHED})
            case "initialize" if self.era != "modern":
                await self._initialize(wire)
            case "notifications/initialized":
                await wire.raw(202, b"")
            case "tools/list":
                await wire.result({"tools": self._listed(), **_CACHED})
            case "tools/call":
                order = request.message["params"]["arguments"].get("order_id")
                await BEHAVIOURS[self.by_order.get(order, self.behaviour)](wire)
            case _:
                await wire.error(-32601, "Method not found", status=404)

    async def _initialize(self, wire: Wire) -> None:
        info = {"name": "fake", "version": "1"}
        result = {"protocolVersion": LEGACY, "capabilities": self.capabilities, "serverInfo": info}
        self.sessions += 1
        session = {"Mcp-Session-Id": f"s{self.sessions}"} if self.era == "session" else {}
        await wire.result(result, headers=session)

    def _listed(self) -> list[dict[str, Any]]:
        return [
            {
                "name": tool.name,
                "inputSchema": tool.input_schema,
                "outputSchema": tool.output_schema,
                "_meta": {
                    CONTRACT_META: self.contracts.get(
                        tool.name, {"version": tool.version, "schema_digest": tool.schema_digest}
                    )
                },
            }
            for tool in TOOLS.values()
            if tool.name not in self.unlisted
        ]


_CACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


async def _request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received({":request": head[0], **headers}, json.loads(body) if body else {})


async def _serve_for_ever(port: int, act: str) -> None:
    async with FakeToolServer(port=port, behaviour=act) as server:
        print("listening", server.port, flush=True)  # noqa: T201 - the parent waits for this line
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve_for_ever(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "answers"))
