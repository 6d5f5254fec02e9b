"""After a restore, as the owner: what the backup knows as waiting may have been sent by the system that it is of.

Invariant: no notice that may have left is sent again by itself. This is for a database that nobody works on yet: a live
handler's row looks no different from one of the backup.
"""

from __future__ import annotations

from psycopg import AsyncConnection

from tool_server.store.queries import queries

_SQL = queries("restored")


async def doubt_waiting(dsn: str) -> int:
    """Say of each notice that is not at its end that it is unknown whether it left; give how many there were."""
    async with await AsyncConnection.connect(dsn, autocommit=False) as connection:
        await connection.execute(_SQL["note_record"])
        await connection.execute(_SQL["doubt_pending"])
        return (await connection.execute(_SQL["doubt_sending"])).rowcount
