"""An answer that was lost: looked up before anything else, adopted, sent again once, or left to a person."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from host.domain.control import Control, Execution
from host.domain.outcome import Success
from host.domain.workflow import Language
from host.engine.drive import drive
from host.workflows.returns import RETURNS
from shared_contracts.contract import Ambiguous
from tests.support.engine import advance_clock, asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown, yen
from tests.support.scripted_planner import ScriptedPlanner

WRITES = {"create_return": "find_return", "send_return_notice": "find_notice"}
LOST = ["timeout", "connection_lost", "internal_error", "token_used", "in_progress", "bad_output", "bad_answer"]
PURPOSES = (
    "SELECT c.tool, a.purpose, a.tool, a.outcome FROM attempt a JOIN call c USING (workflow_id, step) ORDER BY step, n"
)


def looked_up(**result: Any) -> Any:
    """An answer to a look-up."""
    return lambda _request: Success({"evidence_ref": "key://k", **result})


def effects_of(tools: FakeTools) -> list[str]:
    return [name for name, _ in tools.executed]


@pytest.mark.parametrize("tool", WRITES)
@pytest.mark.parametrize("code", LOST)
def test_a_write_that_was_done_and_whose_answer_was_lost_is_found_by_its_key_and_adopted(tool, code):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        tools.script[tool] = [tools.then(unknown(code))]
        async with engine(tools) as parts:
            state = await drive(parts, await take(parts))
            attempts = [row for row in await rows(parts, PURPOSES) if row[0] == tool]
            ((evidence,),) = await rows(parts, "SELECT evidence[1] FROM checkpoint WHERE reason = 'adopted'")
        assert state.task.state == "COMPLETED"
        assert effects_of(tools) == list(WRITES)
        assert tools.sent(tool) == 1
        assert [(purpose, read, outcome) for _, purpose, read, outcome in attempts] == [
            ("call", tool, code),
            ("reconciliation", WRITES[tool], "success"),
        ]
        assert evidence is not None

    run()


@pytest.mark.parametrize("tool", WRITES)
def test_unknown_is_recorded_before_anything_is_looked_up(tool):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        seen: list[tuple[str, str, str | None]] = []
        async with engine(tools) as parts:

            async def looking(request: Any) -> Any:
                seen.extend(
                    await rows(
                        parts,
                        "SELECT c.execution_state, w.control_state, e.outcome FROM call c "
                        "JOIN workflow w USING (workflow_id) JOIN effect e USING (workflow_id, step) "
                        "ORDER BY c.step DESC LIMIT 1",
                    )
                )
                return tools.honest(request)

            tools.script = {tool: [tools.then(unknown())], WRITES[tool]: [looking]}
            await drive(parts, await take(parts))
        assert seen == [("unknown", "tool_running", None)]

    run()


@pytest.mark.parametrize("tool", WRITES)
def test_a_write_that_is_proved_absent_is_sent_again_once_under_the_same_key_and_the_next_number(tool):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={tool: [unknown()]})
        async with engine(tools) as parts:
            state = await drive(parts, await take(parts))
            effects = await rows(
                parts,
                "SELECT attempt, outcome, idempotency_key FROM effect WHERE name = %(tool)s ORDER BY attempt",
                tool=tool,
            )
        sends = [r for r in tools.requests if r.tool.name == tool]
        assert state.task.state == "COMPLETED"
        assert [request.attempt for request in sends] == [1, 2]
        assert len({request.idempotency_key for request in sends}) == 1
        assert len({request.jti for request in sends}) == 2
        assert [(n, outcome) for n, outcome, _ in effects] == [(1, "absent"), (2, "succeeded")]
        assert effects_of(tools) == list(WRITES)
        assert state.calls_made() == 5

    run()


@pytest.mark.parametrize("tool", WRITES)
def test_twice_lost_and_twice_absent_is_the_end_of_sending(tool):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={tool: [unknown(), unknown()]})
        async with engine(tools) as parts:
            state = await settle(parts, await take(parts))
            ((execution,),) = await rows(parts, "SELECT execution_state FROM call ORDER BY step DESC LIMIT 1")
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "attempts_exhausted")
        assert (tools.sent(tool), execution) == (2, "failed")
        assert tool not in effects_of(tools)

    run()


@pytest.mark.parametrize("tool", WRITES)
@pytest.mark.parametrize("cannot", ["refused", "silent", "not closed", "found without a record", "a record not found"])
def test_where_the_look_up_cannot_tell_it_stays_unknown_and_is_never_sent_again(tool, cannot):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        answers: dict[str, Any] = {
            "refused": rejected("scope_missing"),
            "silent": rejected("no_answer"),
            "not closed": looked_up(found=False, record=None, closed_through=0),
            "found without a record": looked_up(found=True, record=None, closed_through=1),
            "a record not found": looked_up(found=False, record={}, closed_through=1),
        }
        tools.script = {tool: [tools.then(unknown())], WRITES[tool]: [answers[cannot]] * 9}
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            state = await settle(parts, workflow_id)
            call = await rows(parts, "SELECT execution_state FROM call ORDER BY step DESC LIMIT 1")
            effect = await rows(parts, "SELECT outcome FROM effect WHERE name = %(tool)s", tool=tool)
            advance_clock(parts, 7 * 86_400)
            later = await drive(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unknown_effect")
        assert state.control.control is Control.NEEDS_HUMAN
        assert (call, effect) == ([("unknown",)], [(None,)])
        assert tools.sent(WRITES[tool]) == 3
        assert later.trace == state.trace
        assert tools.sent(tool) == 1

    run()


@asynchronous
async def test_a_look_up_that_never_leaves_is_bounded_by_the_recoveries_and_not_by_the_reads():
    tools = FakeTools()
    tools.script = {"create_return": [tools.then(unknown())], "find_return": [rejected("unreachable")] * 5}
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert state.task.state == "COMPLETED"
    assert tools.sent("find_return") == 6
    assert state.control.recoveries == 5


@asynchronous
async def test_a_look_up_that_never_leaves_at_all_ends_with_a_person():
    tools = FakeTools()
    tools.script = {"create_return": [tools.then(unknown())], "find_return": [rejected("unreachable")] * 99}
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unknown_effect")
    assert state.control.recoveries == 21
    assert tools.sent("create_return") == 1


@asynchronous
async def test_a_late_first_attempt_is_refused_once_its_key_was_closed():
    """The request is held on the wire, the look-up runs and closes the key, then the request arrives."""
    tools, held = FakeTools(), []

    def hold(request: Any) -> Any:
        held.append(request)
        return unknown()(request)

    tools.script = {"create_return": [hold]}
    async with engine(tools) as parts:
        state = await drive(parts, await take(parts))
    late = tools.honest(held[0])
    assert state.task.state == "COMPLETED"
    assert tools.closed == {held[0].idempotency_key: 1}
    assert isinstance(late, Success)  # the key's first result, made by attempt 2
    assert effects_of(tools) == list(WRITES)


@asynchronous
async def test_an_attempt_that_was_voided_while_it_was_on_its_way_is_a_refusal():
    tools = FakeTools(script={"create_return": [rejected("attempt_superseded")]})
    async with engine(tools) as parts:
        state = await drive(parts, await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "attempt_superseded")
    assert tools.executed == []


@pytest.mark.parametrize("code", ["rate_limited", "unavailable", "unreachable"])
@pytest.mark.parametrize("tool", WRITES)
def test_an_answer_that_proves_nothing_happened_waits_in_retry_and_is_sent_again(tool, code):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={tool: [rejected(code)]})
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            waiting = await drive(parts, workflow_id)
            ((resume, due),) = await rows(
                parts, "SELECT resume_state, extract(epoch FROM wake_at - updated_at)::float8 FROM workflow"
            )
            asked = len(tools.requests)
            advance_clock(parts, 0.5)
            early = await drive(parts, workflow_id)
            sent_early = len(tools.requests)
            advance_clock(parts, 1.1)
            state = await drive(parts, workflow_id)
        assert waiting.task.state == "RETRY_WAIT"
        assert waiting.control.control is Control.TOOL_PROPOSED
        assert resume == ("ELIGIBLE" if tool == "create_return" else "RETURN_CREATED")
        assert 1.0 <= due < 1.5
        assert early.trace == waiting.trace
        assert sent_early == asked
        assert state.task.state == "COMPLETED"
        assert [r.attempt for r in tools.requests if r.tool.name == tool] == [1, 2]
        assert effects_of(tools) == list(WRITES)

    run()


@pytest.mark.parametrize("tool", WRITES)
def test_a_second_busy_answer_is_the_end_of_sending(tool):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={tool: [rejected("rate_limited")] * 2})
        async with engine(tools) as parts:
            state = await settle(parts, await take(parts))
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "attempts_exhausted")
        assert tools.sent(tool) == 2

    run()


@pytest.mark.parametrize("tool", ["get_order", "check_return_policy"])
@pytest.mark.parametrize("code", ["no_answer", "rate_limited", "unavailable"])
def test_a_read_is_tried_twice_and_then_it_is_a_persons(tool, code):
    @asynchronous
    async def run() -> None:
        for times, expected in ((1, "COMPLETED"), (2, "NEEDS_REVIEW")):
            tools = FakeTools(script={tool: [rejected(code)] * times})
            async with engine(tools) as parts:
                state = await settle(parts, await take(parts))
            assert state.task.state == expected
            assert tools.sent(tool) == 2
            assert [c.tool for c in state.evidence.calls].count(tool) == 1
        assert state.task.reason == "attempts_exhausted"

    run()


@asynchronous
async def test_the_server_may_ask_for_a_longer_wait_than_ours_and_gets_it():
    tools = FakeTools(script={"get_order": [rejected("rate_limited", retry_after=120.0)]})
    async with engine(tools) as parts:
        await drive(parts, await take(parts))
        ((due,),) = await rows(parts, "SELECT extract(epoch FROM wake_at - updated_at)::float8 FROM workflow")
    assert due == 120.0


@asynchronous
async def test_a_server_that_is_away_is_waited_for_with_a_growing_pause_and_no_call_is_counted():
    tools = FakeTools(script={"create_return": [rejected("unreachable")] * 6})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        pauses = []
        for _ in range(6):
            await drive(parts, workflow_id)
            ((due,),) = await rows(parts, "SELECT extract(epoch FROM wake_at - updated_at)::float8 FROM workflow")
            pauses.append(int(due))
            advance_clock(parts, due + 0.01)
        state = await drive(parts, workflow_id)
    assert pauses == [1, 2, 4, 8, 16, 30]
    assert state.task.state == "COMPLETED"
    assert (state.calls_made(), state.control.recoveries) == (4, 6)
    assert effects_of(tools) == list(WRITES)


@asynchronous
async def test_a_server_that_stays_away_is_a_persons_after_the_bound_of_recoveries():
    tools = FakeTools(script={"create_return": [rejected("unreachable")] * 99})
    async with engine(tools) as parts:
        state = await settle(parts, await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "recoveries_exhausted")
    assert tools.sent("create_return") == 21
    assert tools.executed == []


@asynchronous
async def test_a_contract_that_says_stop_is_not_sent_again_after_a_lost_answer():
    tools = FakeTools(script={"create_return": [unknown()]})
    async with engine(tools) as parts:
        strict = replace(parts.registry["create_return"], ambiguous_failure=Ambiguous.RECONCILE_THEN_STOP)
        state = await settle(replace(parts, registry={**parts.registry, "create_return": strict}), await take(parts))
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "attempts_exhausted")
    assert tools.sent("create_return") == 1


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


@asynchronous
async def test_a_line_over_which_another_case_is_in_doubt_is_a_persons_and_nothing_is_sent():
    tools = FakeTools()
    tools.script = {"create_return": [tools.then(unknown())], "find_return": [rejected("no_answer")] * 9}
    async with engine(tools) as parts:
        first = await settle(parts, await take(parts, request_id="first"))
        sent = len(tools.requests)
        second = await settle(parts, await take(parts, request_id="second"))
        other_line = await settle(parts, await take(parts, request_id="third", lines=[{"line_id": "2", "quantity": 1}]))
        effects = await rows(parts, "SELECT count(*) FROM effect WHERE outcome IS NULL")
    assert first.task.reason == "unknown_effect"
    assert (second.task.state, second.task.reason) == ("NEEDS_REVIEW", "unsettled_elsewhere")
    assert [r.tool.name for r in tools.requests[sent : sent + 2]] == ["get_order", "check_return_policy"]
    assert tools.requests[sent + 2].tool.name == "get_order"
    assert other_line.task.state == "COMPLETED"
    assert effects == [(1,)]


@asynchronous
async def test_after_a_crash_of_another_driver_the_planner_is_not_asked_about_what_was_already_done():
    """An effect without outcome is settled before the planner gets a word."""
    tools, planner = FakeTools(), ScriptedPlanner()
    async with engine(tools, planner) as parts:
        workflow_id = await take(parts)

        class GoneError(Exception):
            pass

        def die(request: Any) -> Any:
            tools.honest(request)
            raise GoneError

        tools.script["create_return"] = [die]
        with pytest.raises(GoneError):
            await drive(parts, workflow_id)
        asked = len(planner.views)
        advance_clock(parts, 16)
        asked_before_the_look_up: list[int] = []

        def looking(request: Any) -> Any:
            asked_before_the_look_up.append(len(planner.views) - asked)
            return tools.honest(request)

        tools.script["find_return"] = [looking]
        state = await drive(parts, workflow_id)
    assert asked_before_the_look_up == [0]
    assert state.task.state == "COMPLETED"
    assert effects_of(tools) == list(WRITES)
