"""The wire: one POST per request over a kept pool, and every failure an answer to that request alone.

An exception that leaves a transport ends the SDK's task group and with it everybody's calls; so none does.
Nothing of the environment is used (proxy, netrc), no redirect is followed, no cookie kept, no body unpacked.
A connection that the server closes while a request is on it counts as one that may have delivered it; that nobody
listens at the address right afterwards shows that the server's process died, which no proxy's hang-up does.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import aiohttp
import httpx2
import orjson

from host.domain.outcome import Lost, NotMcp, NotSent, TimedOut, WireResult
from host.tool_client.answer import Asked, Head, Message, read_answer, without_hints
from host.tool_client.exchange import Exchange, current_exchange
from host.tool_client.knock import nobody_listens

KEEP_ALIVE_SECONDS = 4.0  # below the 5 s after which uvicorn closes: else each idle pause risks a lost answer
CONNECT_SECONDS_MAX = 3.0  # covers one lost SYN; includes the wait for a free connection
CONNECT_SHARE = 0.8  # of what is left, so that a connection that never came is told from an answer that did not
NOTICE_SECONDS_MAX = 1.0  # everybody's first call waits behind it, and nothing is answered to it
NEVER_DELIVERED = -31503  # only between this module and the SDK; lies outside JSON-RPC's reserved range

_FORWARDED = frozenset({"accept", "content-type"})


def open_http(connections_max: int) -> aiohttp.ClientSession:
    """The pool; to be closed by whoever opened it."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections_max, keepalive_timeout=KEEP_ALIVE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        trust_env=False,
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Accept-Encoding"),
    )


class Wire(httpx2.AsyncBaseTransport):
    """Sends what the SDK wrote to one URL and hands back one checked JSON-RPC message."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = url

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request of the SDK; never raises but for cancellation."""
        if request.method != "POST":
            return httpx2.Response(405, request=request)  # no stream of the server's own, no session to end
        message: dict[str, Any] = orjson.loads(request.content)
        if "id" not in message:
            return await self._notify(request, message["method"])
        exchange = current_exchange()
        asked = Asked(message["id"], exchange.token, "mcp-session-id" in request.headers)
        answer = await self._exchange(request, exchange, asked)
        if isinstance(answer, Message):
            exchange.seen = answer.seen
            return _response(request, without_hints(answer) if message["method"] == "tools/list" else answer)
        exchange.seen = answer
        return _response(request, Message(_failure(asked.id), None, answer))

    async def _exchange(self, request: httpx2.Request, exchange: Exchange, asked: Asked) -> Message | WireResult:
        left = exchange.deadline - asyncio.get_running_loop().time()
        if not exchange.may_post():
            return NotSent("spent") if exchange.seen is None else exchange.seen
        if left <= 0:
            return NotSent("too_late")
        exchange.posts_left -= 1
        exchange.posted = True
        return await self._attempt(request, exchange.deadline, asked, min(CONNECT_SECONDS_MAX, left * CONNECT_SHARE))

    async def _attempt(
        self, request: httpx2.Request, deadline: float, asked: Asked, connect_seconds: float
    ) -> Message | WireResult:
        """Only the first two are proof that nothing left; both come before a connection is there."""
        try:
            async with asyncio.timeout_at(deadline):
                return await self._post(request, asked, connect_seconds)
        except aiohttp.ConnectionTimeoutError:
            return NotSent("connect_timeout")
        except aiohttp.ClientConnectorError:
            return NotSent("connect_failed")
        except TimeoutError:
            return TimedOut()
        except aiohttp.ClientResponseError:
            return NotMcp("not_http")
        except aiohttp.ClientPayloadError:
            return Lost("cut_off", await nobody_listens(self._url))
        except aiohttp.ClientError:
            return Lost("closed", await nobody_listens(self._url))

    async def _post(self, request: httpx2.Request, asked: Asked, connect_seconds: float) -> Message | WireResult:
        async with self._http.post(
            self._url,
            data=request.content,
            headers=_headers(request, asked.token),
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=connect_seconds),
        ) as response:
            head = Head(response.status, response.headers)
            return await read_answer(head, response.content.iter_any(), asked)

    async def _notify(self, request: httpx2.Request, method: str) -> httpx2.Response:
        """Of notices only the handshake's leaves; a call is cancelled by closing its connection."""
        if method == "notifications/initialized":
            exchange = current_exchange()
            soon = asyncio.get_running_loop().time() + NOTICE_SECONDS_MAX
            notice = replace(exchange, deadline=min(exchange.deadline, soon))
            await self._exchange(request, notice, Asked(0, exchange.token, in_session=False))
        return httpx2.Response(202, request=request)


def _headers(request: httpx2.Request, token: str) -> dict[str, str]:
    """The SDK's own, and nothing that a library adds by itself."""
    kept = {name: value for name, value in request.headers.items() if name in _FORWARDED or name.startswith("mcp-")}
    return kept | {"accept-encoding": "identity", "user-agent": "kessai", "authorization": f"Bearer {token}"}


def _response(request: httpx2.Request, message: Message) -> httpx2.Response:
    headers = {"content-type": "application/json"}
    if message.session is not None:
        headers["mcp-session-id"] = message.session
    return httpx2.Response(200, headers=headers, content=message.content, request=request)


def _failure(request_id: int | str) -> bytes:
    error = {"code": NEVER_DELIVERED, "message": "no answer"}
    return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "error": error})
