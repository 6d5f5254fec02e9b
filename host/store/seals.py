"""Chain what was written, sign the end of the chain, and keep the heads of the other side: the sealer's statements.

Invariant: a head is signed as the database gave it, and a head that wants a signature gets one, whoever chained it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from psycopg import AsyncConnection

from host.store.queries import load_queries
from shared_contracts.seal import Head, SealLag, Signer

_SQL = load_queries(__file__)
BATCH = 500


async def seal_batch(connection: AsyncConnection[Any], signer: Signer) -> int:
    """Seal at most a batch; give how many heads were signed. 0: nothing is new, or another sealer is at work."""
    cursor = await connection.execute(_SQL["batch"], {"most": BATCH})
    heads = [
        Head(side="host", chain=chain, n=n, chained=chained, horizon=horizon, whole=whole, at=at)
        for chain, n, chained, horizon, whole, at in await cursor.fetchall()
    ]
    for head in heads:
        await connection.execute(_SQL["sign"], {"n": head.n, "signed": signer.sign(head)})
    return len(heads)


async def newest(connection: AsyncConnection[Any]) -> str | None:
    """Give the newest head as it was signed; None while there is none."""
    row = await (await connection.execute(_SQL["newest"])).fetchone()
    return None if row is None else row[0]


async def witness(connection: AsyncConnection[Any], head: Head, signed: str) -> None:
    """Keep a head of the other side, which the caller has verified."""
    await connection.execute(_SQL["witness"], {"n": head.n, "signed": signed})


async def lag(connection: AsyncConnection[Any]) -> SealLag:
    """Tell how far behind the seals are."""
    ((waits, signed, kept),) = await (await connection.execute(_SQL["lag"])).fetchall()
    return SealLag(waits=waits, signed=signed, kept=kept)


async def cut(connection: AsyncConnection[Any], before: datetime, actor: str) -> int:
    """Take out what was sealed before a time, as the owner; give the line that it begins behind, 0 for none."""
    row = await (await connection.execute(_SQL["cut"], {"before": before, "actor": actor})).fetchone()
    return 0 if row is None else int(row[0])


async def erase(connection: AsyncConnection[Any], audit: int, actor: str) -> bool:
    """Erase the words of a row, as the owner; tell whether there were any."""
    row = await (await connection.execute(_SQL["erase"], {"audit": audit, "actor": actor})).fetchone()
    return row is not None and bool(row[0])


async def note_restored(connection: AsyncConnection[Any]) -> None:
    """Note where a backup's record ends, as the owner, before anything is written to it."""
    await connection.execute(_SQL["note_restored"])
