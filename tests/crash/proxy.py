"""A proxy of the tests' own between a worker and the tool server, which does to single calls what networks do.

Each request goes over a connection of its own, so that what happens to one happens to no other. Calls are known by the
tool that their header names; whatever no act is set for passes.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

WAIT_SECONDS = 30.0
Change = Callable[[dict[str, Any]], None]  # of what a tool has answered, in place


class Act(Enum):
    """What becomes of one request."""

    PASS = auto()
    LOSE = auto()  # hang up after it was read; the server never sees it
    LOSE_ANSWER = auto()  # the server works on it to the end, and nobody hears of it
    GATEWAY_TIMEOUT = auto()  # 504, and the server never sees it
    LATE_GATEWAY_TIMEOUT = auto()  # 504, while the server works on it to the end
    HOLD = auto()  # it waits on the wire until it is released
    HOLD_ANSWER = auto()  # the server has worked on it, and the answer waits
    LEAVE_BEHIND = auto()  # hang up, and send it on once it is released: it arrives late
    CHANGE_ANSWER = auto()  # somebody on the way makes another answer of it


@dataclass
class Proxy:
    """`port` is where it listens. Everything that a test calls is thread-safe and bounded."""

    upstream: int
    port: int = 0
    served: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _acts: defaultdict[str, deque[Act]] = field(default_factory=lambda: defaultdict(deque))
    _changes: dict[str, Change] = field(default_factory=dict)
    _held: defaultdict[str, list[asyncio.Event]] = field(default_factory=lambda: defaultdict(list))
    _done: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def next(self, tool: str, *acts: Act) -> None:
        """Do this to the next calls of a tool, one each."""
        with self._changed:
            self._acts[tool].extend(acts)

    def change(self, tool: str, change: Change) -> None:
        """Make another answer of the next one of a tool."""
        with self._changed:
            self._changes[tool] = change
        self.next(tool, Act.CHANGE_ANSWER)

    def wait_held(self, tool: str, count: int = 1) -> None:
        """Until so many calls of a tool wait here."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._held[tool]) >= count, WAIT_SECONDS), f"no {tool} arrived"

    def wait_served(self, what: str, count: int) -> None:
        """Until the server has answered so many of them."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.served[what] >= count, WAIT_SECONDS), f"no {what} was answered"

    def release(self, tool: str) -> None:
        """Let the call that has waited longest go on, and wait until it has been worked on."""
        with self._changed:
            held, done = self._held[tool].pop(0), self._done[tool]
            self._loop.call_soon_threadsafe(held.set)
            assert self._changed.wait_for(lambda: self._done[tool] > done, WAIT_SECONDS), f"{tool} was not worked on"

    # -- its own loop, in a thread ------------------------------------------------------------------------------

    async def serve(self, listening: threading.Event, stop: asyncio.Event) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        listening.set()
        await stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._one(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                head = await reader.readuntil(b"\r\n\r\n")
                tool, length = _read(head)
                request = _addressed(head, self.upstream) + await reader.readexactly(length)
                await self._do(self._act(tool), tool, request, writer)
        finally:
            await _closed(writer)

    def _act(self, tool: str) -> Act:
        with self._changed:
            return self._acts[tool].popleft() if self._acts[tool] else Act.PASS

    async def _do(self, act: Act, tool: str, request: bytes, writer: asyncio.StreamWriter) -> None:
        if act is Act.LOSE:
            return
        if act is Act.GATEWAY_TIMEOUT:
            writer.write(_TIMEOUT)
            return
        if act is Act.LEAVE_BEHIND:
            writer.close()
        if act in {Act.HOLD, Act.LEAVE_BEHIND}:
            await self._hold(tool)
        answer = await self._ask(request)
        self._tell(self.served, tool)
        if act is Act.HOLD_ANSWER:
            await self._hold(tool)
        self._tell(self._done, tool)
        if act in {Act.LOSE_ANSWER, Act.LEAVE_BEHIND}:
            return
        if act is Act.CHANGE_ANSWER:
            answer = _rewritten(answer, self._changes[tool])
        writer.write(_TIMEOUT if act is Act.LATE_GATEWAY_TIMEOUT else answer)
        await writer.drain()

    def _tell(self, counter: defaultdict[str, int], tool: str) -> None:
        with self._changed:
            counter[tool] += 1
            self._changed.notify_all()

    async def _hold(self, tool: str) -> None:
        released = asyncio.Event()
        with self._changed:
            self._held[tool].append(released)
            self._changed.notify_all()
        await released.wait()

    async def _ask(self, request: bytes) -> bytes:
        """A connection that closes after its answer gives the whole of it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        try:
            writer.write(request)
            return await reader.read()
        finally:
            await _closed(writer)


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


_TIMEOUT = b"HTTP/1.1 504 Gateway Timeout\r\nContent-Type: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def _read(head: bytes) -> tuple[str, int]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    return headers.get("mcp-name", headers.get("mcp-method", "-")), int(headers.get("content-length", "0"))


def _rewritten(answer: bytes, change: Change) -> bytes:
    """The same answer with another result in it, which says its own length."""
    head, _, body = answer.partition(b"\r\n\r\n")
    message = json.loads(body)
    change(message["result"]["structuredContent"])
    changed = json.dumps(message).encode()
    kept = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length:")]
    return b"\r\n".join([*kept, b"Content-Length: %d" % len(changed), b"", changed])


def _addressed(head: bytes, port: int) -> bytes:
    """As the tool server wants to be called, and with a connection that ends."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [line for line in lines if line.partition(b":")[0].lower() not in {b"host", b"connection"}]
    return b"\r\n".join([first, b"Host: 127.0.0.1:%d" % port, b"Connection: close", *kept, b"", b""])


@contextmanager
def proxy(upstream: int) -> Iterator[Proxy]:
    made, listening, stop = Proxy(upstream), threading.Event(), asyncio.Event()
    thread = threading.Thread(target=lambda: asyncio.run(made.serve(listening, stop)), name="proxy")
    thread.start()
    try:
        assert listening.wait(WAIT_SECONDS)
        yield made
    finally:
        made._loop.call_soon_threadsafe(stop.set)
        thread.join(WAIT_SECONDS)
