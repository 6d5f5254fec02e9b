"""A kind's baseline over the real tools: the reads that it may make, and each that it may not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from host.domain.baseline import Judged, Read
from host.engine.accept import read_case
from host.engine.baseline import NoBaselineError, Question, baseline
from host.engine.parts import Parts
from host.store import external
from host.store.errors import StoppedError
from host.workflows.claims import CLAIMS
from shared_contracts.base import dump
from tests.support.claims import CLAIMS_DESK, claims_shop, desk, example
from tests.support.engine import KINDS, asynchronous, engage, rows
from tests.support.fake_tools import rejected
from tests.support.tool_shop import Shop

SNAPSHOT, REQUIREMENTS = "caseops_get_case_snapshot", "caseops_get_policy_requirements"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return claims_shop(tmp_path)


def question(name: str = "C-102", **differs: Any) -> Question:
    _, case = read_case(example(name), KINDS)
    whole = Question(CLAIMS, dump(case), CLAIMS_DESK, getattr(case, "requested_at", None))
    return replace(whole, **differs)


async def task_count(parts: Parts) -> int:
    ((count,),) = await rows(parts, "SELECT count(*) FROM external_task")
    return int(count)


@asynchronous
async def test_two_reads_and_a_draft_and_no_case(shop: Shop) -> None:
    async with desk(shop) as (parts, tools):
        judged = await baseline(parts, question())
        cases = await rows(parts, "SELECT count(*) FROM workflow")
        known = await rows(parts, "SELECT jti FROM external_task")
    assert (judged.decision, judged.missing) == ("MISSING_REQUIRED_DOCUMENTS", ("ACCIDENT_CERTIFICATE",))
    assert [request.tool.name for request in tools.requests] == [SNAPSHOT, REQUIREMENTS]
    assert {request.jti for request in tools.requests} == {jti for (jti,) in known}
    assert cases == [(0,)]


@asynchronous
async def test_without_a_time_of_its_own_a_question_is_asked_by_the_databases_clock(shop: Shop) -> None:
    async with desk(shop) as (parts, tools):
        await baseline(parts, question(requested_at=None))
        ((now,),) = await rows(parts, "SELECT clock_now()")
    assert abs((now - tools.requests[0].requested_at).total_seconds()) < 60


@asynchronous
async def test_a_stop_of_reads_stops_it_before_any_request_and_a_stop_of_updates_does_not(shop: Shop) -> None:
    async with desk(shop) as (parts, tools):
        engage(parts, "updates")
        await baseline(parts, question())
        engage(parts, "reads")
        with pytest.raises(StoppedError):
            await baseline(parts, question())
    assert len(tools.requests) == 2


@asynchronous
async def test_its_tokens_are_in_nobody_elses_hand_and_no_stop_lists_them_as_such(shop: Shop) -> None:
    async with desk(shop) as (parts, _):
        await baseline(parts, question())
        async with parts.pool.connection() as connection:
            everything, handed_out = await external.tasks(connection, 50), await external.good(connection)
    assert [one["expired"] for one in everything] == [False, False]
    assert handed_out == []


WRONG: dict[str, Question] = {
    "an update": question(workflow=replace(CLAIMS, baseline=lambda *_: Read("create_return", {"order_id": "C-102"}))),
    "an unknown tool": question(workflow=replace(CLAIMS, baseline=lambda *_: Read("unheard_of", {}))),
    "another case": question(workflow=replace(CLAIMS, baseline=lambda *_: Read(SNAPSHOT, {"case_id": "C-103"}))),
    "a tool that the requester lacks": question(principal=CLAIMS_DESK.model_copy(update={"tools": frozenset()})),
    "a scope that the requester lacks": question(principal=CLAIMS_DESK.model_copy(update={"scopes": frozenset()})),
    "no baseline": question(workflow=replace(CLAIMS, baseline=None)),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_it_may_not_read_is_refused_before_anything_is_issued(name: str, shop: Shop) -> None:
    @asynchronous
    async def run() -> None:
        async with desk(shop) as (parts, tools):
            with pytest.raises(NoBaselineError):
                await baseline(parts, WRONG[name])
            issued = await task_count(parts)
        assert (tools.requests, issued) == ([], 0)

    run()


@asynchronous
async def test_one_that_never_comes_to_an_end_is_ended_by_the_kinds_own_limit(shop: Shop) -> None:
    endless = replace(CLAIMS, baseline=lambda *_: Read(SNAPSHOT, {"case_id": "C-102"}))
    async with desk(shop) as (parts, tools):
        with pytest.raises(NoBaselineError, match="more than 8 reads"):
            await baseline(parts, question(workflow=endless))
    assert len(tools.requests) == 8


@asynchronous
async def test_a_server_that_does_not_answer_gives_no_judgement(shop: Shop) -> None:
    async with desk(shop) as (parts, tools):
        tools.script[SNAPSHOT] = [rejected("unavailable")]
        with pytest.raises(NoBaselineError, match="unavailable"):
            await baseline(parts, question())


@asynchronous
async def test_what_is_not_found_is_a_judgement_of_its_own(shop: Shop) -> None:
    async with desk(shop) as (parts, _):
        judged = await baseline(parts, question("other-tenant"))
    assert judged == Judged("CASE_NOT_FOUND", (), None, None, ())
