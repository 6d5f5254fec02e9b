"""A normal return: which commits there are, what each holds, and in which order the engine goes to work."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool

from host.domain.control import Control
from host.domain.proposals import PlannerView
from host.engine.drive import drive, load
from host.engine.parts import Parts, Request
from tests.support.engine import asynchronous, engine, owners, rows, take
from tests.support.engine import parts as parts_over
from tests.support.fake_tools import FakeTools, rejected
from tests.support.scripted_planner import ScriptedPlanner, honest

HISTORY = """
SELECT m.control_from, m.control_to, m.business_to, m.event, m.actor, c.reason, c.evidence
  FROM checkpoint c JOIN legal_transition m USING (move_id) WHERE c.workflow_id = %(id)s ORDER BY c.seq
"""
NORMAL = [
    ("", "created", "RECEIVED"),
    ("created", "planning", "RECEIVED"),
    *(("planning", "tool_proposed", "RECEIVED"), ("tool_proposed", "tool_authorized", "RECEIVED")),
    ("tool_authorized", "tool_running", "RECEIVED"),
    ("tool_running", "observing", "RECEIVED"),
    ("observing", "planning", "ORDER_VERIFIED"),
    *(("planning", "tool_proposed", "ORDER_VERIFIED"), ("tool_proposed", "tool_authorized", "ORDER_VERIFIED")),
    ("tool_authorized", "tool_running", "ORDER_VERIFIED"),
    ("tool_running", "observing", "ORDER_VERIFIED"),
    ("observing", "planning", "ELIGIBLE"),
    *(("planning", "tool_proposed", "ELIGIBLE"), ("tool_proposed", "tool_authorized", "ELIGIBLE")),
    ("tool_authorized", "tool_running", "ELIGIBLE"),
    ("tool_running", "observing", "ELIGIBLE"),
    ("observing", "planning", "RETURN_CREATED"),
    *(("planning", "tool_proposed", "RETURN_CREATED"), ("tool_proposed", "tool_authorized", "RETURN_CREATED")),
    ("tool_authorized", "tool_running", "RETURN_CREATED"),
    ("tool_running", "observing", "RETURN_CREATED"),
    ("observing", "planning", "RETURN_CREATED"),
    ("planning", "completed", "COMPLETED"),
]


@dataclass
class Trace:
    """Everything that leaves the engine, in order: statements, planner's turns, requests."""

    said: list[str] = field(default_factory=list)

    def cursor(self) -> type[psycopg.AsyncCursor[Any]]:
        said = self.said

        class Tracing(psycopg.AsyncCursor[Any]):
            async def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
                text = str(query)
                name = next((n for n in ("commit_steps", "renew_lease", "accept_case") if f"{n}(" in text), "load")
                said.append(name)
                return await super().execute(query, *args, **kwargs)

        return Tracing

    def proposing(self, view: PlannerView) -> Any:
        self.said.append("planner")
        return honest(view)


class TracedTools(FakeTools):
    said: list[str]

    async def call(self, request: Request) -> Any:
        self.said.append(request.tool.name)
        return await super().call(request)

    def available(self) -> frozenset[str]:
        self.said.append("tools for the state")
        return super().available()


async def transactions(parts: Parts) -> int:
    """The server's own count of transactions that wrote something."""
    (row,) = await rows(parts, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
    return int(row[0])


@asynchronous
async def test_a_normal_return_is_the_four_calls_in_their_order_and_twenty_three_checkpoints():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        state = await drive(parts, workflow_id)
        history = await rows(parts, HISTORY, id=workflow_id)

    assert state.task.state == "COMPLETED"
    assert [row[:3] for row in history] == NORMAL
    calls = [r.tool.name for r in tools.requests if r.tool.name not in {"get_return", "find_notice"}]
    assert calls == ["get_order", "check_return_policy", "create_return", "send_return_notice"]
    assert (len(tools.returns), len(tools.notices), len(tools.executed)) == (1, 1, 2)


@asynchronous
async def test_a_normal_return_is_seven_commits_of_one_statement_each_beside_the_accepting_one():
    trace = Trace()
    async with engine(FakeTools()) as plain:
        workflow_id = await take(plain)
        kwargs = {"autocommit": True, "cursor_factory": trace.cursor()}
        async with AsyncConnectionPool(plain.pool.conninfo, min_size=1, max_size=2, open=False, kwargs=kwargs) as pool:
            traced = await parts_over(pool, FakeTools())
            trace.said.clear()
            before = await transactions(plain)
            await drive(traced, workflow_id)
            written = await transactions(plain) - before
        ((checkpoints, version),) = await rows(plain, "SELECT seq, version FROM workflow")

    assert trace.said == ["load", *["commit_steps"] * 7]
    assert written == 7
    assert (checkpoints, version) == (23, 8)


@asynchronous
async def test_every_commit_lies_between_what_came_back_and_what_is_tried_next():
    """Load, tools for the state, planner, commit, request; an answer and the next request share a commit."""
    trace, tools = Trace(), TracedTools()
    tools.said = trace.said
    planner = ScriptedPlanner(always=trace.proposing)
    async with engine(tools) as plain:
        workflow_id = await take(plain)
        kwargs = {"autocommit": True, "cursor_factory": trace.cursor()}
        async with AsyncConnectionPool(plain.pool.conninfo, min_size=1, max_size=2, open=False, kwargs=kwargs) as pool:
            traced = await parts_over(pool, tools, planner)
            trace.said.clear()
            await drive(traced, workflow_id)

    proposing = ["tools for the state", "planner", "tools for the state", "commit_steps"]
    assert trace.said == [
        "load",
        *proposing, "get_order",
        *proposing, "check_return_policy",
        *proposing, "create_return",
        "commit_steps", "get_return",
        *proposing, "send_return_notice",
        "commit_steps", "find_notice",
        "commit_steps",
    ]  # fmt: skip


@asynchronous
async def test_a_planner_that_is_not_deterministic_is_asked_between_two_commits_and_with_the_lease_held():
    trace = Trace()
    planner = ScriptedPlanner(always=trace.proposing, deterministic=False)
    async with engine(FakeTools()) as plain:
        workflow_id = await take(plain)
        kwargs = {"autocommit": True, "cursor_factory": trace.cursor()}
        async with AsyncConnectionPool(plain.pool.conninfo, min_size=1, max_size=2, open=False, kwargs=kwargs) as pool:
            traced = await parts_over(pool, FakeTools(), planner)
            trace.said.clear()
            state = await drive(traced, workflow_id)

    assert state.task.state == "COMPLETED"
    assert trace.said[:4] == ["load", "commit_steps", "planner", "commit_steps"]
    assert trace.said.count("commit_steps") == 11
    assert all(trace.said[n - 1] == "commit_steps" for n, what in enumerate(trace.said) if what == "planner")


@asynchronous
async def test_each_call_has_the_five_events_at_times_of_their_own_and_in_order():
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        times = await rows(
            parts,
            "SELECT tool, proposed_at, authorized_at, started_at, returned_at, delivered_at, verified_at FROM call "
            "ORDER BY step",
        )

    assert len(times) == 4
    for tool, proposed, authorized, started, returned, delivered, verified in times:
        assert proposed <= authorized <= started <= returned <= delivered, tool
        assert (returned < verified) == (tool in {"create_return", "send_return_notice"})


@asynchronous
async def test_invariant_11_every_request_is_an_attempt_with_a_token_of_its_own_and_carries_what_no_planner_fills():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        attempts = await rows(parts, "SELECT jti FROM attempt ORDER BY step, n")

    assert [request.jti for request in tools.requests] == [jti for (jti,) in attempts]
    assert len({request.jti for request in tools.requests}) == len(tools.requests)
    for request in tools.requests:
        assert (request.tenant_id, request.subject) == ("acme-jp", "returns-desk@acme-jp")
        assert (request.customer, request.resource, request.workflow_id) == ("C-1", "A-1", workflow_id)
        notice = "send_return_notice"
        name = {"create_return": "create_return", notice: notice, "find_notice": notice}.get(request.tool.name)
        assert request.idempotency_key == (None if name is None else f"{workflow_id}:{name}")


@asynchronous
async def test_an_engines_own_read_is_an_attempt_of_the_call_that_it_verifies_and_no_step():
    async with engine(FakeTools()) as parts:
        await drive(parts, await take(parts))
        found = await rows(
            parts,
            "SELECT c.tool, a.tool, a.purpose FROM attempt a JOIN call c USING (workflow_id, step) ORDER BY step, n",
        )

    assert found == [
        ("get_order", "get_order", "call"),
        ("check_return_policy", "check_return_policy", "call"),
        ("create_return", "create_return", "call"),
        ("create_return", "get_return", "verification"),
        ("send_return_notice", "send_return_notice", "call"),
        ("send_return_notice", "find_notice", "verification"),
    ]


@asynchronous
async def test_the_whole_tree_of_a_run_is_found_from_any_of_its_ids():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        ((request_id, call_id, step_id, return_id, message_id),) = await rows(
            parts,
            "SELECT w.request_id, c.call_id, c.step_id, r.external_id, n.external_id FROM workflow w "
            "JOIN call c USING (workflow_id) JOIN effect r ON r.workflow_id = c.workflow_id AND r.step = c.step "
            "JOIN effect n ON n.workflow_id = w.workflow_id AND n.name = 'send_return_notice' "
            "WHERE r.name = 'create_return'",
        )
        ids = {
            "c.call_id": call_id, "c.step_id": step_id, "w.request_id": request_id,
            "e.external_id": return_id, "n.external_id": message_id,
        }  # fmt: skip
        query = (
            "SELECT DISTINCT w.workflow_id FROM workflow w JOIN call c USING (workflow_id) "
            "JOIN effect e USING (workflow_id) JOIN effect n USING (workflow_id) WHERE "
        )
        with owners(parts) as connection:
            for name, value in ids.items():
                assert connection.execute(f"{query} {name} = %s", (value,)).fetchall() == [(workflow_id,)]

    assert (return_id, message_id) == ("R-1", "<n1@shop.example>")


@asynchronous
async def test_the_last_commit_carries_the_audit_row_and_the_outbox_row_of_the_end():
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        ended = await rows(parts, "SELECT action, result, details FROM audit")
        outbox = await rows(
            parts,
            "SELECT o.workflow_id, o.seq, o.topic, o.payload, o.at = w.updated_at FROM outbox o "
            "JOIN workflow w USING (workflow_id)",
        )

    assert [(action, result) for action, result, _ in ended] == [("workflow_ended", "COMPLETED")]
    ((owner, seq, topic, payload, with_the_end),) = outbox
    assert (owner, seq, topic, with_the_end) == (workflow_id, 23, "returns.completed", True)
    assert payload["effects"] == {"create_return": "R-1", "send_return_notice": "<n1@shop.example>"}


@asynchronous
async def test_no_case_is_a_chat_and_what_a_planner_said_is_nowhere_but_in_its_proposals():
    """With every planner output gone, a workflow goes on to the same next step."""
    for stop_after in range(1, 5):
        planner = ScriptedPlanner()
        async with engine(FakeTools(), planner) as parts:
            workflow_id = await take(parts)
            tools = FakeTools(script={NEXT[stop_after]: [rejected("rate_limited")]})
            await drive(replace(parts, tools=tools), workflow_id)
            waiting = await load(parts, workflow_id)
            assert waiting.task.state == "RETRY_WAIT"

            silent = ScriptedPlanner(always=_must_not_speak) if stop_after == 4 else ScriptedPlanner()
            again = replace(parts, planner=silent, tools=FakeTools(returns=tools.returns))
            with owners(parts) as connection:
                connection.execute("UPDATE workflow SET wake_at = clock_now()")
            state = await drive(again, workflow_id)
            assert state.task.state == "COMPLETED"
            assert [view.state for view in silent.views] == AFTER[stop_after]


NEXT = {1: "get_order", 2: "check_return_policy", 3: "create_return", 4: "send_return_notice"}
AFTER = {
    1: ["ORDER_VERIFIED", "ELIGIBLE", "RETURN_CREATED"],
    2: ["ELIGIBLE", "RETURN_CREATED"],
    3: ["RETURN_CREATED"],
    4: [],
}


def _must_not_speak(view: PlannerView) -> Any:
    raise AssertionError(view)


@pytest.mark.parametrize("reason", ["changed_mind", "defective", "wrong_item", "damaged", "other"])
def test_a_return_for_any_reason_that_the_rules_allow_completes(reason):
    @asynchronous
    async def run() -> None:
        async with engine(FakeTools()) as parts:
            assert (await drive(parts, await take(parts, reason=reason))).task.state == "COMPLETED"

    run()


@asynchronous
async def test_a_workflow_that_has_ended_is_driven_no_further_and_nothing_is_written():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        done = await drive(parts, workflow_id)
        sent = len(tools.requests)
        again = await drive(parts, workflow_id)

    assert again.trace == done.trace
    assert again.control.control is Control.COMPLETED
    assert len(tools.requests) == sent
