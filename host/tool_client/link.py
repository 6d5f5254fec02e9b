"""One negotiated SDK client, alive in a task of its own: the SDK wants to be left by the task that entered it.

Invariant: nobody gets the session before negotiation has ended, and a link that is let go ends only when its
last user has its answer; so a renegotiation never cuts off another caller's write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION, Implementation
from pydantic import ValidationError

from host.domain.outcome import NotMcp, NotSent, RpcError, WireResult
from host.tool_client.exchange import Exchange, exchange_for_good

NEGOTIATION_SECONDS = 8.0  # below the SDK's own 10 s, so that it is we who know why it ended
_POSTS = 4  # discover, once more at a version the server named, initialize, initialized
_INFO = Implementation(name="kessai", version="1")

log = logging.getLogger(__name__)


class NotLinkedError(Exception):
    """Negotiation failed; `seen` is what its last request met. No request of a caller has left."""

    def __init__(self, seen: WireResult) -> None:
        super().__init__(repr(seen))
        self.seen = seen


class Link:
    """Starts negotiating at once; `ended` is true when it can no longer be used."""

    def __init__(self, url: str, http: httpx2.AsyncClient, token: str, generation: int) -> None:
        loop = asyncio.get_running_loop()
        self.generation = generation
        self.ready: asyncio.Future[Client] = loop.create_future()
        self._users = 0
        self._retired = False
        self._let_go = asyncio.Event()
        self._exchange = Exchange(token, loop.time() + NEGOTIATION_SECONDS, _POSTS)
        self._task = loop.create_task(self._own(url, http), name="tool server link")
        self._task.add_done_callback(self._ended)

    @property
    def ended(self) -> bool:
        """No new user may take it."""
        return self._retired or self._task.done()

    @property
    def gone(self) -> bool:
        """Nobody uses it any more, and its task is over."""
        return self._task.done()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Keep it alive, also when it is retired meanwhile."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._maybe_let_go()

    def retire(self) -> None:
        """Let it end as soon as nobody uses it."""
        self._retired = True
        self._maybe_let_go()

    async def close(self) -> None:
        """End it now; who still waits for an answer is told that the client closed."""
        self._retired = True
        self._let_go.set()
        if not self.ready.done():
            self._task.cancel()
        await asyncio.wait([self._task])

    def _maybe_let_go(self) -> None:
        if self._retired and self._users == 0:
            self._let_go.set()

    async def _own(self, url: str, http: httpx2.AsyncClient) -> None:
        exchange_for_good(self._exchange)  # the handshake's last notice leaves after negotiation has ended
        transport = streamable_http_client(url, http_client=http, terminate_on_close=False)
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(Client(transport, mode="auto", client_info=_INFO, cache=None))
                log.info("negotiated MCP %s", client.protocol_version)
                self.ready.set_result(client)
                await self._let_go.wait()
        except* (MCPError, RuntimeError, ValidationError, TimeoutError) as failed:
            log.info("the link to the tool server ended: %s", _names(failed))  # who waits for it tells why
            self._refuse(self._exchange.seen if self._exchange.seen is not None else _own_verdict(failed))

    def _refuse(self, seen: WireResult) -> None:
        if not self.ready.done():
            self.ready.set_exception(NotLinkedError(seen))
            self.ready.exception()  # it may be that nobody waits, and then nothing is wrong

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error("the link to the tool server broke: %s", type(task.exception()).__name__)
        self._refuse(NotSent("client_closed"))


def _own_verdict(failed: BaseExceptionGroup[Exception]) -> WireResult:
    """All answers were well-formed, yet the SDK would not go on: no common version, or no such result."""
    if failed.subgroup(ValidationError) is not None:
        return NotMcp("negotiation")
    return RpcError(UNSUPPORTED_PROTOCOL_VERSION)


def _names(failed: BaseExceptionGroup[Exception]) -> str:
    """What kind it was, and none of its words: they may repeat what was sent."""
    return ", ".join(
        _names(error) if isinstance(error, BaseExceptionGroup) else type(error).__name__ for error in failed.exceptions
    )
