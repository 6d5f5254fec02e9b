"""Brings the tool server our newest head and fetches its own: one small request beside its MCP endpoint.

Invariant: what comes back is bounded and believed by nobody here; whoever keeps it verifies its signature.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin

import aiohttp

from host.tool_client.transport import open_http
from shared_contracts.seal import HEAD_CHARACTERS_MAX, PATH
from shared_contracts.strict_json import NotJsonError, strict_json

ANSWER_SECONDS = 4.0
_BYTES_MAX = HEAD_CHARACTERS_MAX + 200


async def exchange(server_url: str, head: str) -> str | None:
    """Give the tool server's newest head, or None where there is none or it cannot be asked."""
    try:
        async with (
            asyncio.timeout(ANSWER_SECONDS),
            open_http(1) as http,
            http.post(urljoin(server_url, PATH), data=head.encode("ascii"), allow_redirects=False) as response,
        ):
            body = await response.content.read(_BYTES_MAX)
            return _head(body) if response.status == 200 else None
    except (aiohttp.ClientError, OSError, TimeoutError):
        return None


def _head(body: bytes) -> str | None:
    try:
        said = strict_json(body)
    except NotJsonError:
        return None
    head = said.get("head") if isinstance(said, dict) else None
    return head if isinstance(head, str) else None
