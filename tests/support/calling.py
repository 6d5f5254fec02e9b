"""Calls as the engine makes them, for tests of the client against a server of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvloop

from host.domain.outcome import Outcome, Success
from host.tool_client.client import CallRequest, ToolClient
from shared_contracts.tools import TOOLS
from tests.support.hostile_server import FakeToolServer

run = uvloop.run  # the loop that the host runs on; a plain one fails in other words on a broken connection

TOKEN = "canary-header-5d2f.canary-claims-81ab.canary-signature-c07e"
PROBE = "canary-header-5d2f.canary-probe-33d9.canary-signature-1f64"
READ, WRITE = "get_order", "create_return"
LIMIT_SECONDS = 5.0  # no test waits for it, except where the machine does not keep up


def request(tool: str, order: str = "A-1", timeout_seconds: float = LIMIT_SECONDS, **arguments: Any) -> CallRequest:
    correlation = {"dev.kessai/step_id": "s-1"}
    return CallRequest(TOOLS[tool], {"order_id": order, **arguments}, TOKEN, timeout_seconds, correlation)


def client_of(server: FakeToolServer, connections_max: int = 64) -> ToolClient:
    return ToolClient(server.url, lambda: PROBE, connections_max)


@asynccontextmanager
async def pair(**server: Any) -> AsyncIterator[tuple[FakeToolServer, ToolClient]]:
    """A server of the test's own and a client on it."""
    async with FakeToolServer(**server) as fake, client_of(fake) as client:
        yield fake, client
        fake.released.set()


def told(outcome: Outcome) -> tuple[str, str]:
    """The kind of an outcome and its code; a success has none."""
    kind = type(outcome).__name__
    return (kind, "") if isinstance(outcome, Success) else (kind, outcome.error.code)
