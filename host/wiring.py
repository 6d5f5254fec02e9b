"""The composition root: opens everything that a host process works with, in one place, and closes it again."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from procrastinate import App

from host.database import POOL_SIZE_MAX, NotReadyError, database
from host.domain.proposals import Planner
from host.engine import seal
from host.engine.accept import Pins
from host.engine.parts import Parts
from host.engine.seal import Sealer
from host.engine.wake import Wake, queue_app, waker
from host.planner.conformance import ConformancePlanner
from host.rights import kinds, pins, read_authorization
from host.sealing import sealer_of
from host.settings import Settings
from host.stack.links import Links
from host.stack.signing import SigningFile
from host.store import rollout
from host.store.pool import Pool
from host.tool_client.client import ToolClient
from host.tool_client.gateway import Gateway
from host.tool_client.heads import exchange
from host.tool_client.mint import Minter, SigningKey
from host.tool_client.pace import Pace, Rates
from host.tool_client.readiness import Listing, NotReady, Reason
from host.workflows.catalogue import WORKFLOWS
from shared_contracts.tools import TOOLS

PATIENCE_SECONDS = 30.0  # both may be restarted at once; a tool server is up within a few seconds
AGAIN_SECONDS = 0.5
SEAL_SECONDS_MAX = 5.0  # for the last round; what it does not seal the next process does


@dataclass(frozen=True, slots=True)
class Driver:
    """What one process needs to take cases in and to drive them."""

    parts: Parts
    listing: Listing
    pins: Pins


@dataclass(frozen=True, slots=True)
class Runtime:
    """A driver that is fed by the queue."""

    driver: Driver
    queue: App
    wake: Wake


@asynccontextmanager
async def driver(settings: Settings, links: Links, patience_seconds: float = 0.0) -> AsyncIterator[Driver]:
    """Open everything; ready means that database, contracts and protocol were seen to fit. Raises NotReadyError.

    `patience_seconds` is for a tool server that cannot be reached: it may be starting at this very moment.
    """
    authorization = read_authorization(settings.authz_file)
    sealer = None if links.sealing is None else sealer_of(links.sealing, partial(exchange, links.server_url))
    minter = Minter(SigningFile(links.signing_key_file, SigningKey.from_jwk), links.issuer, links.audience)
    size = min(POOL_SIZE_MAX, settings.concurrency + 4)
    async with database(links.dsn, size) as pool, ToolClient(links.server_url, minter.probe) as client:
        if settings.concurrency > 1:
            await _tracked(pool)
        listing = Listing(client, TOOLS)
        await _listed(listing, patience_seconds)
        parts = Parts(
            pool=pool,
            tools=Gateway(client, minter, listing, Pace(Rates(settings.rate_principal, settings.rate_tenant))),
            planner=_planner(settings),
            kinds=await kinds(pool),
            registry=TOOLS,
            authorization=authorization,
            owner=f"{socket.gethostname()}:{os.getpid()}",
            lease_seconds=settings.lease_seconds,
            daily_cost_micros=settings.daily_cost_micros,
            call_limit_stops=settings.call_limit_stops,
        )
        async with sealed(sealer):
            yield Driver(parts, listing, pins(settings, authorization))


@asynccontextmanager
async def sealed(sealer: Sealer | None) -> AsyncIterator[None]:
    """Seal the record beside what is done in the block, and once more behind it."""
    if sealer is None:
        yield
        return
    stop = asyncio.Event()
    sealing = asyncio.create_task(seal.run(sealer, stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait([sealing], timeout=SEAL_SECONDS_MAX)


@asynccontextmanager
async def runtime(settings: Settings, links: Links) -> AsyncIterator[Runtime]:
    """The same with the queue, for a worker, which may be started before its tool server. Raises NotReadyError."""
    async with driver(settings, links, PATIENCE_SECONDS) as opened:
        queue = queue_app(links.dsn)
        async with queue.open_async():
            yield Runtime(opened, queue, waker(queue))


async def _tracked(pool: Pool) -> None:
    """Several at a time only where it was seen that every call can be traced; raises NotReadyError."""
    async with pool.connection() as connection:
        if await rollout.tracked(connection):
            return
    raise NotReadyError(
        "one case at a time, until a stage of the rollout was passed with no call untracked\n"
        "Leave out KESSAI_CONCURRENCY and --concurrency; see kessai rollout status."
    )


async def _listed(listing: Listing, patience_seconds: float) -> None:
    until = time.monotonic() + patience_seconds
    while isinstance(found := await listing.refresh(), NotReady):
        if found.reason is not Reason.UNREACHABLE or time.monotonic() > until:
            raise NotReadyError(f"{found.what} {found.mend}")
        await asyncio.sleep(AGAIN_SECONDS)


def _planner(settings: Settings) -> Planner:
    match settings.planner:
        case "conformance":
            return ConformancePlanner(WORKFLOWS)
