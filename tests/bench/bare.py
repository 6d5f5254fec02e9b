"""`python -m tests.bench.bare PORT`: the SDK's low-level server with the query of `get_order` in its handler, no more.

It reads no token, checks no argument, logs no call, and reads as the owner, whom no policy holds. What is alike is what
the tool server has of others: the protocol's code and its way to answer, the HTTP server and its loop, the pool.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, LiteralString

import mcp_types
import orjson
import psycopg
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from psycopg.types.json import set_json_loads
from psycopg_pool import AsyncConnectionPool
from starlette.applications import Starlette
from starlette.routing import Route

from shared_contracts.tools import TOOLS
from tests.bench.shop import TENANT, customer_of
from tool_server.offer import listed
from tool_server.store.pool import CONNECTIONS_MAX, SESSION
from tool_server.store.queries import queries

DSN = "BENCH_DSN"
NAME = "get_order"
_BEFORE = "SELECT a.code, a.result FROM calls.enter(%(call)s::jsonb) AS call, calls.answer(call, ("
_AFTER = ")) AS a"
Pool = AsyncConnectionPool[psycopg.AsyncConnection[tuple[Any, ...]]]


def _query() -> LiteralString:
    """Take what the tool server selects out of what it does around it."""
    whole = queries("orders")[NAME]
    if not (whole.startswith(_BEFORE) and whole.endswith(_AFTER)):
        raise RuntimeError(f"{NAME} asks in another way; take what it selects out of it here")
    return whole.removeprefix(_BEFORE).removesuffix(_AFTER)


def _server(pool: Pool) -> Server[Any]:
    tool, query = TOOLS[NAME], _query()

    async def on_list_tools(_context: ServerRequestContext[Any, Any], _params: Any) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=[listed(tool)])

    async def on_call_tool(
        _context: ServerRequestContext[Any, Any], params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        order = (params.arguments or {})["order_id"]
        asked = {"tenant": TENANT, "customer": customer_of(order), "resource": order}
        async with pool.connection() as connection:
            ((result,),) = await (await connection.execute(query, asked)).fetchall()
        text = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
        content = [mcp_types.TextContent(type="text", text=text)]
        return mcp_types.CallToolResult(content=content, structured_content=result, is_error=False)

    return Server(
        "bare",
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
        get_tool_input_schema=lambda _: tool.input_schema,
    )


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    set_json_loads(orjson.loads, connection)


def _app(dsn: str) -> Starlette:
    pool: Pool = AsyncConnectionPool(
        dsn, kwargs={"autocommit": True, "prepare_threshold": 0, "options": SESSION}, configure=_configure,
        min_size=1, max_size=CONNECTIONS_MAX, open=False,
    )  # fmt: skip
    manager = StreamableHTTPSessionManager(_server(pool), json_response=False, stateless=True)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with pool, manager.run():
            yield

    return Starlette(routes=[Route("/mcp", StreamableHTTPASGIApp(manager), methods=["POST"])], lifespan=lifespan)


if __name__ == "__main__":
    uvicorn.run(
        _app(os.environ[DSN]), port=int(sys.argv[1]), http="httptools", loop="uvloop", ws="none", log_level="warning",
        access_log=False, date_header=False, server_header=False,
    )  # fmt: skip
