"""Durable steps that come together are committed together: one statement, one commit, one trip to the disk.

A step that comes alone goes at once. While a statement is under way, the steps that come gather for the next one; once
ENOUGH have gathered they wait no longer, and two statements are under way. Whom a step travels with harms it not: what
fails together is tried again alone, and where it was committed after all, its version says so.
"""

from __future__ import annotations

import asyncio
from collections import deque

from host.domain.rows import Rows
from host.store import ledger
from host.store.ledger import Committed
from host.store.pool import Pool

STEPS_MAX = 64
ENOUGH = 8  # fewer gain more from company than from not waiting for it
STATEMENTS_MAX = 2


class Commits:
    """The durable steps of one process."""

    def __init__(self, pool: Pool) -> None:
        """Write through `pool`; `kept` are the digests of the offers that a commit of this process has written."""
        self._pool = pool
        self.kept: set[str] = set()
        self._under_way = 0
        self._gathering: deque[_Group] = deque()

    async def commit(self, rows: Rows) -> Committed:
        """Write one workflow's step; raises what `ledger.commit_steps` raises for it, and for no other."""
        (workflow,) = rows["workflows"]
        name = str(workflow["workflow_id"])
        group = self._join(name, rows)
        try:
            done = await asyncio.shield(group.written)
        except Exception:
            if len(group.steps) == 1:
                raise
            # Nothing is lost of it: whom it is about meets it again here, alone, and raises it into its own record.
            async with self._pool.connection() as connection:
                done = await ledger.commit_steps(connection, rows)
        self.kept.update(str(offer["sha256"]) for offer in rows.get("offers", ()))
        return done[name]

    def _join(self, name: str, rows: Rows) -> _Group:
        """Add a step to the group that gathers; two steps of one workflow never travel together."""
        group = self._gathering[-1] if self._gathering else None
        if group is None or name in group.steps or len(group.steps) == STEPS_MAX:
            group = _Group()
            group.written = asyncio.create_task(self._write(group))
            self._gathering.append(group)
        group.steps[name] = rows
        self._let_go()
        return group

    def _let_go(self) -> None:
        """Send the groups that may leave now, oldest first."""
        while self._gathering:
            most = STATEMENTS_MAX if len(self._gathering[0].steps) >= ENOUGH else 1
            if self._under_way >= most:
                return
            self._under_way += 1
            self._gathering.popleft().leaves.set()

    async def _write(self, group: _Group) -> dict[str, Committed]:
        await group.leaves.wait()
        try:
            async with self._pool.connection() as connection:
                return await ledger.commit_steps(connection, _together(list(group.steps.values())))
        finally:
            self._under_way -= 1
            self._let_go()


class _Group:
    """Steps of different workflows, and the task that writes them."""

    written: asyncio.Task[dict[str, Committed]]

    def __init__(self) -> None:
        self.steps: dict[str, Rows] = {}
        self.leaves = asyncio.Event()


def _together(steps: list[Rows]) -> Rows:
    """Lay the steps' rows together, table by table."""
    if len(steps) == 1:
        return steps[0]
    tables = dict.fromkeys(table for rows in steps for table in rows)
    return {table: [row for rows in steps for row in rows.get(table, ())] for table in tables}
