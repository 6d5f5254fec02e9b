"""In front of a real tool server, a network that does not know the newest revision: discovery finds nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

UNKNOWN = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}'


@asynccontextmanager
async def older_relay(port: int) -> AsyncIterator[str]:
    """The address of a relay to 127.0.0.1:`port`, one request per connection."""

    under_way: set[asyncio.Task[None]] = set()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        length = next(int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:"))
        body = await reader.readexactly(length)
        if json.loads(body)["method"] == "server/discover":
            size = b"Content-Length: %d" % len(UNKNOWN)
            answer = [b"HTTP/1.1 404 Not Found", b"Content-Type: application/json", b"Connection: close", size]
            writer.write(b"\r\n".join([*answer, b"", UNKNOWN]))
        else:
            kept = [line for line in lines if line and not line.lower().startswith((b"host:", b"connection:"))]
            await _forward(port, b"\r\n".join([*kept, b"Connection: close"]), body, writer)
        writer.close()
        with suppress(ConnectionError):  # who has the answer may be gone first
            await writer.wait_closed()

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    async with server:
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        finally:
            await asyncio.gather(*under_way, return_exceptions=True)


async def _forward(port: int, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
    behind, onward = await asyncio.open_connection("127.0.0.1", port)
    onward.write(head + b"\r\nHost: 127.0.0.1:%d\r\n\r\n" % port + body)
    while chunk := await behind.read(65536):
        writer.write(chunk)
        await writer.drain()
    onward.close()
    await onward.wait_closed()
