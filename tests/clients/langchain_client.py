"""One act of LangChain's MCP client: `langchain_client.py URL ERA TOOL [ARGUMENTS]`, the token in TOKEN; `list` lists.

It is built on the first generation of the Python SDK and speaks `legacy` alone.
"""

import asyncio
import json
import os
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(url: str, tool: str, given: str) -> None:
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    client = MultiServerMCPClient({"kessai": {"transport": "streamable_http", "url": url, "headers": headers}})
    async with client.session("kessai", auto_initialize=False) as session:
        print((await session.initialize()).protocolVersion)  # noqa: T201
    tools = {one.name: one for one in await client.get_tools()}
    print(*sorted(tools)) if tool == "list" else print(await tools[tool].ainvoke(json.loads(given)))  # noqa: T201


def innermost(error: BaseException) -> BaseException:
    return innermost(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


try:
    asyncio.run(main(sys.argv[1], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else "{}"))
except Exception as error:  # noqa: BLE001 - what is shown of any refusal is what this is for
    print(f"{type(innermost(error)).__name__}: {innermost(error)}")  # noqa: T201
    sys.exit(1)
