"""One act of fastmcp's client: `fastmcp_client.py URL ERA TOOL [ARGUMENTS]`, the token in TOKEN; `list` lists."""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport


async def main(url: str, era: str, tool: str, given: str) -> None:
    async with Client(StreamableHttpTransport(url, auth=os.environ["TOKEN"]), mode=era) as client:
        print(client.session.protocol_version)  # noqa: T201
        if tool == "list":
            print(*(one.name for one in await client.list_tools()))  # noqa: T201
        else:
            print((await client.call_tool(tool, json.loads(given))).structured_content)  # noqa: T201


try:
    asyncio.run(main(*sys.argv[1:4], sys.argv[4] if len(sys.argv) > 4 else "{}"))
except Exception as error:  # noqa: BLE001 - what is shown of any refusal is what this is for
    print(f"{type(error).__name__}: {error} {getattr(error, 'data', '')}")  # noqa: T201
    sys.exit(1)
