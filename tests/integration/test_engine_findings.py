"""Whatever is too much the first time stops new cases and updates in the transaction that finds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from host.domain.outcome import Success
from host.domain.severe import Severe
from host.engine.drive import drive
from host.engine.parts import Parts
from host.store.errors import StoppedError
from tests.support.engine import asynchronous, engine, owners, rows, take
from tests.support.fake_tools import FakeTools, yen
from tests.support.stops import engaged

Prepare = Callable[[FakeTools], None]
UPDATES = {"new_work", "updates", "parallel"}


def foreign_order(tools: FakeTools) -> None:
    tools.script["get_order"] = [tools.but(order_id="A-9")]


def another_quantity(tools: FakeTools) -> None:
    tools.script["get_return"] = [tools.but(lines=[{"line_id": "1", "quantity": 2, "refund": yen(3000)}])]


def another_return(tools: FakeTools) -> None:
    tools.script["get_return"] = [tools.but(return_id="R-99")]


def beyond_the_yes(tools: FakeTools) -> None:
    tools.script["get_return"] = [tools.but(refund=yen(80_000))]


def told_of_another_return(tools: FakeTools) -> None:
    def wrong(request: Any) -> Any:
        honest = tools.honest(request)
        assert isinstance(honest, Success)
        return Success({**honest.result, "record": {**honest.result["record"], "return_id": "R-99"}})

    tools.script["find_notice"] = [wrong]


def label_used(tools: FakeTools) -> None:
    another_quantity(tools)
    tools.links["label_used"] = True


FOUND: dict[Severe, tuple[Prepare, set[str]]] = {
    Severe.FOREIGN_DATA: (foreign_order, {*UPDATES, "reads"}),
    Severe.OUTSIDE_PERMISSION: (another_quantity, UPDATES),
    Severe.DUPLICATE: (another_return, UPDATES),
    Severe.WRONG_NOTICE: (told_of_another_return, UPDATES),
    Severe.APPROVAL_BYPASSED: (beyond_the_yes, UPDATES),
    Severe.NOT_COMPENSABLE: (label_used, UPDATES),
}
each = pytest.mark.parametrize("finding", FOUND)


def test_every_finding_but_the_calls_that_a_case_may_need_has_its_test_here():
    assert {*FOUND, Severe.CALL_LIMIT} == set(Severe)


async def found_by(parts: Parts, tools: FakeTools, finding: Severe, *, overdue: bool = False) -> UUID:
    """Let one case meet what is wrong."""
    workflow_id = await take(parts, request_id="finder")
    FOUND[finding][0](tools)
    await drive(parts, workflow_id)
    if finding is Severe.NOT_COMPENSABLE:  # a person lets it be undone although all is stopped, or its time is up
        with owners(parts) as sql:
            if overdue:
                sql.execute("SET session_replication_role = replica")
                sql.execute("UPDATE compensation SET ordered_at = ordered_at - interval '2 days', due_at = ordered_at")
                sql.execute("UPDATE workflow SET wake_at = clock_now() WHERE workflow_id = %s", (workflow_id,))
            else:
                sql.execute("SELECT release_compensation(%s, 'sato', '{}')", (workflow_id,))
        await drive(parts, workflow_id)
    return workflow_id


@each
def test_a_finding_stops_new_cases_and_updates_in_the_commit_that_records_it(finding: Severe):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            workflow_id = await found_by(parts, tools, finding)
            assert await engaged(parts) == FOUND[finding][1]
            with pytest.raises(StoppedError):
                await take(parts, request_id="later")
            logged = await rows(
                parts,
                "SELECT actor, workflow_id, (SELECT count(*) FROM checkpoint c WHERE c.xmin = l.xmin) > 0 "
                "FROM stop_log l WHERE act = 'stop' AND cause = %(cause)s",
                cause=finding.value,
            )
            audited = await rows(
                parts, "SELECT count(*) FROM audit WHERE action = 'stop' AND details ->> 'cause' = %(cause)s",
                cause=finding.value,
            )  # fmt: skip
        assert logged == [("engine", workflow_id, True)]
        assert audited == [(1,)]

    run()


@each
def test_whoever_had_begun_before_the_finding_sends_no_update_after_it(finding: Severe):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            bystander = await take(parts, request_id="bystander", order_id="A-2")
            await found_by(parts, tools, finding)
            made = len(tools.executed)
            state = await drive(parts, bystander)
            (waiting,) = await rows(
                parts, "SELECT wake_reason FROM workflow WHERE workflow_id = %(id)s", id=bystander
            )  # fmt: skip
            effects = await rows(parts, "SELECT count(*) FROM effect WHERE workflow_id = %(id)s", id=bystander)
        reads_too = "reads" in FOUND[finding][1]
        assert state.task.state == ("RECEIVED" if reads_too else "ELIGIBLE")
        assert waiting == ("stopped_reads" if reads_too else "stopped",)
        assert effects == [(0,)]
        assert len(tools.executed) == made

    run()


@each
def test_an_effect_whose_intent_was_committed_before_the_finding_is_finished_and_recorded(finding: Severe):
    @asynchronous
    async def run() -> None:
        tools = FakeTools()
        async with engine(tools) as parts:
            bystander = await take(parts, request_id="bystander", order_id="A-2")

            async def meanwhile(request: Any) -> Any:
                await found_by(parts, tools, finding, overdue=True)  # while one is at work no other one is driven
                return tools.honest(request)

            tools.script["create_return"] = [meanwhile]
            state = await drive(parts, bystander)
            assert await engaged(parts) == FOUND[finding][1]
            causes = await rows(parts, "SELECT cause FROM stop_log")
            effects = await rows(
                parts, "SELECT name, outcome, verified_at IS NOT NULL FROM effect WHERE workflow_id = %(id)s",
                id=bystander,
            )  # fmt: skip
        assert (finding.value,) in causes
        assert state.task.state == "RETURN_CREATED"
        assert effects == [("create_return", "succeeded", True)]

    run()
