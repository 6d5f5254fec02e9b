"""What has to be known before anything goes on after a stop: every effect without an outcome is looked up by its key.

    at work  ──► driven: under a stop a driver records what is in doubt, and then waits
    handed over ──► looked up, and what was found is recorded

Bounded: what cannot be found out in time stays unknown, and whoever asked is told.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from uuid import UUID

from host.domain.acting import By
from host.domain.control import Control
from host.engine.drive import load
from host.engine.parts import Parts
from host.engine.reapply import NotPossibleError
from host.engine.review import look_up
from host.engine.worker import run_once
from host.store import stops

PATIENCE_SECONDS = 60.0  # for all that others hold or that is due later; longer than any lease that is renewed no more
LOOK_SECONDS = 0.1
_UNDER_WAY = frozenset({Control.TOOL_RUNNING, Control.OBSERVING})


async def find_out(parts: Parts, by: By, patience_seconds: float = PATIENCE_SECONDS) -> int:
    """Find out what can be found out; gives how many cases were in doubt."""
    async with parts.pool.connection() as connection, connection.transaction():
        await stops.be_patient(connection)
        doubtful = await stops.in_doubt(connection)
    until = time.monotonic() + patience_seconds
    for one in doubtful:
        if one.open and await _carried(parts, one.workflow_id):
            await _finish(parts, one.workflow_id, until)
    for one in doubtful:
        with suppress(NotPossibleError):  # a driver found it out, or a person acts on it at this moment
            await look_up(parts, one.workflow_id, by)
    return len(doubtful)


async def _carried(parts: Parts, workflow_id: UUID) -> bool:
    """Tell whether this program knows the case's release; a drive of one that it does not know counts as broken."""
    task = (await load(parts, workflow_id)).task
    return (task.kind, task.release) in parts.kinds


async def _finish(parts: Parts, workflow_id: UUID, until: float) -> None:
    """Drive until nothing of it is under way; whoever else has it is waited for."""
    while True:
        await run_once(parts, workflow_id)
        state = await load(parts, workflow_id)
        if state.control.control not in _UNDER_WAY or time.monotonic() > until:
            return
        await asyncio.sleep(LOOK_SECONDS)
