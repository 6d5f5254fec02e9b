"""Whoever needs a person stands in the exception queue, and nobody else does, whatever wrote the row."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest

from host.engine.drive import drive
from host.store import record
from tests.support.engine import asynchronous, engine, owners, take
from tests.support.fake_tools import FakeTools, rejected


@asynchronous
async def test_a_case_is_in_the_exception_queue_exactly_while_a_person_has_it():
    tools = FakeTools(script={"get_order": [rejected("scope_missing")]})
    async with engine(tools) as parts:
        handed_over = await take(parts, request_id="handed-over")
        await drive(parts, handed_over)
        done = await take(parts, request_id="done", order_id="A-2")
        await drive(parts, done)
        async with parts.pool.connection() as connection:
            queue = await record.exceptions(connection, 10)
        with owners(parts) as sql:
            for workflow_id, since in ((handed_over, None), (done, datetime.now(UTC))):
                with pytest.raises(psycopg.Error) as refused:
                    sql.execute("UPDATE workflow SET review_since = %s WHERE workflow_id = %s", (since, workflow_id))
                assert refused.value.sqlstate == "23514"
    assert [row.workflow_id for row in queue] == [handed_over]
    assert queue[0].age_seconds >= 0
