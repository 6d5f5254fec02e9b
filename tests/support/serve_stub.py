"""The tool server as its own process, as `kessai-tools serve` runs it, over an inner half that only answers.

    python -m tests.support.serve_stub DIRECTORY PORT

Its files lie in DIRECTORY. A call's `order_id` says how it is answered: `boom…` raises, `slow…` waits until the file
`go` stands there, `bad…` answers what fits no schema of the protocol.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.server import ORDER, StubDispatcher, settings_for
from tests.support.tokens import Issuer
from tool_server.call import Answer, Answered, Caller
from tool_server.errors import ToolServerError
from tool_server.serve import run_server


class Scripted(StubDispatcher):
    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory

    async def dispatch(self, _caller: Caller, _name: str, arguments: Mapping[str, Any] | None) -> Answer:
        order = "" if arguments is None else str(arguments.get("order_id"))
        if order.startswith("boom"):
            raise RuntimeError(f"the handler failed over {order}")
        if order.startswith("slow"):
            (self._directory / "started").touch()
            while not (self._directory / "go").exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.02)
        if order.startswith("bad"):
            return Answered({"order_id": order, "made": object()})
        return Answered(ORDER)


def main() -> int:
    directory, port = Path(sys.argv[1]), int(sys.argv[2])
    issuer = Issuer.load(directory, f"http://127.0.0.1:{port}/mcp")
    try:
        run_server(settings_for(issuer, port=port, rate_failures=10), Scripted(directory))
    except ToolServerError as error:
        print(error, file=sys.stderr)  # noqa: T201 - what the command line does with it
        return 15
    return 0


if __name__ == "__main__":
    sys.exit(main())
