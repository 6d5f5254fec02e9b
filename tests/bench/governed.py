"""What governing costs: the read of an order through the tool server, and through the SDK's own low-level server.

Both answer the same requests, 32 in flight, in the same minutes and by turns: the SDK's server with the query in its
handler (`tests.bench.bare`), ours with a token for each call, ours with one token that each caller keeps. The load is
this process's; what it uses of a processor is told, so that one sees that it is not what is measured.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from urllib.parse import urlsplit
from uuid import uuid4

from host.engine.parts import Request, new_jti
from host.stack.files import read_json
from host.stack.roles import Side
from host.tool_client.mint import ExternalGrant, Minter, SigningKey
from shared_contracts.tools import TOOLS
from tests.bench import bare, load
from tests.bench.cpu import Meter, Spent, yardstick
from tests.bench.figures import Figure
from tests.bench.shop import PRINCIPAL, TENANT, customer_of, order_id
from tests.bench.stand import Stand
from tests.support.server import LEGACY, MODERN, listens, request
from tool_server.auth import Verifier
from tool_server.call import Caller
from tool_server.keys import Keyring

FRESH_MIN, KEPT_MIN = 0.4, 0.6
VERIFY_MS, AGAIN_MS = 0.25, 0.02
IN_FLIGHT, CALLS, ROUNDS = 32, 1_000, 7
VERIFIED, VERIFIED_AGAIN = 2_000, 20_000
START_SECONDS_MAX = 20.0
BARE, FRESH, KEPT = "bare", "fresh", "kept"


@dataclass
class _Measured:
    """One kind of call; `rates` are calls a second, a round each."""

    pid: int
    rates: list[float] = field(default_factory=list)
    used: Spent = field(default_factory=Spent)

    def per_call(self, ms: float) -> float:
        return ms / (len(self.rates) * CALLS)


async def measure(made: Stand) -> list[Figure]:
    """Verify in this process, then call both servers by turns in both of the protocol's revisions."""
    minter = Minter(
        SigningKey.from_jwk(read_json(made.links.signing_key_file) or {}), made.links.issuer, made.links.audience
    )
    found = _verifying(made, minter)
    async with _bare(made) as (pid, port):
        for era, rounds in ((MODERN, ROUNDS), (LEGACY, 2)):
            found += await _by_turns(made, minter, (pid, port), era, rounds)
    return found


def _verifying(made: Stand, minter: Minter) -> list[Figure]:
    verifier = Verifier(Keyring(made.home.keys / "issuers.json"), made.links.audience)
    tokens = [_fresh(minter, number) for number in range(VERIFIED)]
    kept = _keeping(minter)
    yardsticks = [yardstick()]
    first = _cpu(verifier, tokens)
    yardsticks.append(yardstick())
    again = _cpu(verifier, [kept(0)] * VERIFIED_AGAIN)
    used = Spent(yardsticks=[*yardsticks, yardstick()])
    return [
        Figure("verifying a fresh token, CPU", used.quiet(first), "ms", "≤", VERIFY_MS, raw=first),
        Figure("verifying one that was seen before, CPU", used.quiet(again), "ms", "≤", AGAIN_MS, raw=again),
    ]


def _cpu(verifier: Verifier, tokens: list[str]) -> float:
    began = time.thread_time_ns()
    if not all(isinstance(verifier.verify(token), Caller) for token in tokens):
        raise RuntimeError("a right token was refused")
    return (time.thread_time_ns() - began) / 1e6 / len(tokens)


async def _by_turns(made: Stand, minter: Minter, bare_at: tuple[int, int], era: str, rounds: int) -> list[Figure]:
    pid, bare_port = bare_at
    ours = urlsplit(made.links.server_url).port or 0
    kinds: dict[str, tuple[int, Callable[[int], str | None]]] = {
        BARE: (bare_port, lambda _: None),
        FRESH: (ours, lambda number: _fresh(minter, number)),
        KEPT: (ours, _keeping(minter)),
    }
    seen = {name: _Measured(pid if name == BARE else made.server_pid) for name in kinds}
    names = list(kinds)
    for turn in range(rounds + 1):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            port, token = kinds[name]
            requests = [_written(port, number, token(number), era) for number in range(CALLS)]
            one = seen[name] if turn > 0 else _Measured(seen[name].pid)  # the first turn warms
            with Meter(one.used, one.pid, made.server.process.pid):
                one.rates.append(await load.run(port, requests, IN_FLIGHT))
    return _told(seen, era)


def _told(seen: dict[str, _Measured], era: str) -> list[Figure]:
    found = []
    for name, one in seen.items():
        found += [
            Figure(f"{era}, {name}: calls/s, {IN_FLIGHT} in flight", median(one.rates), "/s"),
            Figure("  CPU of the server per call", one.per_call(one.used.server), "ms"),
            Figure("  CPU of PostgreSQL per call", one.per_call(one.used.postgres), "ms"),
            Figure("  CPU of the load per call", one.per_call(one.used.host), "ms"),
            Figure("  all waiting for a processor, per call", one.per_call(one.used.queued), "ms"),
        ]
    for name, least in ((FRESH, FRESH_MIN), (KEPT, KEPT_MIN)):
        ratio = median(rate / base for rate, base in zip(seen[name].rates, seen[BARE].rates, strict=True))
        by_cpu = seen[BARE].used.server / seen[name].used.server
        found += [
            Figure(f"{era}, {name}: of the bare server's rate", ratio, "", "≥", least),
            Figure("  by the servers' own CPU", by_cpu),
        ]
    return found


def _fresh(minter: Minter, number: int) -> str:
    """Mint a token as the host does, for one call."""
    order = order_id(number)
    return minter.call(
        Request(
            tool=TOOLS[bare.NAME], arguments={"order_id": order}, jti=new_jti(), workflow_id=uuid4(), tenant_id=TENANT,
            subject=PRINCIPAL, customer=customer_of(order), resource=order, idempotency_key=None, attempt=1,
            requested_at=datetime.now(UTC), timeout_seconds=5.0, correlation={}, approval=None, approved_version=None,
        )
    )  # fmt: skip


def _keeping(minter: Minter) -> Callable[[int], str]:
    """Give each customer's own token, as an outside host keeps it, by a number of an order."""
    kept: dict[str, str] = {}

    def token(number: int) -> str:
        customer = customer_of(order_id(number))
        if customer not in kept:
            kept[customer] = minter.external(
                ExternalGrant(
                    jti=new_jti(), task_id=str(uuid4()), tenant_id=TENANT, principal=PRINCIPAL, customer=customer,
                    scopes=frozenset({TOOLS[bare.NAME].scope.value}), tool=None, resource=None, idempotency_key=None,
                    seconds=900,
                )
            )  # fmt: skip
        return kept[customer]

    return token


def _written(port: int, number: int, token: str | None, era: str) -> bytes:
    call = {"name": bare.NAME, "arguments": {"order_id": order_id(number)}}
    body, headers = request("tools/call", call, token=token, era=era)
    sent = body.encode()
    lines = ["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(sent)}", "", ""]).encode() + sent


@asynccontextmanager
async def _bare(made: Stand) -> AsyncIterator[tuple[int, int]]:
    """Run the bare server in a process of its own; gives its process id and its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.bare", str(port),
        env={**os.environ, bare.DSN: made.role(Side.TOOLS, "tools_owner")},
    )  # fmt: skip
    try:
        async with asyncio.timeout(START_SECONDS_MAX):
            while not listens(port):
                if process.returncode is not None:
                    raise RuntimeError("the bare server has ended")
                await asyncio.sleep(0.05)
        yield process.pid, port
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
