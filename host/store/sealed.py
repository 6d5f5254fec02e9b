"""Reads a sealed record as an auditor: the chain, its heads, what the other side keeps of it, and every line.

Invariant: nothing is judged here, and no more than a page of lines is held at a time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, LiteralString

from psycopg import AsyncConnection

from host.domain.sealed import Chain, Line, Restored, Unsealed
from host.store import sealed_tools
from host.store.queries import load_queries
from shared_contracts.seal import SideName

PAGE = 2000
_SQL = load_queries(__file__)
_OF: Mapping[SideName, Mapping[str, LiteralString]] = {"host": _SQL, "tools": sealed_tools.STATEMENTS}
Witnesses = tuple[tuple[int, str], ...]


async def witnesses(connection: AsyncConnection[Any], keeper: SideName) -> Witnesses:
    """Read what this side keeps of the other."""
    return tuple(await _rows(connection, _OF[keeper]["witnesses"]))


async def restored(connection: AsyncConnection[Any], side: SideName) -> tuple[Restored, ...]:
    """Read where a backup's record ended."""
    return tuple(Restored(n, seen) for n, seen in await _rows(connection, _OF[side]["restored"]))


async def chain(
    connection: AsyncConnection[Any], side: SideName, kept: Witnesses, restored_there: tuple[Restored, ...]
) -> Chain:
    """Read all but the lines; `kept` and `restored_there` are the other side's word."""
    sql = _OF[side]
    ((chain_id, cut),) = await _rows(connection, sql["chain"])
    heads = await _rows(connection, sql["heads"])
    return Chain(
        side=side,
        chain=chain_id,
        cut=cut,
        heads=tuple(signed for _, signed, _ in heads if signed is not None),
        unsigned=tuple((n, seconds) for n, signed, seconds in heads if signed is None),
        witnesses=kept,
        restored=await restored(connection, side),
        restored_there=restored_there,
        unsealed=tuple(Unsealed(*row) for row in await _rows(connection, sql["unsealed"])),
    )


async def signed_to(connection: AsyncConnection[Any], side: SideName) -> int:
    """Read up to which line there is a signed head, 0 where there is none."""
    return max((n for n, signed, _ in await _rows(connection, _OF[side]["heads"]) if signed is not None), default=0)


async def lines(connection: AsyncConnection[Any], side: SideName) -> AsyncIterator[Line]:
    """Give every line in its order."""
    after = 0
    while page := await _rows(connection, _OF[side]["lines"], after=after, most=PAGE):
        for n, source, row_id, sealed, chained, erased, stands in page:
            yield Line(n, source, row_id, sealed, chained, erased=erased, stands=stands, known=True)
        after = page[-1][0]


async def _rows(connection: AsyncConnection[Any], query: LiteralString, **parameters: int) -> list[tuple[Any, ...]]:
    return await (await connection.execute(query, parameters)).fetchall()
