"""What a flood without any right costs a right client of the deployed tool server: quiet first, then flooded.

The flood is one process that sends as fast as it can; the client, the server and PostgreSQL share the rest.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import httpx2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.stack.keys import key_files, read_signing_key
from shared_contracts.digest import digest
from tests.bench.cpu import percentile, rss_mb
from tests.bench.figures import Figure
from tests.bench.shop import TENANT, case
from tests.bench.stand import Stand
from tests.support.flood import flooding
from tests.support.server import request
from tests.support.tokens import Issuer, unb64

SECONDS, WARM = 10.0, 100
GROWN_MB_MAX = 32.0


class _Client:
    """Reads orders of the shop, each with a fresh token; `lost` counts what was not answered with one."""

    def __init__(self, made: Stand) -> None:
        key = read_signing_key(key_files(made.home).signing)
        private = Ed25519PrivateKey.from_private_bytes(unb64(key["d"]))
        self.issuer = Issuer(private, key["kid"], made.links.issuer, Path(), made.links.audience)
        self._url, self._http = made.links.server_url, httpx2.Client(timeout=30, trust_env=False, verify=False)
        self.lost, self._number = 0, 0

    def timed(self) -> float:
        """Give the milliseconds of one call."""
        bought = case(self._number % 1000)
        self._number += 1
        given = {"order_id": bought["order_id"]}
        details = {"resource": given["order_id"], "customer": bought["customer_id"], "arguments_sha256": digest(given)}
        token = self.issuer.token(tenant_id=TENANT, details=details)
        body, headers = request("tools/call", {"name": "get_order", "arguments": given}, token=token)
        began = time.perf_counter()
        answer = self._http.post(self._url, content=body, headers=headers)
        wall = (time.perf_counter() - began) * 1000
        self.lost += answer.status_code != 200 or answer.json()["result"].get("isError", False)
        return wall


async def measure(made: Stand) -> list[Figure]:
    """Ask for as long without the flood as with it."""
    return await asyncio.to_thread(_measure, made)


def _measure(made: Stand) -> list[Figure]:
    client = _Client(made)
    for _ in range(WARM):
        client.timed()
    before, ends, quiet, flooded = rss_mb(made.server_pid), time.monotonic() + SECONDS, [], []
    while time.monotonic() < ends:
        quiet.append(client.timed())
    port = int(made.links.server_url.rpartition(":")[2].partition("/")[0])
    with flooding(port, SECONDS, client.issuer.kid) as flood:
        began = time.monotonic()
        while flood.poll() is None:
            flooded.append(client.timed())
        lasted = time.monotonic() - began
        told = json.loads("{}" if flood.stdout is None else flood.stdout.read())
    return [
        Figure("calls that a right client lost", client.lost, "", "=", 0),
        Figure("its calls, quiet", len(quiet) / SECONDS, "/s"),
        Figure("  95th percentile", percentile(quiet, 0.95), "ms"),
        Figure("its calls, flooded", len(flooded) / lasted, "/s"),
        Figure("  95th percentile", percentile(flooded, 0.95), "ms"),
        Figure("  ratio to the quiet one", percentile(flooded, 0.95) / percentile(quiet, 0.95)),
        Figure("the flood's requests", told["sent"] / lasted, "/s"),
        Figure("memory that the server grew by", rss_mb(made.server_pid) - before, "MB", "≤", GROWN_MB_MAX),
    ]
