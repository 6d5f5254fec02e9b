"""One process's way to one tool server: a pool, the link negotiated over it, and whether it may be used.

Invariant: at most one link takes new users, and a link whose server broke the protocol takes none. Restarting
the server costs nobody more than the outcome of a call that was under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

import httpx2
from mcp import Client, MCPError
from pydantic import ValidationError

from host.domain.outcome import HttpStatus, Lost, NotMcp, NotSent, RpcError, TimedOut, WireResult, broke_protocol
from host.tool_client.exchange import Exchange, exchanging
from host.tool_client.link import Link, NotLinkedError
from host.tool_client.quarantine import Quarantine
from host.tool_client.transport import Wire, open_http

BACKSTOP_SECONDS = 1.0  # the wire keeps the deadline, and knows what it cut; this only bounds what is before it

T = TypeVar("T")


class Connection:
    """Use as a context manager. Its links live in tasks of their own, so any task may use and close it."""

    def __init__(self, url: str, probe_token: Callable[[], str], connections_max: int) -> None:
        self._url = url
        self._probe_token = probe_token
        self._connections_max = connections_max
        self._quarantine = Quarantine()
        self._link: Link | None = None
        self._links: set[Link] = set()  # with those that only finish what they have
        self._closed = False

    async def __aenter__(self) -> Self:
        self._http = open_http(self._connections_max)
        self._sdk = httpx2.AsyncClient(transport=Wire(self._http, self._url), timeout=None, trust_env=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        for link in self._links:
            await link.close()
        await self._sdk.aclose()
        await self._http.close()

    async def converse(self, exchange: Exchange, work: Callable[[Client], Awaitable[T | WireResult]]) -> T | WireResult:
        """Do one piece of work with the SDK under an exchange; NotLinkedError where none of it could begin."""
        link, client = await self._linked(exchange.deadline)
        result: T | WireResult
        with link.used(), exchanging(exchange):
            try:
                async with asyncio.timeout_at(exchange.deadline + BACKSTOP_SECONDS):
                    result = await work(client)
            except MCPError:
                result = exchange.failure(Lost("client_closed"))
            except TimeoutError:
                result = exchange.failure(TimedOut())
            except ValidationError:  # a JSON-RPC result that is no result of this method
                result = NotMcp("not_mcp")
        self._note(link, result)
        return result

    async def _linked(self, deadline: float) -> tuple[Link, Client]:
        now = asyncio.get_running_loop().time()
        if self._closed:
            raise NotLinkedError(NotSent("client_closed"))
        if self._quarantine.isolated(now):
            raise NotLinkedError(NotSent("isolated"))
        link = self._link if self._link is not None and not self._link.ended else self._new_link()
        if not link.ready.done():
            await asyncio.wait({link.ready}, timeout=max(deadline - now, 0.0))
        if not link.ready.done():
            raise NotLinkedError(NotSent("not_negotiated"))
        failed = link.ready.exception()
        if isinstance(failed, NotLinkedError):
            self._note(link, failed.seen)
            raise NotLinkedError(failed.seen)
        return link, link.ready.result()

    def _new_link(self) -> Link:
        self._links = {link for link in self._links if not link.gone}
        self._link = Link(self._url, self._sdk, self._probe_token(), self._quarantine.generation)
        self._links.add(self._link)
        return self._link

    def _note(self, link: Link, result: object) -> None:
        """Whoever broke the protocol, or forgot the session, is negotiated with anew before the next call."""
        match result:
            case Lost(why="session_gone"):
                link.retire()
            case HttpStatus() | NotMcp() | RpcError() if broke_protocol(result):
                link.retire()
                self._quarantine.broke(link.generation, asyncio.get_running_loop().time())
            case NotSent() | TimedOut() | Lost():
                pass
            case _:
                self._quarantine.sound(link.generation)
