"""One client that sends as fast as a core can what has no right to anything, to loopback, until its time is over.

    python -m tests.support.flood PORT SECONDS KID

It prints how many requests it sent and what they met, as JSON. Each connection has some requests under way at a time.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvloop

from tests.support.tokens import b64

CONNECTIONS, AHEAD, SECONDS_MAX, SENT_MAX = 32, 8, 120.0, 2_000_000
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")
_CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_order","arguments":{}}}'


def kinds(port: int, kid: str) -> list[bytes]:
    """No token, one forged over a key that is known, a token that is none, another host's name, no HTTP."""
    header = b64(json.dumps({"alg": "EdDSA", "kid": kid, "typ": "at+jwt"}).encode())
    forged = f"{header}.{b64(json.dumps({'sub': 'x' * 500}).encode())}.{b64(b'7' * 64)}".encode()
    ours = b"127.0.0.1:%d" % port
    return [
        _post(ours),
        _post(ours, b"Authorization: Bearer " + forged),
        _post(ours, b"Authorization: Bearer " + b"x" * 4000),
        _post(b"elsewhere.example"),
        b"no http\r\n\r\n",
    ]


def _post(host: bytes, *more: bytes) -> bytes:
    lines = [b"POST /mcp HTTP/1.1", b"Host: " + host, b"Content-Type: application/json", *more]
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(_CALL), b"", _CALL])


@dataclass
class Flood:
    """`met` counts statuses; a connection that the server ended is met as `closed`."""

    port: int
    ends: float
    sent: int = 0
    met: Counter[str] = field(default_factory=Counter)

    async def send(self, request: bytes) -> None:
        """Send one kind, over one connection after another."""
        while self._goes_on():
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                while self._goes_on() and await self._round(reader, writer, request):
                    pass
            except ConnectionError:
                self.met["closed"] += 1
            finally:
                writer.close()

    async def _round(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bool:
        writer.write(request * AHEAD)
        self.sent += AHEAD
        answered = 0
        while answered < AHEAD:
            part = await reader.read(65536)
            if part == b"":
                self.met["closed"] += 1
                return False
            statuses = _STATUS.findall(part)
            answered += len(statuses)
            self.met.update(status.decode() for status in statuses)
        return True

    def _goes_on(self) -> bool:
        return time.monotonic() < self.ends and self.sent < SENT_MAX


async def _flood(port: int, seconds: float, kid: str) -> dict[str, Any]:
    flood = Flood(port, time.monotonic() + min(seconds, SECONDS_MAX))
    each = kinds(port, kid)
    await asyncio.gather(*(flood.send(each[number % len(each)]) for number in range(CONNECTIONS)))
    return {"sent": flood.sent, "met": dict(flood.met)}


@contextmanager
def flooding(port: int, seconds: float, kid: str) -> Iterator[subprocess.Popen[str]]:
    """Flood from another process; what it met is on its standard output once it has ended."""
    command = [sys.executable, "-m", "tests.support.flood", str(port), str(seconds), kid]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(_flood(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]))))  # noqa: T201
