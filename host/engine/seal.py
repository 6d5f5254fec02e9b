"""Seals the host's record once a second, and exchanges heads with the tool server: each keeps what the other signed.

Invariant: a head of the tool server is kept only where a key signed it that is trusted for its record. Sealing waits
for no tool server, and no step waits for a seal. Any number of processes may seal at once: one of them does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from psycopg import AsyncConnection

from host.store import seals
from host.store.pool import bounded
from shared_contracts.seal import Signer, UnsealedError, opened

SECONDS = 0.4  # between rounds; what is new is sealed within a second
QUIET_ROUNDS = 10  # after so many, the tool server is asked for its head although ours is the same
CONNECT_SECONDS = 5
_SESSION = "-c lock_timeout=2000 -c statement_timeout=10000 -c idle_in_transaction_session_timeout=10000"
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Sealer:
    """`exchange` gives the tool server our newest head and answers with its own; None where it cannot be had."""

    dsn: str
    signer: Signer
    tools: Mapping[str, Ed25519PublicKey]
    exchange: Callable[[str], Awaitable[str | None]]


async def seal_all(sealer: Sealer) -> None:
    """Seal what there is, and exchange heads once. Raises what a database raises."""
    async with _connected(sealer) as connection:
        await _seal(connection, sealer)
        await _exchange(connection, sealer, await seals.newest(connection))


async def run(sealer: Sealer, stop: asyncio.Event) -> None:
    """Seal until asked to stop, and then once more. A database that is away is waited for."""
    waits = False
    while not stop.is_set():
        try:
            async with _connected(sealer) as connection:
                await _seal(connection, sealer)
                if waits:
                    log.info("sealing_goes_on")
                await _rounds(connection, sealer, stop)
        except psycopg.Error as error:
            waits = True
            log.warning("sealing_waits", error=type(error).__name__)
            await _pause(stop)
        except ValueError as error:  # what the database gave is no head: somebody has been at it
            waits = True
            log.error("sealing_broke", error=type(error).__name__)  # noqa: TRY400 - its text may quote data
            await _pause(stop)


async def _rounds(connection: AsyncConnection[Any], sealer: Sealer, stop: asyncio.Event) -> None:
    told, quiet = None, 0
    while True:
        last = stop.is_set()
        await _seal(connection, sealer)
        head = await seals.newest(connection)
        quiet += 1
        if (head != told or quiet >= QUIET_ROUNDS) and await _exchange(connection, sealer, head):
            told, quiet = head, 0
        if last:
            return
        await _pause(stop)


async def _seal(connection: AsyncConnection[Any], sealer: Sealer) -> None:
    while await seals.seal_batch(connection, sealer.signer):
        pass


async def _exchange(connection: AsyncConnection[Any], sealer: Sealer, head: str | None) -> bool:
    """Tell whether the tool server has our head."""
    if head is None:
        return False
    theirs = await sealer.exchange(head)
    if theirs is None:
        return False
    try:
        await seals.witness(connection, opened(theirs, "tools", sealer.tools), theirs)
    except UnsealedError as error:
        log.warning("head_refused", reason=str(error))
    return True


async def _pause(stop: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS):
            await stop.wait()


@asynccontextmanager
async def _connected(sealer: Sealer) -> AsyncIterator[AsyncConnection[Any]]:
    conninfo = bounded(sealer.dsn, _SESSION, connect_timeout=CONNECT_SECONDS)
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        yield connection
