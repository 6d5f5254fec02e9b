"""Passes HTTP requests on to a tool server as they are: what the wires share that do something to some of them.

Invariant: status, headers and body come back as the tool server sent them; a connection that breaks there breaks here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web

from host.stack.ports import LOOPBACK

CONNECTIONS_MAX = 256
SECONDS_MAX = 60.0  # longer than any tool's timeout; whoever asked has hung up by then
_HOP = frozenset({"host", "connection", "content-length", "transfer-encoding", "keep-alive"})
Answer = Callable[[ClientSession, web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def listening(answer: Answer) -> AsyncIterator[int]:
    """Let requests be answered on a free loopback port, which is given, for as long as the block lasts."""
    connector = TCPConnector(limit=CONNECTIONS_MAX, keepalive_timeout=4.0)  # below that of the tool server
    session = ClientSession(
        connector=connector, cookie_jar=DummyCookieJar(), timeout=ClientTimeout(total=SECONDS_MAX),
        trust_env=False, auto_decompress=False, skip_auto_headers=("User-Agent", "Accept-Encoding"),
    )  # fmt: skip
    async with session as http:
        server = web.Server(lambda request: answer(http, request), access_log=None)
        listens = await asyncio.get_running_loop().create_server(server, LOOPBACK, 0)
        try:
            yield int(listens.sockets[0].getsockname()[1])
        finally:
            listens.close()
            await server.shutdown(1.0)


async def passed(http: ClientSession, request: web.BaseRequest, url: str) -> web.Response:
    """Ask there what was asked here, and give what comes back."""
    kept = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
    try:
        body = await request.read()
        async with http.request(request.method, url, data=body, headers=kept, allow_redirects=False) as got:
            back = {name: value for name, value in got.headers.items() if name.lower() not in _HOP}
            return web.Response(status=got.status, headers=back, body=await got.read())
    except (ClientError, OSError):
        return cut(request)  # as it would look without us


def cut(request: web.BaseRequest) -> web.Response:
    """Break the connection on which it was asked; what is given goes to nobody."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)
