"""A load of HTTP requests that were written beforehand, with so many in flight, at little work for each."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
_END, _CHUNKS_END = b"\r\n\r\n", b"\r\n0\r\n\r\n"
ANSWERED = b'"isError":false'


class _Connection(asyncio.Protocol):
    """One request at a time, each as soon as the one before is answered."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._requests, self._got = requests, b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the loop gives it
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(exc or ConnectionError("closed under a request"))

    def next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self.ended.set_result(None)
            self._transport.close()
        else:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, found, body = self._got.partition(_END)
        length = _LENGTH.search(head + b"\r\n")
        whole = self._got.endswith(_CHUNKS_END) if length is None else len(body) >= int(length[1])
        if not found or not whole:
            return
        if not head.startswith(b"HTTP/1.1 200") or ANSWERED not in body:
            if not self.ended.done():
                self.ended.set_exception(RuntimeError(f"a call was refused: {self._got[:600]!r}"))
            return
        self._got = b""
        self.next()


async def run(port: int, requests: list[bytes], in_flight: int) -> float:
    """Send all of them, and give how many a second were answered; raises where one was refused."""
    loop, left = asyncio.get_running_loop(), iter(requests)
    made = [await loop.create_connection(lambda: _Connection(left), "127.0.0.1", port) for _ in range(in_flight)]
    began = time.perf_counter()
    for _, connection in made:
        connection.next()
    await asyncio.gather(*(connection.ended for _, connection in made))
    return len(requests) / (time.perf_counter() - began)
