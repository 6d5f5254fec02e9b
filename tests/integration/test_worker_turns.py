"""After a stop several workers drive one case at a time between them, and the next one's turn comes at once."""

from __future__ import annotations

import time
from pathlib import Path

from tests.integration.test_worker import stage_in, submit
from tests.support.engine import owners
from tests.support.worker_process import worker

CASES = 20
LIVE = b"SELECT count(*) FROM workflow WHERE lease_owner IS NOT NULL AND lease_until > clock_now()"
DONE = b"SELECT count(*) FROM workflow WHERE state = 'COMPLETED'"


def test_workers_take_turns_without_waiting_for_the_sweeper_and_no_case_is_counted_as_broken(tmp_path: Path):
    with stage_in(tmp_path) as stage, owners(stage.parts) as sql:
        sql.execute("UPDATE stop SET engaged = true WHERE scope = 'parallel'")
        with worker(stage.dsn, tmp_path), worker(stage.dsn, tmp_path):
            ids = submit(stage, CASES)
            started, at_once, done = time.monotonic(), 0, 0
            while done < CASES and time.monotonic() - started < 60:
                at_once = max(at_once, int(sql.execute(LIVE).fetchall()[0][0]))
                done = int(sql.execute(DONE).fetchall()[0][0])
            took = time.monotonic() - started
        assert done == CASES
        assert at_once == 1
        assert took < CASES * 0.75  # by the sweeper alone it would be one in each of its seconds
        assert stage.ask("SELECT max(recoveries) FROM workflow") == [(0,)]
        assert [stage.effects(one) for one in ids] == [["create_return", "send_return_notice"]] * CASES
