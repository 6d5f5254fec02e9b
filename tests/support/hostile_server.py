"""A tool server that does what it is told, down to the bytes: the one double of the wire.

It negotiates and lists as a real server does; `tools/call` runs the behaviour named in `behaviour`, or in
`by_order` for the call's order. What arrived is in `received`. Run as a program it serves until it is killed:

    python -m tests.support.hostile_server PORT [BEHAVIOUR]
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from shared_contracts.contract import CONTRACT_META, Risk, Tool
from shared_contracts.tools import TOOLS
from tests.support.hostile_wire import BEHAVIOURS, Received, Wire
from tests.support.misbehaviours import MODERN

LEGACY = "2025-11-25"


@dataclass
class FakeToolServer:
    """`era` is modern, legacy, or session (legacy with a session id); `negotiate` stands in for negotiation.

    `opened` holds negotiation back, `released` whatever waits in a behaviour.
    """

    behaviour: str = "answers"
    by_order: dict[str, str] = field(default_factory=dict)
    era: str = "modern"
    negotiate: str | None = None
    notice: str | None = None  # what is done with the handshake's last notice
    contracts: dict[str, Any] = field(default_factory=dict)  # what the list says instead of our own
    unlisted: frozenset[str] = frozenset()
    annotations: Callable[[Tool], Any] | None = None  # what the list says beside each contract; None: nothing
    schema: Any = None  # what the list says instead of every schema
    capabilities: dict[str, Any] = field(default_factory=lambda: {"tools": {"listChanged": False}})
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    forgetful: bool = False
    garble: Callable[[bytes], bytes] = bytes
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    left: int = 0
    sessions: int = 0
    port: int = 0
    tls: ssl.SSLContext | None = None
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        return f"http{'' if self.tls is None else 's'}://127.0.0.1:{self.port}/mcp"

    def methods(self) -> list[str]:
        return [request.method for request in self.received]

    def calls(self) -> list[Received]:
        return [request for request in self.received if request.method == "tools/call"]

    def forget_sessions(self) -> None:
        """As a restart does: the old session is answered with 404."""
        self.sessions += 1

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait, at most 5 s, until something that arrived or left makes it hold."""
        async with asyncio.timeout(5), self._news:
            await self._news.wait_for(holds)

    def __post_init__(self) -> None:
        self.opened.set()

    async def __aenter__(self) -> Self:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, ssl=self.tls)
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
                request = await _request(reader)
                self.received.append(request)
                await self._tell()
                await self._serve(Wire(self, writer, request))
        writer.close()
        self._tasks.discard(task)
        self.left += 1
        with suppress(asyncio.CancelledError):
            await self._tell()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def _serve(self, wire: Wire) -> None:
        request = wire.request
        match request.method:
            case "server/discover" | "initialize" if self.negotiate is not None:
                await BEHAVIOURS[self.negotiate](wire)
            case method if self.era == "session" and self._is_of_another_session(method, request):
                await wire.raw(404, b"")
            case "server/discover" if self.era == "modern":
                await self.opened.wait()
                await wire.result({"supportedVersions": [MODERN], "capabilities": self.capabilities, **_CACHED})
            case "initialize" if self.era != "modern":
                await self._initialize(wire)
            case "notifications/initialized":
                await (wire.raw(202, b"") if self.notice is None else BEHAVIOURS[self.notice](wire))
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
        session = {"Mcp-Session-Id": f"s{self.sessions}"} if self.era == "session" else {}
        await wire.result(result, headers=session)

    def _is_of_another_session(self, method: str, request: Received) -> bool:
        if self.forgetful:
            self.sessions += 1
        named = request.headers.get("mcp-session-id")
        return method not in {"server/discover", "initialize"} and named != f"s{self.sessions}"

    def _listed(self) -> list[dict[str, Any]]:
        return [
            {
                "name": tool.name,
                "inputSchema": tool.input_schema if self.schema is None else self.schema,
                "outputSchema": tool.output_schema if self.schema is None else self.schema,
                "_meta": {
                    CONTRACT_META: self.contracts.get(
                        tool.name, {"version": tool.version, "schema_digest": tool.schema_digest}
                    )
                },
                **({} if self.annotations is None else {"annotations": self.annotations(tool)}),
            }
            for tool in TOOLS.values()
            if tool.name not in self.unlisted
        ]


def hints_of(tool: Tool, *, told: bool = True) -> dict[str, bool]:
    """What a server of ours says of a tool; not `told`: the opposite in every respect."""
    lasting = tool.risk is Risk.IRREVERSIBLE_WRITE
    idempotent = not tool.writes or tool.idempotency_key != ""
    hints = zip(HINTS, (not tool.writes, lasting, idempotent, lasting), strict=True)
    return {name: hint is told for name, hint in hints}


HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
# what somebody may say of tools instead
LIES: dict[str, Callable[[Tool], Any]] = {
    "all true": lambda _: dict.fromkeys(HINTS, True),
    "all false": lambda _: dict.fromkeys(HINTS, False),
    "inverted": lambda tool: hints_of(tool, told=False),
    "nothing of it": lambda _: {},
    "a hint that is none": lambda _: {"readOnlyHint": "perhaps", "destructiveHint": [], "trusted": True},
    "no object": lambda _: "read-only",
}
_CACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


async def _request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received({":request": head[0], **headers}, json.loads(body) if body else {})


async def _serve_for_ever(port: int, act: str) -> None:
    """Writes a line when it listens and one for each call that arrived: the parent waits for lines."""
    async with FakeToolServer(port=port, behaviour=act) as server:
        sys.stdout.write(f"listening {server.port}\n")
        told = 0
        while True:
            sys.stdout.flush()
            async with server._news:
                await server._news.wait_for(lambda before=told: len(server.calls()) > before)
            told += 1
            sys.stdout.write("call\n")


if __name__ == "__main__":
    asyncio.run(_serve_for_ever(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "answers"))
