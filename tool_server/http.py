"""HTTP/1.1 with an end to everything a caller may send: uvicorn's protocol, bounded in bytes and in time.

Invariant: a request that is not complete after MESSAGE_SECONDS_MAX, an answer that is not taken for as long, a head
above HEAD_BYTES_MAX, a message above MESSAGE_BYTES_MAX (its sender was refused long before), or more than PIPELINED_MAX
requests ahead of their answers end their connection. uvicorn itself waits for ever, and queues without end.
Nobody is shut out by connections on which nothing happens: above the number that is held, those that have asked for
nothing for the longest time give way to the newcomer.
"""

from __future__ import annotations

import asyncio
import re
from heapq import nsmallest
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX = 64 * 1024
MESSAGE_BYTES_MAX = 1024 * 1024  # four times the body limit: room for the answer to be read before the end
MESSAGE_SECONDS_MAX = 20.0
PIPELINED_MAX = 16  # behind the one in hand; the clients that we know send none
HEADER_BYTES = 32  # what one costs beside its letters, as HTTP/2 counts (RFC 9113 §6.5.2): 2,000 of them at most
ROOM_SHARE = 32  # one in so many gives way at once: to look through all for each newcomer is what a crowd of them wants
REFUSED_ABOVE = 2  # times the connections held, all of them at work, requests are refused: room is made before

_PATH = re.compile(rb"[/?#]")
_HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class TooMuchError(Exception):
    """A head has more bytes than any honest one, or more requests wait than any honest client sends ahead."""


class BoundedHttp(HttpToolsProtocol):
    """One connection. `_open` is a message that has begun and not ended; `_head` that its head has not.

    `_head_bytes` counts what of a head was read: a whole head may come at once, and more messages behind it.
    `asked_at` is when its last message was complete, or when it was made.
    """

    seconds_max = MESSAGE_SECONDS_MAX
    asked_at = 0.0
    _open = True  # a connection on which nothing is ever sent is bounded in the same way
    _head = True
    _bytes = 0
    _head_bytes = 0
    _deadline: asyncio.TimerHandle | None = None  # of a message that comes in
    _unread: asyncio.TimerHandle | None = None  # of what was answered and is not taken

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Start the clock of the first message."""
        super().connection_made(transport)
        self.asked_at = self.loop.time()
        self._make_room()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        self._unwatch()
        self._was_read()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, and count what belongs to a message that is still coming in."""
        super().data_received(data)
        if not self._open:
            self._unwatch()
            return
        self._bytes += len(data)
        if self._head and self._bytes > HEAD_BYTES_MAX:
            self.end(_HEAD_TOO_LARGE)
        elif self._bytes > MESSAGE_BYTES_MAX:
            self.end(b"")
        else:
            self._watch()

    def on_message_begin(self) -> None:
        """Note that a message comes in."""
        self._open = self._head = True
        self._bytes = self._head_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Count the address."""
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header. One that comes behind the body is none: no proxy has looked at it (RFC 9110 §6.5.1)."""
        self._count_head(len(name) + len(value) + HEADER_BYTES)
        if self._head:
            super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        """Say that it is no HTTP, or too much of it."""
        if self._is_ahead():
            self.end(b"")
        elif self._head_bytes > HEAD_BYTES_MAX:
            self.end(_HEAD_TOO_LARGE)
        else:
            super().send_400_response(msg)
            self._must_read()  # a connection that closes gives way to nobody

    def on_headers_complete(self) -> None:
        """Note that its head is complete."""
        self._head = False
        if self._is_ahead():
            raise TooMuchError
        self._believe_the_target()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that it is complete."""
        self._open = False
        self.asked_at = self.loop.time()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on to the next one; where this was the last, its answer is to be read."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._must_read()

    def pause_writing(self) -> None:
        """Note that what was answered is not taken."""
        super().pause_writing()
        self._must_read()

    def resume_writing(self) -> None:
        """Note that it is."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._was_read()

    def timeout_keep_alive_handler(self) -> None:
        """End what has been idle for long."""
        self.end(b"")

    def _is_ahead(self) -> bool:
        return len(self.pipeline) >= PIPELINED_MAX

    def _believe_the_target(self) -> None:
        """A host in the request's target outranks the Host header (RFC 9112 §3.2.2); whoever checks it must see it."""
        scheme, is_absolute, rest = self.url.partition(b"://")
        if is_absolute and b"/" not in scheme:
            host = _PATH.split(rest, 1)[0]
            self.headers[:] = [(name, host if name == b"host" else value) for name, value in self.headers]

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > HEAD_BYTES_MAX:
            raise TooMuchError  # what ends the parser's work; `send_400_response` answers

    def _make_room(self) -> None:
        """Whoever holds many connections and asks for nothing loses them first: what works asks again and again."""
        if self.limit_concurrency is not None and len(self.connections) * REFUSED_ABOVE > self.limit_concurrency:
            others = (one for one in self.connections if isinstance(one, BoundedHttp) and one is not self)
            waiting = (one for one in others if one.waits())
            room = len(self.connections) // ROOM_SHARE + 1
            for idle in nsmallest(room, waiting, key=lambda one: one.asked_at):
                idle.end(b"")

    def waits(self) -> bool:
        """Tell whether no whole request of it is in hand, or its answer is not taken."""
        answered = self.cycle is None or self.cycle.response_complete or self.flow.write_paused
        coming_in = self._open and not self._head and not self.pipeline  # what is unanswered is not whole yet
        return (answered or coming_in) and not self.transport.is_closing()

    def _watch(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds_max, self.end, b"")

    def _unwatch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _must_read(self) -> None:
        if self._unread is None:
            self._unread = self.loop.call_later(self.seconds_max, self.transport.abort)

    def _was_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def end(self, answer: bytes) -> None:
        """End the connection, with these bytes as its last; without any, what it has not read is given up."""
        transport: Any = self.transport
        if transport.is_closing():
            return
        if answer:
            transport.write(answer)
            transport.close()
            self._must_read()
        else:
            transport.abort()
