"""Chain what was logged, sign the end of the chain, and keep the hosts' heads: the sealer's statements.

Invariant: a head is signed as the database gave it, and a head that wants a signature gets one, whoever chained it.
"""

from __future__ import annotations

from datetime import datetime

from psycopg import AsyncConnection, errors

from shared_contracts.seal import Head, SealLag, Signer
from tool_server.errors import ToolServerError
from tool_server.store.pool import Pool
from tool_server.store.queries import queries

_SQL = queries("seals")
BATCH = 500


class NotWholeError(ToolServerError):
    """Some of the log is not what was sealed of it: what tells of that would go with a cut."""

    exit_code = 1


async def seal_batch(pool: Pool, signer: Signer) -> int:
    """Seal at most a batch; give how many heads were signed. 0: nothing is new, or another sealer is at work."""
    async with pool.connection() as connection:
        rows = await (await connection.execute(_SQL["batch"], {"most": BATCH})).fetchall()
        for chain, n, chained, horizon, whole, at in rows:
            head = Head(side="tools", chain=chain, n=n, chained=chained, horizon=horizon, whole=whole, at=at)
            await connection.execute(_SQL["sign"], {"n": n, "signed": signer.sign(head)})
    return len(rows)


async def newest(pool: Pool) -> str | None:
    """Give the newest head as it was signed; None while there is none."""
    (signed,) = await pool.one(_SQL["newest"], {})
    return None if signed is None else str(signed)


async def witness(pool: Pool, head: Head, signed: str) -> None:
    """Keep a head of a host, which the caller has verified."""
    await pool.one(_SQL["witness"], {"n": head.n, "signed": signed})


async def lag(pool: Pool) -> SealLag:
    """Tell how far behind the seals are."""
    waits, signed, kept = await pool.one(_SQL["lag"], {})
    return SealLag(waits=waits, signed=signed, kept=kept)


async def cut(dsn: str, before: datetime, actor: str, *, verify_first: bool) -> int:
    """Take out what was sealed before a time, as the owner; give the line behind which the log begins, 0 for none.

    Raises NotWholeError where some of it is not as it was sealed.
    """
    parameters = {"before": before, "actor": actor, "unverified": not verify_first}
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        try:
            row = await (await connection.execute(_SQL["cut"], parameters)).fetchone()
        except errors.CheckViolation as error:
            if error.diag.constraint_name != "whole":
                raise
            raise NotWholeError(f"{error.diag.message_primary}; nothing was cut") from error
    return 0 if row is None else int(row[0])
