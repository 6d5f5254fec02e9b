"""What the tool server says of itself at `/readyz`, beside its MCP endpoint: for people, never to decide by.

It tells what a listing of tools cannot: a database role that is not its family's, a Maildir that cannot be written.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urljoin

import aiohttp
from pydantic import ValidationError

from host.tool_client.transport import open_http
from shared_contracts.seal import SealLag
from shared_contracts.strict_json import NotJsonError, strict_json

ANSWER_SECONDS = 4.0  # above what it takes to find out
_BYTES_MAX = 2048
_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class Told:
    """`ready` is None where nothing at that address tells, such as a balancer that passes the MCP endpoint alone.

    `record` says how far behind its seals are: where it does not know, or seals nothing, in a word; None is not told.
    """

    ready: bool | None
    reason: str
    record: SealLag | str | None = None


async def readyz(server_url: str) -> Told:
    """Ask once, without a token."""
    address = urljoin(server_url, "readyz")
    try:
        async with (
            asyncio.timeout(ANSWER_SECONDS),
            open_http(1) as http,
            http.get(address, allow_redirects=False) as response,
        ):
            return _told(response.status, await response.content.read(_BYTES_MAX), address)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        return Told(None, f"{address} cannot be asked: {type(error).__name__}")


def _told(status: int, body: bytes, address: str) -> Told:
    try:
        said = strict_json(body)
    except NotJsonError:
        said = None
    if status not in {200, 503} or not isinstance(said, dict) or not isinstance(said.get("ready"), bool):
        return Told(None, f"{address} answers HTTP {status} and does not tell")
    reason = said.get("reason")
    return Told(said["ready"], reason[:_CHARACTERS_MAX] if isinstance(reason, str) else "", _record(said.get("record")))


def _record(said: object) -> SealLag | str | None:
    if isinstance(said, str):
        return said[:_CHARACTERS_MAX]
    try:
        return SealLag.model_validate(said)
    except ValidationError:
        return None
