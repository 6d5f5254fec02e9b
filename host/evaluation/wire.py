"""The evaluation's own wire between worker and tool server: does to single requests what networks do, and notes it.

    worker ──► wire ──► tool server        rate_limited      429, and the tool server never sees it
                │                          order_changed     passed on when the order is another at the shop
                │                          approver_revoked  passed on when the shop trusts the approver's key no more
                │                          timeout           worked on to the end, and the answer never comes
                └── what was done,         disconnect        worked on to the end, and the connection breaks
                    to which token         version_conflict  worked on to the end, and the row moves before the answer
                                           slow_answer       worked on when its time is over, and answered to nobody
                                           an outage         worked on to the end, and it comes before the answer

Invariant: a request is known by the tool that its header names and by the order in its body, never by the host's word.
What is noted was done here; tokens are not kept, only their ids.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import ClientSession, web

from host.evaluation.relay import SECONDS_MAX, cut, listening, passed
from host.stack.ports import LOOPBACK
from shared_contracts import errors
from shared_contracts.contract import CONTRACT_META
from shared_contracts.evaluation import AFTER_A_YES, Fault, FaultKind

LOOK_SECONDS = 0.02
RETRY_AFTER = "1"
# what moves the case's row while its answer waits here; gives what it saw
Conflict = Callable[[str], Awaitable[str]]
Outage = Callable[[FaultKind], Awaitable[str]]  # the same of what hurts every case
Change = Callable[[FaultKind, str], Awaitable[str]]  # what makes a yes about an order worth nothing at the shop
Arm = Callable[[str, str], None]  # whose next commit loses its answer: a workflow, and the order it is about


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault that was done to one request."""

    order_id: str
    said: str


@dataclass(frozen=True, slots=True)
class _Request:
    tool: str
    order_id: str
    jti: str
    workflow_id: str


@dataclass
class Wire:
    """`faults` by order. `port` is where it listens, `upstream` where the tool server does."""

    faults: Mapping[str, Fault]
    conflict: Conflict | None = None
    outage: Outage | None = None
    change: Change | None = None
    arm: Arm | None = None
    upstream: int = 0
    port: int = 0
    struck: list[Struck] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)  # by order
    listed: Counter[str] = field(default_factory=Counter)  # by the version that the tools were offered under
    _late: int = 0
    _seen: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def url(self) -> str:
        """Where the worker finds the tool server."""
        return f"http://{LOOPBACK}:{self.port}/mcp"

    async def answer(self, http: ClientSession, request: web.BaseRequest) -> web.StreamResponse:
        """Pass a request on, or do to it what is to be done."""
        asked = _read(request.headers, await request.read())
        kind = None if asked is None else self._due(asked)
        if asked is None:
            response = await self._passed(http, request)
            self.listed.update(_offered(response.body))
            return response
        if kind is None:
            return await self._asked(http, request, asked)
        if kind is FaultKind.RATE_LIMITED:
            self._note(asked, "answered 429; the tool server did not see it")
            return web.Response(status=429, headers={"Retry-After": RETRY_AFTER})
        if kind is FaultKind.SLOW_ANSWER:
            return await self._slowly(http, request, asked)
        if kind in AFTER_A_YES and self.change is not None:
            self._note(asked, f"kept the request while {await self.change(kind, asked.order_id)}")
            return await self._asked(http, request, asked)
        response = await self._asked(http, request, asked)
        return await self._struck(kind, request, asked, response)

    async def _struck(
        self, kind: FaultKind, request: web.BaseRequest, asked: _Request, response: web.Response
    ) -> web.Response:
        """Do to an answer what is to be done."""
        match kind:
            case FaultKind.COMMIT_LOST if self.arm is not None:
                self.arm(asked.workflow_id, asked.order_id)  # noted where the commit is
                return response
            case FaultKind.DATABASE_RESTART if self.outage is not None:
                self._note(asked, f"held the answer ({response.status}) while {await self.outage(kind)}")
                return response
            case FaultKind.WORKER_KILLED | FaultKind.SERVER_KILLED if self.outage is not None:
                self._note(asked, f"held the answer ({response.status}) for good: {await self.outage(kind)}")
            case FaultKind.TIMEOUT:
                left = await _until_gone(request)
                self._note(asked, f"held the answer ({response.status}) until {left}")
            case FaultKind.VERSION_CONFLICT if self.conflict is not None:
                moved = await self.conflict(asked.workflow_id)
                self._note(asked, f"held the answer ({response.status}) while {moved}")
                return response
            case FaultKind.DISCONNECT:
                self._note(asked, f"broke the connection before the answer ({response.status})")
            case _:
                raise AssertionError(f"{kind.value} is not done here")
        cut(request)
        return response  # to nobody

    async def _slowly(self, http: ClientSession, request: web.BaseRequest, asked: _Request) -> web.Response:
        """Let a request come when whoever sent it has given up, and has been told something else already."""
        self._late += 1
        before = self.answered[asked.order_id]
        try:
            left = await _until_gone(request)
            await until(lambda: self.answered[asked.order_id] > before, SECONDS_MAX)
            response = await self._passed(http, request)
            self._note(asked, f"kept the request until {left} and asked again; its own answer: {_outcome(response)}")
            return response  # to nobody
        finally:
            self._late -= 1

    async def settled(self) -> None:
        """Wait until no request is kept here any more."""
        await until(lambda: self._late == 0, 2 * SECONDS_MAX)

    def note(self, order_id: str, what: str) -> None:
        """Write down what was done to a case elsewhere."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.struck.append(Struck(order_id, f"{at} {order_id}: {what}"))

    async def _asked(self, http: ClientSession, request: web.BaseRequest, asked: _Request) -> web.Response:
        response = await self._passed(http, request)
        self.answered[asked.order_id] += 1
        return response

    def _due(self, asked: _Request) -> FaultKind | None:
        """Count a request of this tool for this order; give what is to be done to it."""
        fault = self.faults.get(asked.order_id)
        if fault is None or fault.tool != asked.tool:
            return None
        self._seen[asked.order_id, asked.tool] += 1
        nth = self._seen[asked.order_id, asked.tool]
        return fault.kind if fault.nth <= nth < fault.nth + fault.times else None

    def _note(self, asked: _Request, what: str) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.struck.append(Struck(asked.order_id, f"{at} {asked.tool} {asked.order_id}, token {asked.jti}: {what}"))

    async def _passed(self, http: ClientSession, request: web.BaseRequest) -> web.Response:
        return await passed(http, request, f"http://{LOOPBACK}:{self.upstream}{request.path_qs}")


@asynccontextmanager
async def wire(faults: Mapping[str, Fault]) -> AsyncIterator[Wire]:
    """Listen on a free loopback port for as long as the block lasts."""
    made = Wire(faults)
    async with listening(made.answer) as made.port:
        yield made


async def until(so: Callable[[], bool], seconds: float) -> bool:
    """Look again and again until it is so; False where it never was."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not so():
        if loop.time() > end:
            return False
        await asyncio.sleep(LOOK_SECONDS)
    return True


async def _until_gone(request: web.BaseRequest) -> str:
    """Wait until whoever asked has hung up."""
    if await until(lambda: request.transport is None or request.transport.is_closing(), SECONDS_MAX):
        return "whoever asked hung up"
    return f"{SECONDS_MAX:g} s were over, and nobody had hung up"


def _read(headers: Mapping[str, str], body: bytes) -> _Request | None:
    """Give whose request it is; None for one that is no call about an order."""
    tool, token = headers.get("Mcp-Name"), headers.get("Authorization", "").removeprefix("Bearer ")
    try:
        message, claims = json.loads(body), _claims(token)
    except ValueError:
        return None
    match message:
        case {"params": {"arguments": {"order_id": str(order_id)}}} if tool is not None:
            return _Request(tool, order_id, str(claims.get("jti")), str(claims.get("task_id")))
        case _:
            return None


def _offered(body: object) -> tuple[str, ...]:
    """Give the one version under which an answer offers tools; none where it is no list of tools."""
    try:
        message = json.loads(body) if isinstance(body, bytes) else None
    except ValueError:
        return ()
    match message:
        case {"result": {"tools": list(tools)}}:
            return tuple({str(tool.get("_meta", {}).get(CONTRACT_META, {}).get("version")) for tool in tools})
        case _:
            return ()


def _outcome(response: web.Response) -> str:
    """Tell how the tool server answered, without what it said."""
    try:
        message = json.loads(response.body) if isinstance(response.body, bytes) else None
    except ValueError:
        message = None
    match message:
        case {"result": {"isError": True, "_meta": {errors.ERROR_META: {"code": str(code)}}}}:
            return f"{response.status}, {code}"
        case _:
            return str(response.status)


def _claims(token: str) -> Mapping[str, Any]:
    """Read a token's claims; whether they are true is the tool server's to find out."""
    part = token.split(".")[1] if token.count(".") == 2 else "e30"
    claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims if isinstance(claims, dict) else {}
