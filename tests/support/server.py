"""The real tool server on a free loopback port, in a thread of the test's process, with real tokens.

with running(StubDispatcher(), tmp_path) as server:
    server.rpc("tools/list", token=server.issuer.token())
"""

from __future__ import annotations

import asyncio
import json
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx2
import uvloop

from shared_contracts.contract import FAMILIES
from shared_contracts.tools import TOOLS
from tests.support.tokens import Issuer
from tool_server.app import build_app
from tool_server.call import Answer, Answered, Caller, refused
from tool_server.http import BoundedHttp
from tool_server.mcp_server import DispatcherProtocol
from tool_server.serve import bind, serve
from tool_server.settings import Settings

MODERN, LEGACY = "2026-07-28", "2025-11-25"
START_SECONDS = 10
ORDER = {
    "order_id": "R-1001",
    "version": 1,
    "status": "delivered",
    "ordered_at": "2026-07-01T00:00:00+09:00",
    "lines": [
        {
            "line_id": "1",
            "name": "a lamp",
            "category": "lighting",
            "quantity": 1,
            "delivered_quantity": 1,
            "delivered_at": "2026-07-03T00:00:00+09:00",
            "returned_quantity": 0,
            "unit_price": {"amount": 4800, "currency": "JPY"},
            "paid": {"amount": 4800, "currency": "JPY"},
        }
    ],
    "shipping_fee": {"amount": 0, "currency": "JPY"},
    "discount": {"amount": 0, "currency": "JPY"},
    "paid": {"amount": 4800, "currency": "JPY"},
    "refunded": {"amount": 0, "currency": "JPY"},
    "destination_ref": "address://acme/C-1@1",
    "note": None,
    "snapshot": "test",
    "evidence_ref": "orders://R-1001@1",
}


@dataclass
class StubDispatcher:
    """An inner half that answers every call in the same way and remembers what it did, and what it refused."""

    answer: Callable[[Caller, str, Mapping[str, Any] | None], Answer] = lambda *_: Answered(ORDER)
    removed: frozenset[str] = frozenset()
    unready: str | None = None
    calls: list[tuple[Caller, str, Mapping[str, Any] | None]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    logged: queue.SimpleQueue[tuple[str, str]] = field(default_factory=queue.SimpleQueue)  # to wait for a refusal's log
    token_faults: dict[str, str] = field(default_factory=dict)  # by `jti`; what is not here is good
    entered: int = 0

    async def __aenter__(self) -> Self:
        self.entered += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.entered -= 1

    async def dispatch(self, caller: Caller, name: str, arguments: Mapping[str, Any] | None) -> Answer:
        if name not in TOOLS:
            self.refused.append((name, "unknown_tool"))
            return refused("unknown_tool")
        self.calls.append((caller, name, arguments))
        return self.answer(caller, name, arguments)

    async def log_refusal(self, _caller: Caller, name: str, code: str) -> None:
        self.refused.append((name, code))
        self.logged.put((name, code))

    async def token_fault(self, caller: Caller) -> str | None:
        return self.token_faults.get(caller.claims.jti)

    async def disabled(self) -> frozenset[str]:
        return self.removed

    async def ready(self) -> str | None:
        return self.unready


@dataclass(frozen=True)
class Server:
    """A server that runs. `stop` begins its drain, as SIGTERM does."""

    port: int
    issuer: Issuer
    dispatcher: Any
    stop: Callable[[], None]
    client: httpx2.Client

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    def post(self, body: bytes | str, headers: Mapping[str, str]) -> httpx2.Response:
        return self.client.post(self.url, content=body, headers=dict(headers))

    def rpc(self, method: str, params: dict[str, Any] | None = None, **options: Any) -> httpx2.Response:
        """One message; `token`, `era`, `rpc_id` and `headers` as `request` takes them."""
        body, headers = request(method, params, **options)
        return self.post(body, headers)

    def call(self, name: str = "get_order", arguments: Any = None, **options: Any) -> httpx2.Response:
        given = {"order_id": "R-1001"} if arguments is None else arguments
        options.setdefault("token", self.issuer.token())
        return self.rpc("tools/call", {"name": name, "arguments": given}, **options)


def request(
    method: str,
    params: dict[str, Any] | None = None,
    *,
    token: str | None = None,
    era: str = MODERN,
    rpc_id: Any = 1,
    headers: Mapping[str, str] | None = None,
) -> tuple[str, dict[str, str]]:
    """The body and headers of a well-formed message of either protocol revision."""
    given: dict[str, Any] = {} if params is None else dict(params)
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    sent["MCP-Protocol-Version"] = era
    if era == MODERN:
        prefix = "io.modelcontextprotocol/"
        given["_meta"] = {f"{prefix}protocolVersion": era, f"{prefix}clientCapabilities": {}, **given.get("_meta", {})}
        sent["Mcp-Method"] = method
        if method == "tools/call":
            sent["Mcp-Name"] = str(given["name"])
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    body = {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": given}
    return json.dumps(body), {**sent, **({} if headers is None else headers)}


def message_of(response: httpx2.Response) -> dict[str, Any]:
    """The JSON-RPC message of an answer, whether it came as JSON or as one event of a stream."""
    if response.headers["content-type"].startswith("text/event-stream"):
        lines = [line for line in response.text.splitlines() if line.startswith("data: ")]
        return dict(json.loads(lines[-1].removeprefix("data: ")))
    return dict(response.json())


def settings_for(issuer: Issuer, **changes: Any) -> Settings:
    base = {
        "resource": issuer.resource,
        "issuers_file": issuer.issuers_file,
        "host": "127.0.0.1",
        "port": 0,
        "rate_principal": 100_000,  # a test of the limit sets its own
        "rate_tenant": 100_000,
        "rate_failures": 100_000,
        **{f"{family}_dsn": "unused" for family in FAMILIES},
    }
    return Settings(**{**base, **changes})


@contextmanager
def running(
    dispatcher: DispatcherProtocol, directory: Path, http: type[BoundedHttp] = BoundedHttp, **settings: Any
) -> Iterator[Server]:
    """Serve until the block ends; what the server raises, the test raises."""
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    issuer = Issuer.at(directory, f"http://127.0.0.1:{port}/mcp")
    chosen = settings_for(issuer, **settings)
    app = build_app(chosen, dispatcher)
    loop, stop, failed = uvloop.new_event_loop(), asyncio.Event(), []

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(serve(app, listener, stop, chosen.connections, http))
            except Exception as error:  # noqa: BLE001 - raised again in the test's own thread
                failed.append(error)

    thread = threading.Thread(target=work, name="tool-server")
    thread.start()

    def end() -> None:
        if thread.is_alive():
            loop.call_soon_threadsafe(stop.set)

    try:
        with httpx2.Client(timeout=30, trust_env=False, verify=False) as client:
            yield Server(port, issuer, dispatcher, end, client)
    finally:
        end()
        thread.join(START_SECONDS)
        assert not thread.is_alive(), "the server did not stop"
        if failed:
            raise failed[0]


@dataclass(frozen=True)
class ServerProcess(Server):
    """A server in a process of its own (`tests.support.serve_stub`); `stop` sends it SIGTERM, it writes to `log`."""

    process: subprocess.Popen[bytes]
    log: Path

    def end(self) -> tuple[int, str]:
        """Its exit code and everything that it wrote."""
        self.stop()
        return self.process.wait(30), self.log.read_text()


@contextmanager
def running_process(directory: Path) -> Iterator[ServerProcess]:
    """Serve from a process of its own until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    issuer = Issuer.at(directory, f"http://127.0.0.1:{port}/mcp")
    command = [sys.executable, "-m", "tests.support.serve_stub", str(directory), str(port)]
    log = directory / "stderr.log"  # a pipe that nobody empties meanwhile would stop the server once it is full
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stderr=stderr)
    try:
        wait_until(lambda: listens(port) or process.poll() is not None)
        with httpx2.Client(timeout=30, trust_env=False, verify=False) as client:
            yield ServerProcess(port, issuer, None, process.terminate, client, process, log)
    finally:
        process.kill()
        process.wait(30)


def listens(port: int) -> bool:
    """Whether anybody does."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(holds: Callable[[], bool], seconds: float = 20) -> None:
    """Look again and again, for a bounded time."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.02)


def raw(port: int, *parts: bytes, seconds: float = 30) -> bytes:
    """Send bytes as they are and read until the server closes; a reset ends the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        answer = b""
        try:
            for part in parts:
                connection.sendall(part)
            while chunk := connection.recv(65536):
                answer += chunk
        except (ConnectionResetError, BrokenPipeError):
            pass
        return answer


def raw_post(server: Server, *lines: bytes, body: bytes = b"", token: str | None = None) -> bytes:
    """A POST whose header lines are written byte for byte; the connection is closed after its answer."""
    head = [b"POST /mcp HTTP/1.1", b"Host: 127.0.0.1:%d" % server.port, b"Connection: close", *lines]
    if token is not None:
        head.append(b"Authorization: Bearer " + token.encode())
    head += [b"Content-Length: %d" % len(body), b"", body]
    return raw(server.port, b"\r\n".join(head))


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])
