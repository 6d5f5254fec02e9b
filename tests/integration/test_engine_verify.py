"""Is it true? Read back, compared, asked about again while it is only accepted, and undone where it is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from host.domain.control import Control, Execution
from host.domain.outcome import Success
from host.domain.workflow import Language
from host.engine.drive import drive
from host.workflows.returns import RETURNS
from tests.support.engine import advance_clock, asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown, yen


def looked_up(**result: Any) -> Any:
    """An answer to a look-up."""
    return lambda _request: Success({"evidence_ref": "key://k", **result})


@pytest.mark.parametrize("status", ["queued", "sending"])
def test_accepted_is_not_done_and_is_asked_about_again_within_its_bound(status):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()

        def not_yet(request: Any) -> Any:
            found = tools.honest(request)
            assert isinstance(found, Success)
            return Success({**found.result, "record": {**found.result["record"], "status": status}})

        tools.script = {"send_return_notice": [tools.but(status=status)], "find_notice": [not_yet, not_yet]}
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            waiting = await drive(parts, workflow_id)
            ((execution, reason),) = await rows(
                parts,
                "SELECT execution_state, wake_reason FROM call JOIN workflow USING (workflow_id) "
                "ORDER BY step DESC LIMIT 1",
            )
            state = await settle(parts, workflow_id)
        assert waiting.task.state == "RETURN_CREATED"
        assert (execution, reason) == ("running", "reconciliation")
        assert state.task.state == "COMPLETED"
        assert tools.sent("send_return_notice") == 1
        assert tools.sent("find_notice") == 3

    run()


@asynchronous
async def test_while_it_is_asked_about_again_an_accepted_request_still_counts_as_running_and_not_as_lost():
    tools, seen = FakeTools(), []
    async with engine(tools) as parts:

        async def looking(request: Any) -> Any:
            seen.extend(await rows(parts, "SELECT execution_state FROM call ORDER BY step DESC LIMIT 1"))
            found = tools.honest(request)
            assert isinstance(found, Success)
            status = "sent" if len(seen) == 3 else "queued"
            return Success({**found.result, "record": {**found.result["record"], "status": status}})

        tools.script = {"send_return_notice": [tools.but(status="queued")], "find_notice": [looking] * 3}
        state = await settle(parts, await take(parts))
    assert state.task.state == "COMPLETED"
    assert seen == [("running",)] * 3


@asynchronous
async def test_a_notice_that_was_answered_as_sent_and_reads_as_on_its_way_is_read_again():
    tools = FakeTools()

    def on_its_way(request: Any) -> Any:
        found = tools.honest(request)
        assert isinstance(found, Success)
        return Success({**found.result, "record": {**found.result["record"], "status": "sending"}})

    tools.script["find_notice"] = [on_its_way, on_its_way]
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert state.task.state == "COMPLETED"
    assert (tools.sent("send_return_notice"), tools.sent("find_notice")) == (1, 3)


@asynchronous
async def test_a_notice_that_stays_in_the_outbox_is_unknown_in_the_end():
    tools = FakeTools()

    def not_yet(request: Any) -> Any:
        found = tools.honest(request)
        assert isinstance(found, Success)
        return Success({**found.result, "record": {**found.result["record"], "status": "queued"}})

    tools.script = {"send_return_notice": [tools.but(status="queued")], "find_notice": [not_yet] * 9}
    async with engine(tools) as parts:
        states: list[Any] = []
        workflow_id = await take(parts)
        for _ in range(3):
            states.append((await drive(parts, workflow_id)).proposal)
            advance_clock(parts, 31)
        state = await settle(parts, workflow_id)
    assert {call.execution for call in states[:2] if call is not None} == {Execution.RUNNING}
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unknown_effect")
    assert tools.sent("find_notice") == 3


@asynchronous
async def test_a_notice_of_which_nobody_knows_whether_it_left_is_never_sent_again():
    tools = FakeTools()

    def doubtful(request: Any) -> Any:
        found = tools.honest(request)
        assert isinstance(found, Success)
        return Success({**found.result, "record": {**found.result["record"], "status": "unknown"}})

    tools.script = {"send_return_notice": [tools.but(status="unknown")], "find_notice": [doubtful]}
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
        ((execution,),) = await rows(parts, "SELECT execution_state FROM call ORDER BY step DESC LIMIT 1")
    assert (state.task.state, state.task.reason, execution) == ("NEEDS_REVIEW", "unknown_effect", "unknown")
    assert tools.sent("send_return_notice") == 1


WRONG: dict[str, dict[str, Any]] = {
    "order": {"order_id": "A-2"},
    "line": {"lines": [{"line_id": "2", "quantity": 1, "refund": yen(3000)}]},
    "quantity": {"lines": [{"line_id": "1", "quantity": 2, "refund": yen(3000)}]},
    "further line": {"lines": [{"line_id": n, "quantity": 1, "refund": yen(3000)} for n in ("1", "2")]},
    "no line": {"lines": []},
    "amount": {"refund": yen(2999)},
    "currency": {"refund": {"amount": 3000, "currency": "USD"}},
    "number": {"return_id": "R-77"},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_read_back_of_another_order_line_or_amount_has_to_be_undone_and_is_never_done(what):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        tools.script["get_return"] = [tools.but(**WRONG[what])]
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            state = await settle(parts, workflow_id)
            ((verified, mismatch, execution),) = await rows(
                parts,
                "SELECT e.verified_at, e.mismatch, c.execution_state FROM effect e "
                "JOIN call c USING (workflow_id, step)",
            )
            alerts = await rows(parts, "SELECT result FROM audit WHERE action = 'alert'")
            again = await drive(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("COMPENSATION_REQUIRED", "wrong_effect")
        assert (verified, execution) == (None, "failed")
        assert set(mismatch) == {next(iter(WRONG[what])) if what != "number" else "return_id"}
        assert alerts == [("wrong_effect",)]
        assert tools.notices == {}
        assert again.task.state == "COMPENSATION_REQUIRED"
        message = RETURNS.message(state.task.state, state.task.reason, Language.EN, state.evidence.verified_ids(), ())
        assert "R-1" not in message

    run()


@asynchronous
async def test_an_answer_that_says_another_amount_than_what_was_read_is_wrong_too():
    tools = FakeTools()
    tools.script["create_return"] = [tools.but(refund=yen(1))]
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert state.task.state == "COMPENSATION_REQUIRED"


@asynchronous
async def test_an_adopted_effect_is_held_against_the_request_as_well():
    tools = FakeTools()

    def elsewhere(request: Any) -> Any:
        tools.returns[request.idempotency_key] = {**tools.new_return(request.arguments), "order_id": "A-2"}
        return unknown()(request)

    tools.script["create_return"] = [elsewhere]
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert (state.task.state, state.task.reason) == ("COMPENSATION_REQUIRED", "wrong_effect")


@pytest.mark.parametrize(("tool", "read"), [("create_return", "get_return"), ("send_return_notice", "find_notice")])
def test_an_effect_that_is_not_visible_yet_is_read_again_and_then_verified(tool, read):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        unseen = looked_up(found=False, record=None, closed_through=0)
        hidden = unseen if read == "find_notice" else rejected("not_found")
        tools.script[read] = [hidden, hidden]
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            waiting = await drive(parts, workflow_id)
            ((reason,),) = await rows(parts, "SELECT wake_reason FROM workflow")
            state = await settle(parts, workflow_id)
        assert (waiting.control.control, reason) == (Control.OBSERVING, "verification")
        assert state.task.state == "COMPLETED"
        assert (tools.sent(tool), tools.sent(read)) == (1, 3)

    run()


@pytest.mark.parametrize("read", ["get_return", "find_notice"])
def test_an_effect_that_cannot_be_read_back_is_left_unverified_to_a_person(read):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={read: [rejected("no_answer")] * 9})
        async with engine(tools) as parts:
            state = await settle(parts, await take(parts))
            unverified = await rows(
                parts, "SELECT outcome, external_id IS NOT NULL FROM effect WHERE verified_at IS NULL"
            )
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unverified_effect")
        assert unverified == [("succeeded", True)]
        assert tools.sent(read) == 3

    run()


@pytest.mark.parametrize("status", ["cancelled", "rejected"])
def test_a_return_that_was_withdrawn_since_it_was_answered_is_not_verified(status):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        tools.script["get_return"] = [tools.but(status=status)]
        async with engine(tools) as parts:
            state = await settle(parts, await take(parts))
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unverified_effect")
        assert tools.notices == {}

    run()
