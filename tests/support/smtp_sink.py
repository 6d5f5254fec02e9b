"""A mail server that takes every message and delivers none, on a free loopback port, for as long as the block lasts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import Message


@dataclass
class Sink:
    """What was accepted, in order; one that hangs up takes a message and does not say so."""

    hangs_up: bool = False
    port: int = 0
    messages: list[Message] = field(default_factory=list)


@contextmanager
def smtp_sink(*, hangs_up: bool = False) -> Iterator[Sink]:
    sink, loop, ready = Sink(hangs_up), asyncio.new_event_loop(), threading.Event()
    stop = asyncio.Event()

    async def serve() -> None:
        server = await asyncio.start_server(lambda r, w: _talk(r, w, sink), "127.0.0.1", 0)
        sink.port = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            await stop.wait()

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=work, name="smtp-sink")
    thread.start()
    try:
        assert ready.wait(10), "the mail sink did not start"
        yield sink
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sink: Sink) -> None:
    writer.write(b"220 sink.example\r\n")
    try:
        while line := await reader.readline():
            verb = line.strip().upper()[:4]
            if verb == b"DATA":
                writer.write(b"354 go on\r\n")
                content = (await reader.readuntil(b"\r\n.\r\n")).removesuffix(b".\r\n")
                sink.messages.append(message_from_bytes(content, policy=policy.default))
                if sink.hangs_up:
                    break
            writer.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 ok\r\n")
            if verb == b"QUIT":
                break
    except ConnectionError:
        pass
    finally:
        writer.close()
