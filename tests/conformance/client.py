"""One run of the host's own MCP client under the official suite, which starts it with the address of its server.

    python -m tests.conformance.client URL     # MCP_CONFORMANCE_SCENARIO says which one

Listing and calls are the host's, byte by byte. What a scenario wants to be called is no tool of ours, so it gets one of
our contracts under its name; that its answer fits none of our results is no matter of this program.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from host.tool_client.client import CallRequest, Listed, ToolClient
from shared_contracts.tools import TOOLS

TOKEN = "e30.e30.e30"  # the suite's servers ask for none
SECONDS = 10.0
# what is called in which scenario, in the order in which it is called
CALLS: Mapping[str, tuple[tuple[str, Mapping[str, Any]], ...]] = {
    "tools_call": (("add_numbers", {"a": 5, "b": 3}),),
    "http-standard-headers": (("test_headers", {}),),
    "request-metadata": (("add_numbers", {"a": 5, "b": 3}),),
    "sse-retry": (("test_reconnection", {}),),
    "http-invalid-tool-headers": (("valid_tool", {"region": "us-west1"}),),
}


async def main(url: str, scenario: str) -> None:
    async with ToolClient(url, lambda: TOKEN) as client:
        listed = await client.list_tools(SECONDS)
        print(listed)  # noqa: T201
        if not isinstance(listed, Listed):
            return
        for name, arguments in CALLS.get(scenario, ()):
            tool = replace(TOOLS["get_order"], name=name)
            print(await client.call(CallRequest(tool, arguments, TOKEN, SECONDS, {})))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], os.environ.get("MCP_CONFORMANCE_SCENARIO", "")))
