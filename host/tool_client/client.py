"""The kept client of one tool server: one call in, one outcome out, whatever the server does.

Invariant: `call` sends at most one request, under the token it was given, and never raises for what a server
did. It never sends again; that is for the engine, which knows what a second time means.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, cast

import jsonschema_rs
from mcp import Client
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ListToolsRequest,
    ListToolsResult,
    PaginatedRequestParams,
    RequestParamsMeta,
)
from pydantic import ValidationError

from host.domain.outcome import (
    NotMcp,
    NotSent,
    Outcome,
    RpcError,
    ToolError,
    ToolResult,
    WireResult,
    broke_protocol,
    classify,
)
from host.tool_client.answer import read_report
from host.tool_client.connection import Connection
from host.tool_client.exchange import Exchange
from host.tool_client.link import NotLinkedError
from shared_contracts.base import parse
from shared_contracts.contract import CONTRACT_META, Tool
from shared_contracts.errors import ERROR_META

CONNECTIONS_MAX = 64  # calls in flight per process; the next one waits, and is told so in time
PAGES_MAX = 5  # a server that never ends its list is none
_TOKEN = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+){2}")
_TALKATIVE = ("mcp", "client", "httpx2", "aiohttp")  # below WARNING they write addresses and whole messages


@dataclass(frozen=True, slots=True)
class CallRequest:
    """One call. `correlation` goes into `_meta` as it is, for logs alone: `traceparent`, and `dev.kessai/` names."""

    tool: Tool
    arguments: Mapping[str, Any]
    token: str
    timeout_seconds: float
    correlation: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Listed:
    """What a server offers: the negotiated revision, the tools capability, each tool's untrusted contract mark."""

    protocol: str
    offers_tools: bool
    contracts: dict[str, object]


class ToolClient:
    """Use as a context manager, one per process and server; any number of tasks may call at once."""

    def __init__(self, url: str, probe_token: Callable[[], str], connections_max: int = CONNECTIONS_MAX) -> None:
        self._connection = Connection(url, probe_token, connections_max)
        self._probe_token = probe_token
        self._validators: dict[str, jsonschema_rs.Validator] = {}

    async def __aenter__(self) -> Self:
        for name in _TALKATIVE:
            logger = logging.getLogger(name)
            logger.setLevel(max(logger.level, logging.WARNING))
        await self._connection.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connection.__aexit__(kind, error, trace)

    async def call(self, request: CallRequest) -> Outcome:
        """Make one call; `host.domain.outcome` says what each outcome proves."""
        if _TOKEN.fullmatch(request.token) is None:
            raise ValueError("this is no token: it could not stand in a header")
        exchange = _exchange(request.token, request.timeout_seconds, posts=1)
        try:
            seen = await self._connection.converse(exchange, lambda client: self._ask(client, request))
        except NotLinkedError as error:
            seen = _unsent(error.seen)
        return classify(seen, writes=request.tool.writes)

    async def list_tools(self, timeout_seconds: float) -> Listed | WireResult:
        """Ask what the server offers, with a probe token; negotiates first where that is still to be done."""
        exchange = _exchange(self._probe_token(), timeout_seconds, posts=PAGES_MAX)
        try:
            return await self._connection.converse(exchange, _list)
        except NotLinkedError as error:
            return error.seen

    async def _ask(self, client: Client, request: CallRequest) -> WireResult:
        """`send_request` rather than `call_tool`, which would list tools or send again on its own account."""
        params = CallToolRequestParams(
            name=request.tool.name,
            arguments=dict(request.arguments),
            _meta=cast("RequestParamsMeta", {**request.correlation, CONTRACT_META: request.tool.mark}),
        )
        result = await client.session.send_request(CallToolRequest(params=params), CallToolResult)
        if result.result_type != "complete":
            return NotMcp("result_type")  # a question to us, say; nobody here answers a server's questions
        if result.is_error:
            return ToolError(read_report((result.meta or {}).get(ERROR_META)))
        value = result.structured_content
        return ToolResult(value, self._fits(request.tool, value)) if isinstance(value, dict) else ToolResult({}, False)

    def _fits(self, tool: Tool, value: dict[str, Any]) -> bool:
        """By our own contract, whatever the server lists: first its schema, then what a schema cannot say."""
        validator = self._validators.get(tool.schema_digest)
        if validator is None:
            validator = jsonschema_rs.validator_for(tool.output_schema, validate_formats=True)
            self._validators[tool.schema_digest] = validator
        if not validator.is_valid(value):
            return False
        try:
            parse(tool.result, value)
        except ValidationError:  # a NUL, say, which no database stores
            return False
        return True


async def _list(client: Client) -> Listed | WireResult:
    contracts: dict[str, object] = {}
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        page = await client.session.send_request(
            ListToolsRequest(params=PaginatedRequestParams(cursor=cursor)), ListToolsResult
        )
        contracts |= {tool.name: (tool.meta or {}).get(CONTRACT_META) for tool in page.tools}
        cursor = page.next_cursor
        if cursor is None:
            return Listed(client.protocol_version, client.server_capabilities.tools is not None, contracts)
    return NotMcp("endless_list")


def _exchange(token: str, timeout_seconds: float, posts: int) -> Exchange:
    return Exchange(token, asyncio.get_running_loop().time() + timeout_seconds, posts)


def _unsent(seen: WireResult) -> WireResult:
    """What a failed negotiation means to a call that was never sent."""
    if isinstance(seen, NotSent) or (isinstance(seen, RpcError) and broke_protocol(seen)):
        return seen
    return NotSent("not_negotiated")
