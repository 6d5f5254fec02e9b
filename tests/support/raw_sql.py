"""Raw SQL as a meddling owner would write it, and places of a workflow from which to try it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest

from host.domain.control import ENDS, Control
from host.engine.drive import drive
from host.engine.parts import Parts
from tests.support.engine import advance_clock, engage, take
from tests.support.fake_tools import FakeTools, rejected, unknown

Sql = psycopg.Connection[Any]


@contextmanager
def refused(connection: Sql, *states: str) -> Iterator[None]:
    """The statements, or their commit at the latest, are refused, and nothing of them stays."""
    with pytest.raises(psycopg.Error) as caught, connection.transaction():
        yield
    assert caught.value.sqlstate in states, caught.value


def move_of(connection: Sql, event: str, source: str, control: str | None = None) -> int:
    """A legal move of this event from this state."""
    row = connection.execute(
        "SELECT move_id FROM legal_transition WHERE event = %s AND business_from = %s "
        "AND (%s::text IS NULL OR control_from = %s) ORDER BY move_id LIMIT 1",
        (event, source, control, control),
    ).fetchone()
    assert row is not None
    return int(row[0])


def advance(connection: Sql, state: str, control: str, *, by: int = 1) -> None:
    """Move the row, and all that has to go with it."""
    ended = Control(control) in ENDS
    connection.execute(
        "UPDATE workflow SET seq = seq + %s, version = version + 1, state = %s, control_state = %s, "
        "resume_state = NULL, review_since = CASE WHEN %s = 'NEEDS_REVIEW' THEN clock_now() END, "
        "wake_at = CASE WHEN NOT %s THEN wake_at END, wake_reason = CASE WHEN NOT %s THEN wake_reason END",
        (by, state, control, state, ended, ended),
    )


def append(connection: Sql, move: int, *, ahead: int = 0) -> None:
    """Write a checkpoint where the row stands."""
    connection.execute(
        "INSERT INTO checkpoint SELECT workflow_id, seq + %s, %s, 'raw', '{}', clock_now() FROM workflow", (ahead, move)
    )


async def planning(parts: Parts) -> UUID:
    """A case that was read and waits for the end of a stop: control `planning`, state ELIGIBLE."""
    engage(parts, "updates")
    workflow_id = await take(parts)
    await drive(parts, workflow_id)
    engage(parts, "updates", engaged=False)
    return workflow_id


async def in_doubt(parts: Parts, tools: FakeTools) -> UUID:
    """A case whose effect has no outcome."""
    tools.script = {"create_return": [tools.then(unknown())], "find_return": [rejected("no_answer")] * 9}
    workflow_id = await take(parts)
    for _ in range(5):
        await drive(parts, workflow_id)
        advance_clock(parts, 31)
    return workflow_id
