"""The exit codes that need a world of their own: stopped, expired, to be undone, failed, interrupted."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from host.domain.proposals import Final
from host.engine.drive import drive
from host.engine.parts import Parts
from tests.support.cli import EXAMPLES, Cli, case, written
from tests.support.engine import engine, settle, take
from tests.support.fake_tools import FakeTools
from tests.support.scripted_planner import ScriptedPlanner

pytestmark = pytest.mark.xdist_group("cli")


@contextmanager
def stopped(stack: Cli, scope: str) -> Iterator[None]:
    """As an operator engages a stop, and lifts it again."""
    with stack.owner("host") as owner:
        for engaged in (True, False):
            with owner.transaction():
                owner.execute("SELECT pg_advisory_xact_lock(stop_lock_key())")
                owner.execute("UPDATE stop SET engaged = %s WHERE scope = %s", (engaged, scope))
            if engaged:
                yield


def test_new_work_under_a_stop_is_refused_and_nothing_is_written(stack: Cli, tmp_path: Path):
    file = written(tmp_path, case("missing-order", request_id="under-a-stop"))
    with stopped(stack, "new_work"):
        said = stack("run", file, "--json")
        with stack.owner("host") as owner:
            rows = owner.execute("SELECT count(*) FROM workflow WHERE request_id = 'under-a-stop'").fetchone()
    assert (said.code, said.out, rows) == (14, "", (0,))
    assert "stopped" in said.err
    assert stack("run", file).code == 0


def test_a_case_that_a_stop_halts_keeps_its_place_and_goes_on_when_the_stop_is_lifted(stack: Cli, tmp_path: Path):
    own = {"order_id": "A-1036", "customer_id": "C-2036"}  # no example's, whose units other tests need
    file = written(tmp_path, case("fault-disconnect", request_id="halted-by-a-stop", **own))
    with stopped(stack, "updates"):
        said = stack("run", file, "--json")
        record = said.json()
        again = stack("run", record["workflow_id"])
    assert (said.code, record["state"], record["status"], record["effects"]) == (14, "ELIGIBLE", "waiting", [])
    assert again.code == 14
    assert "kessai run" in again.err or "host.cli run" in again.err
    done = stack("run", record["workflow_id"], "--json")
    assert done.code == 0
    assert done.json()["workflow_id"] == record["workflow_id"]


def test_an_approval_that_nobody_gave_in_time_has_expired(stack: Cli, tmp_path: Path):
    waiting = stack("run", written(tmp_path, case("splitting", request_id="expiring")), "--json")
    assert waiting.code == 10
    with stack.owner("host") as owner:
        real = owner.execute("SELECT pg_get_functiondef('clock_now()'::regprocedure)").fetchone()
        assert real is not None
        owner.execute(
            "CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql STABLE AS "
            "$$ SELECT clock_timestamp() + interval '24 hours 1 second' $$"
        )
        try:
            said = stack("run", waiting.json()["workflow_id"], "--json")
        finally:
            owner.execute(real[0])
    assert (said.code, said.json()["state"], said.json()["status"]) == (12, "EXPIRED", "stopped")
    assert said.json()["effects"] == []


def other_engines(stack: Cli, parts: Parts) -> dict[str, str]:
    """The settings of a host whose database is that of the test's own engine."""
    issuers = (stack.home / "keys" / "issuers.json").read_text(encoding="utf-8")
    return {
        "KESSAI_DSN": parts.pool.conninfo,
        "KESSAI_SERVER_URL": f"http://127.0.0.1:{stack.part('tool_server')['port']}/mcp",
        "KESSAI_ISSUER": issuers.partition('"issuer": "')[2].partition('"')[0],
        "KESSAI_SIGNING_KEY_FILE": str(stack.home / "keys" / "signing.jwk"),
    }


def test_an_effect_that_has_to_be_undone_has_a_code_of_its_own(stack: Cli):
    async def wrong_effect() -> int:
        tools = FakeTools()
        honest = tools.new_return
        tools.new_return = lambda arguments: honest({**arguments, "order_id": "A-OTHER"})
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            await settle(parts, workflow_id)
            said = await asyncio.to_thread(stack, "run", str(workflow_id), "--json", **other_engines(stack, parts))
            assert said.json()["state"] == "COMPENSATION_REQUIRED", said.err
            return said.code

    assert asyncio.run(wrong_effect()) == 13


def test_a_run_that_failed_by_the_planners_fault_is_told_from_one_that_a_person_has(stack: Cli):
    async def failed() -> int:
        planner = ScriptedPlanner(always=lambda _view: Final({"done": True}, ()))
        async with engine(FakeTools(), planner) as parts:
            workflow_id = await take(parts)
            await drive(parts, workflow_id)
            said = await asyncio.to_thread(stack, "run", str(workflow_id), "--json", **other_engines(stack, parts))
            assert (said.json()["state"], said.json()["status"]) == ("NEEDS_REVIEW", "failed"), said.err
            return said.code

    assert asyncio.run(failed()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on_and_then_goes_on(stack: Cli, tmp_path: Path, number: signal.Signals):
    quick = stack.with_settings(KESSAI_LEASE_SECONDS="2")
    file = written(tmp_path, case("other-customer", request_id=f"interrupted-{number}"))
    with stack.owner("tools") as tools, tools.transaction():
        tools.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        tools.execute("LOCK TABLE orders.orders")  # the call hangs, so that there is something to interrupt
        with quick.start("run", file) as process:
            assert process.stdout is not None
            seen = ""
            while "tool_running" not in seen:
                seen += (line := process.stdout.readline())
                assert line != "", process.communicate()[1]
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "interrupted; go on with:" in err
    assert "Traceback" not in seen + err
    workflow_id = err.strip().rpartition(" ")[2]
    said = quick("run", workflow_id, "--json")
    assert said.json()["workflow_id"] == workflow_id
    assert (said.code, said.json()["reason"]) == (0, "order_not_found")


HELD_ELSEWHERE = """
UPDATE workflow SET lease_owner = 'elsewhere:1', lease_until = clock_now() + interval '10 minutes', fence = fence + 1,
       wake_at = NULL, wake_reason = NULL WHERE workflow_id = %s
"""


def test_a_run_follows_the_record_while_another_has_the_lease_and_takes_over_when_it_is_gone(
    stack: Cli, tmp_path: Path
):
    with stopped(stack, "reads"), stack.owner("host") as owner:
        halted = stack("run", written(tmp_path, case("missing-order", request_id="followed")), "--json")
        owner.execute(HELD_ELSEWHERE, (halted.json()["workflow_id"],))
    assert halted.code == 14
    with stack.start("run", halted.json()["workflow_id"]) as process:
        assert process.stdout is not None
        while "another process drives it: elsewhere:1" not in (line := process.stdout.readline()):
            assert line != "", process.communicate()[1]
        with stack.owner("host") as owner:
            gone = "UPDATE workflow SET lease_until = clock_now() WHERE workflow_id = %s"
            owner.execute(gone, (halted.json()["workflow_id"],))
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "REJECTED (order_not_found)" in rest


def test_every_example_that_ended_can_be_run_by_its_id(stack: Cli):
    record = stack("run", str(EXAMPLES / "final-sale.json"), "--json").json()
    assert stack("run", record["workflow_id"]).code == 0
