"""What another case's doubt, a lying answer and a broken case do: nothing that a person would have to regret."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from host.domain.outcome import Success
from host.engine.drive import drive
from host.engine.parts import Parts, Request
from host.engine.worker import run_once
from host.store import ledger
from host.store.errors import InvariantError
from tests.support.engine import advance_clock, asynchronous, engine, owners, rows, take, untouched
from tests.support.fake_tools import FakeTools, rejected, unknown


def answering(tools: FakeTools, **changes: Any) -> Any:
    def answer(request: Request) -> Success:
        honest = tools.honest(request)
        assert isinstance(honest, Success)
        return Success({**honest.result, **changes})

    return answer


@asynchronous
async def test_a_return_made_on_another_order_is_a_wrong_effect_with_an_alert_and_never_done():
    tools = FakeTools()
    tools.script["create_return"] = [answering(tools, order_id="A-9")]
    async with engine(tools) as parts:
        state = await drive(parts, await take(parts))
        assert state.task.state == "COMPENSATION_REQUIRED"
        assert await rows(parts, "SELECT result FROM audit WHERE action = 'alert'") == [("wrong_effect",)]
        ((mismatch,),) = await rows(parts, "SELECT mismatch FROM effect")
        assert mismatch["order_id"] == {"asked": "A-1", "answered": "A-9", "read": None}
    assert tools.sent("send_return_notice") == 0


@asynchronous
async def test_a_case_that_is_refused_for_units_in_doubt_goes_to_a_person_instead():
    tools = FakeTools(script={"create_return": [unknown()], "find_return": [rejected("internal_error")] * 3})
    async with engine(tools) as parts:
        doubtful = await take(parts, request_id="first")
        for _ in range(4):
            await drive(parts, doubtful)
            advance_clock(parts, 40)
        tools.line = {"left": 0}  # it did happen, and nobody knows
        state = await drive(parts, await take(parts, request_id="second"))
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unsettled_elsewhere")


@asynchronous
async def test_a_notice_does_not_wait_for_another_case_on_the_same_line():
    tools = FakeTools(script={"create_return": [None, unknown()], "find_return": [rejected("internal_error")] * 3})
    async with engine(tools) as parts:
        first, second = await take(parts, request_id="first"), await take(parts, request_id="second")
        tools.script["send_return_notice"] = [rejected("rate_limited")]
        assert (await drive(parts, first)).task.state == "RETRY_WAIT"
        for _ in range(4):
            await drive(parts, second)
            advance_clock(parts, 40)
        assert (await drive(parts, second)).task.reason == "unknown_effect"
        assert (await drive(parts, first)).task.state == "COMPLETED"


@pytest.mark.parametrize("commits", [0, 1])
def test_a_case_whose_drives_break_is_bounded_and_ends_with_a_person(commits: int) -> None:
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            if commits:
                tools.script["get_order"] = [rejected("rate_limited")]
                await drive(parts, workflow_id)
            broken = replace(parts, kinds=_Breaking(parts))
            for _ in range(parts.kinds["returns", "returns-1"].workflow.limits.recoveries + 1):
                advance_clock(parts, 60)
                assert await run_once(broken, workflow_id) is None
            ((state, control, reason),) = await rows(parts, "SELECT state, control_state, reason FROM workflow")
            assert (state, control, reason) == ("NEEDS_REVIEW", "needs_human", "recoveries_exhausted")
            ((ended,),) = await rows(parts, "SELECT count(*) FROM audit WHERE action = 'workflow_ended'")
            assert ended == 1

    run()


class _Breaking(dict[Any, Any]):
    """Kinds of a program that breaks on this case before it can commit."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts.kinds)

    def __getitem__(self, key: Any) -> Any:
        raise ZeroDivisionError


@asynchronous
async def test_no_request_begins_on_a_workflow_that_has_ended():
    async with engine(FakeTools(script={"get_order": [rejected("not_found")]})) as parts:
        workflow_id = await take(parts)
        ended = await drive(parts, workflow_id)
        assert ended.task.state == "REJECTED"
        opened = {
            "workflow_id": str(workflow_id),
            "step": 1,
            "n": 9,
            "purpose": "call",
            "tool": "get_order",
            "jti": "j",
        }
        with pytest.raises(InvariantError, match="no request begins"):
            async with parts.pool.connection() as connection:
                await ledger.commit_steps(connection, {**untouched(ended), "attempts_opened": [opened]})


@asynchronous
async def test_the_auditor_reads_no_word_of_a_customer():
    async with engine(FakeTools()) as parts:
        await drive(parts, await take(parts))
        with owners(parts) as connection:
            connection.execute("SET ROLE host_auditor")
            connection.execute("SELECT step_id, jti FROM call JOIN attempt USING (workflow_id, step)")
            for table, column in (
                ("call", "result"),
                ("call", "arguments"),
                ("decision", "facts"),
                ("attempt", "error"),
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(f"SELECT {column} FROM {table}")  # noqa: S608 - our own names
                connection.rollback()
                connection.execute("SET ROLE host_auditor")
