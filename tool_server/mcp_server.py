"""The protocol's two questions, answered for both revisions: what is offered, and one call of it.

Invariant: a tool's failure is a result with `isError` and a code, in `_meta` and as JSON text, and never has
structured content; a handler's bug is `internal_error`, logged by its type and place, never a traceback to anybody.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Protocol, Self

import mcp_types
import structlog
from mcp.server import Server, ServerRequestContext
from mcp.server.caching import CacheHint
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from shared_contracts.contract import CONTRACT_META
from shared_contracts.errors import ERROR_META, ERRORS, error_body
from shared_contracts.printed import escaped
from tool_server.answers import error_number
from tool_server.call import Answer, Answered, Caller, Refused, refused
from tool_server.gate import CALLER, REACHED
from tool_server.log import exception_fields
from tool_server.message import SERVED
from tool_server.offer import OFFER, listed

log = structlog.get_logger()

Context = ServerRequestContext[Any, Any]
_LIST_SECONDS = 5  # a removed tool is gone from every listing after this long
_DISCOVER_SECONDS = 3600


class DispatcherProtocol(Protocol):
    """The inner half: everything between a verified caller and an answer. Entered once per process."""

    async def __aenter__(self) -> Self:
        """Open what calls need."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        """Close it again, after the last call."""
        ...

    async def dispatch(self, caller: Caller, name: str, arguments: Mapping[str, Any] | None) -> Answer:
        """Carry one call out, or refuse it: a name that is no tool's, a scope that is missing, and all that follows.

        Every call that comes here is logged, refused ones too.
        """
        ...

    async def log_refusal(self, caller: Caller, name: str, code: str) -> None:
        """Log a call that was refused before it came here; the log being away changes nothing of it."""
        ...

    async def token_fault(self, caller: Caller) -> str | None:
        """Give the code for which a token that asks for no call is refused: `token_revoked`, `unavailable`, or None."""
        ...

    async def disabled(self) -> frozenset[str]:
        """Name the tools that an operator has removed."""
        ...

    async def ready(self) -> str | None:
        """Give None, or why calls cannot be served now."""
        ...


def build_mcp_server(dispatcher: DispatcherProtocol) -> Server[Any]:
    """Join the SDK's low-level server to the dispatcher."""
    tools = {name: listed(tool) for name, tool in OFFER.items()}

    async def on_list_tools(
        _context: Context, _params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        try:
            disabled = await dispatcher.disabled()
        except Exception as error:  # noqa: BLE001 - whatever the store raises, the caller learns a code and no more
            log.error("listing_failed", **exception_fields(error))
            raise MCPError(error_number(503), ERRORS["unavailable"].meaning, _body("unavailable")) from None
        return mcp_types.ListToolsResult(tools=[tool for name, tool in tools.items() if name not in disabled])

    async def on_call_tool(context: Context, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        caller = _caller(context)
        if _means_another(params):
            await dispatcher.log_refusal(caller, params.name, "unavailable")
            return result_of(refused("unavailable", {"contract": OFFER[params.name].mark}))
        return await _result(dispatcher, caller, params.name, params.arguments)

    async def on_discover(context: Context, _params: mcp_types.RequestParams | None) -> mcp_types.DiscoverResult:
        """All revisions that are served, as who asks for another is told; the library's own names the newest alone."""
        able = server.get_capabilities(protocol_version=context.protocol_version)
        return mcp_types.DiscoverResult(supported_versions=list(SERVED), capabilities=able)

    server: Server[Any] = Server(
        "kessai-tools",
        version=_release(),
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
        get_tool_input_schema=lambda name: OFFER[name].input_schema if name in OFFER else None,
        cache_hints={
            "tools/list": CacheHint(ttl_ms=_LIST_SECONDS * 1000, scope="public"),
            "server/discover": CacheHint(ttl_ms=_DISCOVER_SECONDS * 1000, scope="public"),
        },
    )
    server.add_request_handler("server/discover", mcp_types.RequestParams, on_discover)
    return server


def _means_another(params: mcp_types.CallToolRequestParams) -> bool:
    """Tell whether a host says which contract it means, and it is not ours: then nothing is executed under either."""
    tool, meant = OFFER.get(params.name), dict(params.meta or {}).get(CONTRACT_META)
    return tool is not None and meant is not None and meant != tool.mark


async def _result(
    dispatcher: DispatcherProtocol, caller: Caller, name: str, arguments: Mapping[str, Any] | None
) -> mcp_types.CallToolResult:
    try:
        return result_of(await dispatcher.dispatch(caller, name, arguments))
    except MCPError:
        raise
    except Exception as error:  # noqa: BLE001 - a bug in a handler is an answer with a code, never a broken connection
        log.error("handler_failed", jti=caller.claims.jti, **exception_fields(error))
        return result_of(refused("internal_error"))


def result_of(answer: Answer) -> mcp_types.CallToolResult:
    """Put an answer into the wire's shape; raises MCPError for what the protocol calls an error of its own.

    The JSON text says the same as the structured part, with escapes for letters that are not to be seen: it is what
    people and models are shown.
    """
    match answer:
        case Answered(result=result):
            return mcp_types.CallToolResult(content=[_text(result)], structured_content=result, is_error=False)
        case Refused(code="unknown_tool", message=message):
            raise MCPError(mcp_types.INVALID_PARAMS, message, _body("unknown_tool"))
        case Refused(code=code, message=message, details=details):
            body = error_body(code, message, details)
            return mcp_types.CallToolResult(content=[_text({"error": body})], _meta={ERROR_META: body}, is_error=True)


def _caller(context: Context) -> Caller:
    """Who calls, as the gate has verified it for this very request, and is told that it came this far."""
    request = context.request
    caller = request.scope.get(CALLER) if isinstance(request, Request) else None
    if not isinstance(request, Request) or not isinstance(caller, Caller):
        raise MCPError(error_number(401), ERRORS["token_missing"].meaning, _body("token_missing"))
    request.scope[REACHED] = True
    return caller


def _release() -> str:
    try:
        return version("kessai")
    except PackageNotFoundError:  # run from its source tree, not installed
        return "unreleased"


def _body(code: str) -> dict[str, Any]:
    return error_body(code, ERRORS[code].meaning)


def _text(value: dict[str, Any]) -> mcp_types.TextContent:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text.encode()  # a lone surrogate is a handler's bug, and has to come out while it can still be answered
    return mcp_types.TextContent(type="text", text=escaped(text))
