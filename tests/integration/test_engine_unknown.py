"""An answer that was lost: looked up before anything else, adopted, sent again once, or left to a person."""

from __future__ import annotations

from typing import Any

import pytest

from host.domain.control import Control
from host.domain.outcome import Success
from host.engine.drive import drive
from tests.support.engine import advance_clock, asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown
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
def test_invariant_10_where_the_look_up_cannot_tell_it_stays_unknown_and_is_never_sent_again(tool, cannot):
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


@pytest.mark.parametrize(("days", "resent"), [(364, True), (365, False)])
def test_a_key_that_its_provider_may_have_forgotten_is_looked_up_and_never_sent_again(days, resent):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={"create_return": [unknown()], "find_return": [rejected("unavailable")]})
        async with engine(tools) as parts:
            workflow_id = await take(parts)
            await drive(parts, workflow_id)
            advance_clock(parts, days * 86_400)
            state = await settle(parts, workflow_id)
            ((outcome, execution),) = await rows(
                parts, "SELECT e.outcome, c.execution_state FROM effect e JOIN call c USING (workflow_id, step) LIMIT 1"
            )
        assert tools.sent("find_return") == 2
        assert tools.sent("create_return") == (2 if resent else 1)
        if resent:
            assert state.task.state == "COMPLETED"
        else:
            assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "unknown_effect")
            assert (outcome, execution) == (None, "unknown")

    run()
