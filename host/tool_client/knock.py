"""Whether anybody still listens at an address where a connection has just broken. It says nothing to whoever answers.

Refused: nobody, since the process that listened there has died. Open, and it stays open: somebody, be it a proxy or a
balancer in front of a dead server. Open, and broken off: knock again, for a dying process gives up its connections one
by one, and its listener among them.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

KNOCKS_MAX = 4
OPEN_SECONDS_MAX = 0.25  # a refusal comes at once; whoever is silent has not refused
STAYS_SECONDS = 0.05  # by then a dying process is dead
_PORTS = {"http": 80, "https": 443}


async def nobody_listens(url: str) -> bool:
    """Knock a few times; True is certain, False is not. Takes at most about a second, mostly none at all."""
    parts = urlsplit(url)
    port = parts.port if parts.port is not None else _PORTS[parts.scheme]
    for _ in range(KNOCKS_MAX):
        try:
            async with asyncio.timeout(OPEN_SECONDS_MAX):
                reader, writer = await asyncio.open_connection(parts.hostname, port)
        except ConnectionRefusedError:
            return True
        except (OSError, TimeoutError):
            return False
        try:
            if await _stays_open(reader):
                return False
        finally:
            writer.close()
    return False


async def _stays_open(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(STAYS_SECONDS):
            return await reader.read(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False
