"""One request on its connection as a double of a tool server has it, and every way to answer it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tests.support.results import RESULTS

BEHAVIOURS: dict[str, Behaviour] = {}


@dataclass
class Received:
    """One request as it came."""

    headers: dict[str, str]
    message: dict[str, Any]

    @property
    def method(self) -> str:
        return str(self.message.get("method"))


class Server(Protocol):
    """What a behaviour may look at beyond its own request."""

    released: asyncio.Event
    by_order: dict[str, str]
    garble: Callable[[bytes], bytes]

    @property
    def url(self) -> str: ...


@dataclass
class Wire:
    """One request on its connection, and the ways to answer it."""

    server: Server
    writer: asyncio.StreamWriter
    request: Received

    @property
    def id(self) -> Any:
        return self.request.message.get("id")

    @property
    def good(self) -> dict[str, Any]:
        """A result that fits a tool's contract: the called one's, or that of get_order."""
        structured = RESULTS[self.request.message["params"].get("name", "get_order")]
        return {"content": [], "structuredContent": structured, "resultType": "complete"}

    async def bytes(self, *parts: bytes) -> None:
        for part in parts:
            if self.writer.is_closing():  # uvloop minds
                raise ConnectionResetError
            self.writer.write(part)
            await self.writer.drain()

    async def raw(
        self, status: int, body: bytes, media: str = "application/json", headers: dict[str, str] | None = None
    ) -> None:
        fields = {"Content-Type": media, "Content-Length": str(len(body)), **(headers or {})}
        lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in fields.items())]
        await self.bytes("\r\n".join([*lines, "", ""]).encode() + body)

    async def json(self, message: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        await self.raw(status, json.dumps(message).encode(), headers=headers)

    async def result(self, result: Any, headers: dict[str, str] | None = None) -> None:
        await self.json({"jsonrpc": "2.0", "id": self.id, "result": result}, headers=headers)

    async def error(
        self, code: int, message: str, data: Any = None, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        await self.json({"jsonrpc": "2.0", "id": self.id, "error": error}, status, headers)

    async def tool_error(self, meta: Any, text: str = "", structured: Any = None) -> None:
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True}
        result |= {"resultType": "complete", "_meta": meta}
        await self.result(result if structured is None else result | {"structuredContent": structured})

    async def events(self, *messages: Any, then: str = "end") -> None:
        """An event stream; `then` is end, hold (stays open) or cut (breaks off)."""
        await self.bytes(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for message in messages:
            await self.event(message)
        if then == "hold":
            await self.server.released.wait()
        if then != "cut":
            await self.bytes(b"0\r\n\r\n")
        else:
            self.hang_up()

    async def event(self, message: Any) -> None:
        text = message if isinstance(message, str) else json.dumps(message)
        event = f"event: message\r\ndata: {text}\r\n\r\n".encode()
        await self.bytes(b"%x\r\n%s\r\n" % (len(event), event))

    def answer(self) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": self.id, "result": self.good}

    def hang_up(self) -> None:
        self.writer.close()
        raise ConnectionResetError


Behaviour = Callable[[Wire], Awaitable[None]]


def behaviour(act: Behaviour) -> Behaviour:
    BEHAVIOURS[act.__name__] = act
    return act
