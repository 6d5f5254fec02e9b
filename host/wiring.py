"""The composition root: opens everything that a host process works with, in one place, and closes it again."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from procrastinate import App
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from pydantic import ValidationError

from host.domain.principals import AuthorizationSet
from host.domain.proposals import Planner
from host.domain.workflow import Workflow
from host.engine.accept import Pins
from host.engine.parts import Kind, Parts, Pool
from host.engine.wake import Wake, queue_app, waker
from host.planner.conformance import ConformancePlanner
from host.settings import Settings
from host.stack.keys import read_signing_key
from host.store import ledger
from host.store.migrate import packaged
from host.tool_client.client import ToolClient
from host.tool_client.gateway import Gateway
from host.tool_client.mint import Minter, SigningKey
from host.tool_client.readiness import Listing, NotReady
from host.workflows.returns import RETURNS
from shared_contracts.tools import TOOLS

# Every release that may have open workflows; a new one is added beside the old, which stays until none is open.
WORKFLOWS: tuple[Workflow, ...] = (RETURNS,)
CURRENT: dict[str, Workflow] = {workflow.kind: workflow for workflow in WORKFLOWS}
POOL_SIZE_MAX = 16
OPEN_SECONDS = 10.0


class NotReadyError(Exception):
    """Work cannot begin; the message says what is wrong and what mends it."""


@dataclass(frozen=True, slots=True)
class Links:
    """Where the host's database and the tool server are, and with which key calls are signed."""

    dsn: str
    server_url: str
    audience: str
    issuer: str
    signing_key_file: Path


@dataclass(frozen=True, slots=True)
class Runtime:
    """Everything opened."""

    parts: Parts
    queue: App
    wake: Wake
    listing: Listing
    pins: Pins


def read_authorization(file: Path) -> AuthorizationSet:
    """Read the authorization set; raises NotReadyError."""
    try:
        known = AuthorizationSet.model_validate_json(file.read_bytes())
    except OSError as error:
        raise NotReadyError(f"the authorization set {file} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise NotReadyError(f"the authorization set {file} is not valid: {error}") from error
    names = [principal.name for principal in known.principals]
    if len(set(names)) != len(names):
        raise NotReadyError(f"the authorization set {file} names a principal twice")
    return known


@asynccontextmanager
async def database(dsn: str, size: int = POOL_SIZE_MAX) -> AsyncIterator[Pool]:
    """Open the pool on a database of this program's schema; raises NotReadyError."""
    pool: Pool = AsyncConnectionPool(
        dsn, min_size=1, max_size=size, open=False, timeout=OPEN_SECONDS, kwargs={"autocommit": True}
    )
    try:
        await pool.open(wait=True, timeout=OPEN_SECONDS)
    except (PoolTimeout, psycopg.Error) as error:
        await pool.close()
        raise NotReadyError(f"the host's database does not answer: {_where(dsn)}; check KESSAI_DSN") from error
    try:
        await _check_schema(pool)
        yield pool
    finally:
        await pool.close()


def _where(dsn: str) -> str:
    known = psycopg.conninfo.conninfo_to_dict(dsn)
    return " ".join(f"{name}={known[name]}" for name in ("host", "port", "dbname", "user") if known.get(name))


async def _check_schema(pool: Pool) -> None:
    try:
        async with pool.connection() as connection:
            rows = await (await connection.execute("SELECT name FROM schema_version")).fetchall()
            open_releases = await ledger.open_releases(connection)
    except psycopg.errors.UndefinedTable as error:
        raise NotReadyError("the host's database has no schema yet; run `kessai migrate`") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise NotReadyError("this role may not read the host's database; run `kessai migrate` as its owner") from error
    ours, theirs = {file.name for file in packaged()}, {name for (name,) in rows} - {"procrastinate"}
    if theirs - ours:
        raise NotReadyError("the host's database has a newer schema than this program; install the newer program")
    if ours - theirs:
        raise NotReadyError("the host's database has an older schema; run `kessai migrate`")
    if missing := open_releases - {(workflow.kind, workflow.release) for workflow in WORKFLOWS}:
        raise NotReadyError(f"open workflows of {sorted(missing)} need a release that this program does not carry")


@asynccontextmanager
async def runtime(settings: Settings, links: Links) -> AsyncIterator[Runtime]:
    """Open everything; ready means that database, contracts and protocol were seen to fit. Raises NotReadyError."""
    authorization = read_authorization(settings.authz_file)
    key = SigningKey.from_jwk(read_signing_key(links.signing_key_file))
    minter = Minter(key, links.issuer, links.audience)
    size = min(POOL_SIZE_MAX, settings.concurrency + 4)
    async with database(links.dsn, size) as pool, ToolClient(links.server_url, _probe(minter)) as client:
        listing = Listing(client, TOOLS)
        found = await listing.refresh()
        if isinstance(found, NotReady):
            raise NotReadyError(f"{found.what} {found.mend}")
        parts = Parts(
            pool=pool,
            tools=Gateway(client, minter, listing),
            planner=_planner(settings),
            kinds=await _kinds(pool),
            registry=TOOLS,
            authorization=authorization,
            owner=f"{socket.gethostname()}:{os.getpid()}",
            lease_seconds=settings.lease_seconds,
        )
        queue = queue_app(links.dsn)
        async with queue.open_async():
            yield Runtime(parts, queue, waker(queue), listing, pins(settings, authorization))


def pins(settings: Settings, authorization: AuthorizationSet) -> Pins:
    """Name the data versions that new workflows are pinned to."""
    return Pins(settings.order_snapshot, settings.policy_version, authorization.version)


def _probe(minter: Minter) -> Callable[[], str]:
    return lambda: minter.probe("kessai", "kessai-host")


def _planner(settings: Settings) -> Planner:
    match settings.planner:
        case "conformance":
            return ConformancePlanner(CURRENT)


async def _kinds(pool: Pool) -> dict[tuple[str, str], Kind]:
    async with pool.connection() as connection:
        return {
            (workflow.kind, workflow.release): Kind(
                workflow, await ledger.moves(connection, workflow.kind, workflow.release)
            )
            for workflow in WORKFLOWS
        }
