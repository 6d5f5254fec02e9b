"""A person's yes lets exactly what was asked run, once, for a day; whatever else is handed in changes nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from host.engine.approve import ApprovalRefusedError, take_decision
from host.engine.drive import drive, load
from host.engine.parts import Parts
from host.engine.sweep import end_late
from host.store import ledger
from shared_contracts.approval import sign
from tests.support.approvals import APPROVERS, KEYS, KIDS, decide, decision, desk, trust
from tests.support.engine import advance_clock, asynchronous, engine, owners, rows, take
from tests.support.fake_tools import FakeTools, rejected
from tests.support.raw_sql import refused
from tests.support.scripted_planner import ScriptedPlanner

HIGH = 80_000
COUNTS = """
SELECT (SELECT count(*) FROM checkpoint), (SELECT count(*) FROM approval), (SELECT count(*) FROM audit),
       (SELECT version FROM workflow), (SELECT state FROM workflow)
"""


def high_value(tools: FakeTools | None = None, **more: Any) -> Any:
    return engine(FakeTools(refund=HIGH) if tools is None else tools, approvers=APPROVERS, **more)


async def waiting(parts: Parts) -> Any:
    workflow_id = await take(parts)
    state = await drive(parts, workflow_id)
    assert state.task.state == "WAITING_APPROVAL"
    trust(parts, *KEYS)
    return workflow_id


@asynchronous
async def test_what_was_approved_runs_as_it_was_stored_and_the_planner_is_not_asked_for_it():
    tools, planner = FakeTools(refund=HIGH), ScriptedPlanner()
    async with high_value(tools, planner=planner) as parts:
        workflow_id = await waiting(parts)
        asked = len(planner.views)
        event = await decide(parts, workflow_id)
        other = replace(parts, owner="another process, another day")
        advance_clock(parts, 12 * 3600)
        state = await drive(other, workflow_id)
        stored = await rows(parts, "SELECT approver, decision, approval_seconds FROM approval")
    assert state.task.state == "COMPLETED"
    assert len(planner.views) == asked + 1  # for the notice
    (created,) = (request for request in tools.requests if request.tool.name == "create_return")
    assert (created.approved_version, created.subject) == (event.version, "returns-desk@acme-jp")
    assert created.approval is not None
    assert stored == [("tanaka", "approve", 12.5)]
    assert all(r.approval is None for r in tools.requests if r.tool.name != "create_return")


@asynchronous
async def test_a_denial_ends_the_case_and_nothing_is_made():
    tools = FakeTools(refund=HIGH)
    async with high_value(tools) as parts:
        workflow_id = await waiting(parts)
        await decide(parts, workflow_id, decision="deny", reason="not this one")
        state = await drive(parts, workflow_id)
        due = await rows(parts, "SELECT wake_at, lease_owner FROM workflow")
    assert (state.task.state, state.task.reason) == ("REJECTED", "approval_denied")
    assert due == [(None, None)]  # what has ended is due for nothing
    assert tools.executed == []


async def unchanged(parts: Parts, act: Any) -> str:
    """Do what has to be refused; gives the refusal's words."""
    before = await rows(parts, COUNTS)
    with pytest.raises(ApprovalRefusedError) as caught:
        await act
    assert await rows(parts, COUNTS) == before
    return str(caught.value)


@pytest.mark.parametrize(
    ("differs", "said"),
    [
        ({"version": 3}, "earlier request"),
        ({"subject": "somebody@acme-jp"}, "another requester"),
        ({"tool": "cancel_return"}, "another tool"),
        ({"resource": "A-2"}, "another order"),
        ({"action_digest": "0" * 64}, "not what was decided on"),
        ({"tenant_id": "hoshi-jp"}, "another tenant"),
        ({"workflow_id": "01a22a26-ad61-7322-b841-fd9bf1196608"}, "another case"),
        ({"workflow_id": "w-1"}, "another case"),
    ],
)
def test_a_decision_about_anything_else_changes_nothing(differs, said):
    @asynchronous
    async def run() -> None:
        async with high_value() as parts:
            workflow_id = await waiting(parts)
            assert said in await unchanged(parts, decide(parts, workflow_id, **differs))

    run()


@pytest.mark.parametrize(
    ("by", "differs", "said"),
    [
        ("stranger", {}, "no approver of the tenant in the authorization set; who may now: tanaka"),
        ("returns-desk@acme-jp", {}, "asked for themselves"),
        ("suzuki", {}, "as old as the rules say; who may now: tanaka"),
        ("tanaka", {"approver": "suzuki"}, "another approver"),
    ],
)
def test_a_decision_by_somebody_who_may_not_changes_nothing(by, differs, said):
    @asynchronous
    async def run() -> None:
        async with high_value() as parts:
            workflow_id = await waiting(parts)
            assert said in await unchanged(parts, decide(parts, workflow_id, by, **differs))

    run()


@asynchronous
async def test_a_decision_beyond_the_approvers_limit_is_left_to_whom_it_belongs():
    async with high_value(FakeTools(refund=600_000)) as parts:
        workflow_id = await waiting(parts)
        assert "limit; who may now: suzuki" in await unchanged(parts, decide(parts, workflow_id, "tanaka"))
        await decide(parts, workflow_id, "suzuki")
        assert (await drive(parts, workflow_id)).task.state == "COMPLETED"


@asynchronous
async def test_a_substitute_decides_once_the_request_is_old_enough():
    async with high_value() as parts:
        workflow_id = await waiting(parts)
        advance_clock(parts, 3601)
        await decide(parts, workflow_id, "suzuki")
        assert (await drive(parts, workflow_id)).task.state == "COMPLETED"


@asynchronous
async def test_a_forged_or_revoked_signature_changes_nothing():
    async with high_value() as parts:
        workflow_id = await waiting(parts)
        event = decision(await load(parts, workflow_id))
        for text, said in (
            (sign(event, KEYS["suzuki"], KIDS["tanaka"]), "signature does not hold"),
            (sign(event, KEYS["tanaka"], "k-nobody"), "nobody's key"),
            ("approved", "no decision"),
        ):
            assert said in await unchanged(parts, take_decision(desk(parts), text, 1.0))
        with owners(parts) as sql:
            sql.execute("UPDATE approver_key SET revoked_at = clock_now()")
        assert "nobody's key" in await unchanged(parts, decide(parts, workflow_id))


@asynchronous
async def test_after_a_day_nothing_is_approved_any_more_and_nothing_ever_happens():
    tools = FakeTools(refund=HIGH)
    async with high_value(tools) as parts:
        workflow_id = await waiting(parts)
        event = decision(await load(parts, workflow_id))
        advance_clock(parts, 24 * 3600)
        assert "time is up" in await unchanged(parts, decide(parts, workflow_id))
        late = take_decision(desk(parts), sign(event, KEYS["tanaka"], KIDS["tanaka"]), 1.0)
        assert "time is up" in await unchanged(parts, late)
        state = await drive(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("EXPIRED", "expired")
        assert "EXPIRED" in await unchanged(parts, decide(parts, workflow_id))
    assert tools.executed == []


@asynchronous
async def test_an_approval_that_runs_out_before_its_call_is_sent_ends_the_case():
    tools = FakeTools(refund=HIGH)
    async with high_value(tools) as parts:
        workflow_id = await waiting(parts)
        await decide(parts, workflow_id)
        advance_clock(parts, 24 * 3600)
        state = await drive(parts, workflow_id)
    assert (state.task.state, state.task.reason) == ("EXPIRED", "approval_expired")
    assert tools.executed == []


@asynchronous
async def test_an_approval_whose_key_was_revoked_or_whose_approver_has_no_right_any_more_is_asked_for_again():
    for change in ("key", "right"):
        tools = FakeTools(refund=HIGH)
        async with high_value(tools) as parts:
            workflow_id = await waiting(parts)
            first = await decide(parts, workflow_id)
            if change == "key":
                with owners(parts) as sql:
                    sql.execute("UPDATE approver_key SET revoked_at = clock_now() WHERE name = 'tanaka'")
            rights = parts.authorization.model_copy(update={"approvers": APPROVERS[1:]})
            with capture_logs() as said:
                state = await drive(replace(parts, authorization=rights), workflow_id)
            told = [line["reason"] for line in said if line["event"] == "approval_void"]
            assert told == (["unknown_key"] if change == "key" else [])
            assert (state.task.state, state.task.reason) == ("WAITING_APPROVAL", "approval_void")
            assert state.evidence.asked is not None
            assert (await load(parts, workflow_id)).evidence.asked.version > first.version
            assert tools.executed == []


@asynchronous
async def test_what_the_shop_has_changed_since_is_asked_for_again_as_it_is_now():
    moved = {"action": {"amount": {"amount": 81_000, "currency": "JPY"}, "destination_ref": "address://acme/C-1@2"}}
    tools = FakeTools(refund=HIGH, script={"create_return": [rejected("approval_refused", details=moved)]})
    async with high_value(tools) as parts:
        workflow_id = await waiting(parts)
        first = await decide(parts, workflow_id)
        state = await drive(parts, workflow_id)
        assert (state.task.state, state.task.reason) == ("WAITING_APPROVAL", "approval_void")
        asked = (await load(parts, workflow_id)).evidence.asked
        assert (asked.action.amount.amount, asked.action.destination_ref) == (81_000, "address://acme/C-1@2")
        assert asked.action_digest != first.action_digest
        again = sign(first, KEYS["tanaka"], KIDS["tanaka"])
        assert "earlier request" in await unchanged(parts, take_decision(desk(parts), again, 1.0))
        tools.refund = 81_000
        await decide(parts, workflow_id)
        assert (await drive(parts, workflow_id)).task.state == "COMPLETED"


@asynchronous
async def test_of_two_decisions_at_once_one_counts_and_the_other_is_told_whose():
    for n, second in enumerate(("approve", "deny") * 10):
        async with high_value(FakeTools(refund=HIGH)) as parts:
            workflow_id = await take(parts, request_id=f"r-{n}")
            await drive(parts, workflow_id)
            trust(parts, *KEYS)
            advance_clock(parts, 3601)
            both = (decide(parts, workflow_id, "tanaka"), decide(parts, workflow_id, "suzuki", decision=second))
            done = await asyncio.gather(*both, return_exceptions=True)
            (loser,) = (one for one in done if isinstance(one, ApprovalRefusedError))
            (winner,) = (one for one in done if not isinstance(one, BaseException))
            assert f"{winner.approver} decided: {winner.decision}" in str(loser)
            assert await rows(parts, "SELECT approver FROM approval") == [(winner.approver,)]


@asynchronous
async def test_a_case_is_moved_to_approved_by_no_sql_without_a_recorded_decision_of_that_version():
    async with high_value() as parts:
        workflow_id = await waiting(parts)
        with owners(parts) as sql:
            (move,) = sql.execute(
                "SELECT move_id FROM legal_transition WHERE event = 'approved' AND business_to = 'APPROVED'"
            ).fetchone() or (0,)
            with refused(sql, "KS010"):
                sql.execute("UPDATE workflow SET version = version + 1, seq = seq + 1, state = 'APPROVED'")
                sql.execute(
                    "INSERT INTO checkpoint SELECT workflow_id, seq, %s, 'approved', '{}', clock_now() FROM workflow",
                    (move,),
                )
            await decide(parts, workflow_id, decision="deny")
            for change in ("UPDATE approval SET decision = 'approve'", "DELETE FROM approval", "TRUNCATE approval"):
                with refused(sql, "KS013"):
                    sql.execute(change)


@asynchronous
async def test_an_approval_of_one_case_is_worth_nothing_in_another():
    async with high_value() as parts:
        theirs = decision(await load(parts, await waiting(parts)))
        other = await take(parts, request_id="another", order_id="A-2")
        await drive(parts, other)
        moved = theirs.model_copy(update={"workflow_id": str(other)})
        with pytest.raises(ApprovalRefusedError, match="another order"):
            await take_decision(desk(parts), sign(moved, KEYS["tanaka"], KIDS["tanaka"]), 1.0)
        assert (await load(parts, other)).task.state == "WAITING_APPROVAL"


@asynchronous
async def test_a_substitute_who_says_that_the_request_is_older_than_it_is_has_no_turn():
    async with high_value() as parts:
        workflow_id = await waiting(parts)
        asked = (await load(parts, workflow_id)).evidence.asked
        earlier = asked.expires_at - timedelta(hours=26)
        said = await unchanged(parts, decide(parts, workflow_id, "suzuki", requested_at=earlier))
        assert "time is up" in said  # it would end later than it may
        shorter = {"requested_at": earlier, "expires_at": asked.expires_at - timedelta(hours=2)}
        assert "earlier request" in await unchanged(parts, decide(parts, workflow_id, "suzuki", **shorter))


@asynchronous
async def test_a_decision_from_the_future_or_with_a_longer_life_changes_nothing():
    async with high_value() as parts:
        workflow_id = await waiting(parts)
        asked = (await load(parts, workflow_id)).evidence.asked
        ahead = {"decided_at": asked.read_at + timedelta(minutes=5)}
        longer = {"expires_at": asked.expires_at + timedelta(hours=1)}
        assert "clock" in await unchanged(parts, decide(parts, workflow_id, **ahead))
        assert "time is up" in await unchanged(parts, decide(parts, workflow_id, **longer))


@asynchronous
async def test_a_notice_that_is_sent_again_after_the_approvals_time_needs_none():
    tools = FakeTools(refund=HIGH, script={"send_return_notice": [rejected("rate_limited")]})
    async with high_value(tools) as parts:
        workflow_id = await waiting(parts)
        await decide(parts, workflow_id)
        assert (await drive(parts, workflow_id)).task.state == "RETRY_WAIT"
        advance_clock(parts, 24 * 3600)
        assert (await drive(parts, workflow_id)).task.state == "COMPLETED"
    assert [name for name, _ in tools.executed] == ["create_return", "send_return_notice"]


@pytest.mark.parametrize(
    "lie", [{"arguments": {"order_id": "A-2"}}, {"resource": "A-2"}, {"tool": "cancel_return"}, {}, "no object"]
)
def test_a_tool_server_that_says_more_than_what_may_have_moved_is_not_believed(lie):
    @asynchronous
    async def run() -> None:
        tools = FakeTools(
            refund=HIGH, script={"create_return": [rejected("approval_refused", details={"action": lie})]}
        )
        async with high_value(tools) as parts:
            workflow_id = await waiting(parts)
            await decide(parts, workflow_id)
            state = await drive(parts, workflow_id)
            asked = (await load(parts, workflow_id)).evidence.asked
        if lie == {}:  # nothing has moved, says the server, and refuses all the same: a person looks at it again
            assert state.task.state == "WAITING_APPROVAL"
        else:
            assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "approval_refused")
        assert asked.action.resource == "A-1"

    run()


@asynchronous
async def test_a_waiting_case_that_is_looked_at_early_goes_on_waiting_and_is_never_ended_before_its_time():
    async with high_value() as parts:
        workflow_id = await waiting(parts)
        await rows(parts, "SELECT count_broken_drive(%(id)s, 20)", id=workflow_id)
        with owners(parts) as sql:
            sql.execute("UPDATE workflow SET wake_at = clock_now() - interval '1 s'")  # a timer gone wrong
        state = await drive(parts, workflow_id)
        assert state.task.state == "WAITING_APPROVAL"
        assert await end_late(parts) == 0
        with owners(parts) as sql:
            sql.execute("UPDATE workflow SET wake_at = clock_now() - interval '1 s'")
        assert await end_late(parts) == 1
        assert (await load(parts, workflow_id)).task.state == "WAITING_APPROVAL"


@asynchronous
async def test_a_case_that_moves_while_the_sweeper_reads_is_left_alone_and_stops_no_worker():
    async with high_value() as parts:
        ids = [await waiting(parts), await take(parts, request_id="other", order_id="A-2")]
        await drive(parts, ids[1])
        advance_clock(parts, 24 * 3600)
        reading = ledger.load_all

        async def late(connection: Any, workflow_ids: Any) -> Any:
            ledger.load_all = reading
            await drive(replace(parts, owner="another"), ids[0])
            return await reading(connection, workflow_ids)

        ledger.load_all = late
        try:
            assert await end_late(parts) == 2
        finally:
            ledger.load_all = reading
        ended = await rows(parts, "SELECT state, count(*) FROM workflow GROUP BY state")
        assert ended == [("EXPIRED", 2)]


@asynchronous
async def test_a_key_that_was_revoked_lets_nothing_more_be_sent_that_it_signed():
    """Between the driver's read and its commit: the commit itself looks."""
    async with high_value() as parts:
        workflow_id = await waiting(parts)
        await decide(parts, workflow_id)
        reading = ledger.load

        async def then_revoked(connection: Any, one: Any) -> Any:
            row = await reading(connection, one)
            with owners(parts) as sql:
                sql.execute("UPDATE approver_key SET revoked_at = clock_now() WHERE revoked_at IS NULL")
            return row

        ledger.load = then_revoked
        try:
            state = await drive(parts, workflow_id)
        finally:
            ledger.load = reading
    assert state.task.state == "EXPIRED"
    assert parts.tools.executed == []
