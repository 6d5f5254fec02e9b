"""Durable steps that come together are committed together: one statement, one commit, one trip to the disk.

A step that comes alone goes at once. While a statement is under way, the steps that come gather for the next one.
Whom a step travels with harms it not: what fails together is tried again alone, and where it was committed after all,
its version says so.
"""

from __future__ import annotations

import asyncio

from host.domain.rows import Rows
from host.store import ledger
from host.store.ledger import Committed
from host.store.pool import Pool

STEPS_MAX = 64


class Commits:
    """The durable steps of one process."""

    def __init__(self, pool: Pool) -> None:
        """Write through `pool`."""
        self._pool = pool
        self._turn = asyncio.Lock()
        self._gathering: _Group | None = None

    async def commit(self, rows: Rows) -> Committed:
        """Write one workflow's step; raises what `ledger.commit_steps` raises for it, and for no other."""
        (workflow,) = rows["workflows"]
        name = str(workflow["workflow_id"])
        group = self._join(name, rows)
        try:
            done = await asyncio.shield(group.written)
        except Exception:
            if len(group.steps) == 1:  # alone, whatever it was meets only whom it is about
                raise
            async with self._pool.connection() as connection:
                done = await ledger.commit_steps(connection, rows)
        return done[name]

    def _join(self, name: str, rows: Rows) -> _Group:
        """Add a step to the group that gathers; two steps of one workflow never travel together."""
        group = self._gathering
        if group is None or name in group.steps or len(group.steps) == STEPS_MAX:
            group = self._gathering = _Group()
            group.written = asyncio.create_task(self._write(group))
        group.steps[name] = rows
        return group

    async def _write(self, group: _Group) -> dict[str, Committed]:
        async with self._turn:
            if self._gathering is group:
                self._gathering = None
            async with self._pool.connection() as connection:
                return await ledger.commit_steps(connection, _together(list(group.steps.values())))


class _Group:
    """Steps of different workflows, and the task that writes them."""

    written: asyncio.Task[dict[str, Committed]]

    def __init__(self) -> None:
        self.steps: dict[str, Rows] = {}


def _together(steps: list[Rows]) -> Rows:
    """Lay the steps' rows together, table by table."""
    if len(steps) == 1:
        return steps[0]
    tables = dict.fromkeys(table for rows in steps for table in rows)
    return {table: [row for rows in steps for row in rows.get(table, ())] for table in tables}
