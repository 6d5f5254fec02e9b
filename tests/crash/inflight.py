"""What is in flight at one moment, as the database has it: who drives, in which state, with which request out."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from host.stack.pids import Identity
from shared_contracts.tools import TOOLS
from tests.crash.desk import Desk

WRITES = frozenset(name for name, tool in TOOLS.items() if tool.writes)
_LEASED = """
SELECT w.workflow_id, w.lease_owner, w.control_state, a.tool, a.purpose, a.jti
  FROM workflow w LEFT JOIN attempt a ON a.workflow_id = w.workflow_id AND a.outcome IS NULL
 WHERE w.lease_owner IS NOT NULL AND w.lease_until > clock_now()
"""
_STILL_OUT = "SELECT jti FROM attempt WHERE jti = ANY (%(jtis)s) AND (ended_at IS NULL OR ended_at > %(at)s)"


@dataclass(frozen=True)
class Flight:
    """One workflow that somebody drives; `tool` is that of the request under way, if one is."""

    workflow_id: UUID
    owner: str
    control: str
    tool: str | None
    purpose: str | None
    jti: str | None

    @property
    def inside_write(self) -> bool:
        """A write is running: its intent is committed, and what became of it is not."""
        return self.control == "tool_running" and self.purpose == "call" and self.tool in WRITES

    @property
    def place(self) -> tuple[str, str]:
        """The control state, and the request under way."""
        what = "-" if self.tool is None else self.tool
        return self.control, what if self.purpose in {None, "call"} else f"{what} ({self.purpose})"


def owner_of(worker: Identity) -> str:
    """As a worker signs its leases."""
    return f"{socket.gethostname()}:{worker.pid}"


async def in_flight(desk: Desk) -> list[Flight]:
    return _read(await desk.rows(_LEASED))


async def still_out(desk: Desk, flights: Iterable[Flight], at: datetime) -> list[Flight]:
    """Those whose request had no recorded answer at that moment of the database's clock."""
    seen = {flight.jti: flight for flight in flights}
    return [seen[jti] for (jti,) in await desk.rows(_STILL_OUT, jtis=list(seen), at=at)]


async def database_time(desk: Desk) -> datetime:
    ((now,),) = await desk.rows("SELECT clock_now()")
    assert isinstance(now, datetime)
    return now


def _read(rows: Iterable[tuple[Any, ...]]) -> list[Flight]:
    return [Flight(*row) for row in rows]
