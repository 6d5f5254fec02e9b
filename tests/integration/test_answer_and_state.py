"""What somebody is told against what is so: seven ways in which the two could part, and in none of them do.

Each is driven by the engine; the diagnosis names what deviated where something did.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from host.domain.outcome import Success
from host.domain.proposals import Final
from host.engine.drive import drive
from tests.support.claims import claims_shop, desk, example, submit
from tests.support.diagnoses import diagnosis_of
from tests.support.engine import asynchronous, engine, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown
from tests.support.records import record_of
from tests.support.scripted_planner import ScriptedPlanner, calling, honest
from tests.support.tool_shop import Shop

DONE = ("sent you an e-mail", "return number")  # only of what is verified


@dataclass
class Case:
    """What was told and what is so."""

    record: dict[str, Any]
    found: dict[str, Any]

    @property
    def told(self) -> str:
        return str(self.record["customer_message"]["en"])

    @property
    def first(self) -> tuple[str, str] | None:
        first = self.found["first_deviation"]
        return None if first is None else (first["label"], first["code"])

    def claims(self) -> bool:
        return any(word in self.told for word in DONE)


def driven(tools: FakeTools, planner: ScriptedPlanner | None = None, *, whole: bool = True) -> Case:
    """Drive one case, to its end or to where it first waits."""
    found: list[Case] = []

    @asynchronous
    async def run() -> None:
        async with engine(tools, planner) as parts:
            workflow_id = await take(parts)
            await (settle(parts, workflow_id) if whole else drive(parts, workflow_id))
            found.append(Case(await record_of(parts, workflow_id), await diagnosis_of(parts, tools, workflow_id)))

    run()
    return found[0]


def test_nothing_is_called_done_without_a_call():
    tools = FakeTools()
    claim = Final({"status": "COMPLETED", "return_id": "R-1"}, ("return://R-1@1",))
    case = driven(tools, ScriptedPlanner(always=lambda _: claim))
    assert (tools.requests, case.record["state"], case.claims()) == ([], "NEEDS_REVIEW", False)
    assert case.first == ("candidate_generation", "unbacked_completion_claim")
    assert case.found["first_deviation"]["cause"] == "not_chosen"


@pytest.mark.parametrize("code", ["approval_required", "scope_missing", "not_eligible"])
def test_a_denial_is_not_told_as_a_success(code: str):
    tools = FakeTools(script={"create_return": [rejected(code)]})
    case = driven(tools)
    assert (case.record["state"], case.record["result"]["return_id"]) == ("NEEDS_REVIEW", None)
    assert (tools.executed, case.claims()) == ([], False)
    assert "looking at your request" in case.told


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return claims_shop(tmp_path)


def test_a_tools_error_reaches_the_planner_as_it_came(shop: Shop):
    gone = calling("caseops_resolve_document_alias", {"case_id": "C-102", "document_id": "DOC-C102-404"})
    planner = ScriptedPlanner([honest, honest, honest, gone])

    @asynchronous
    async def run() -> None:
        async with desk(shop, planner) as (parts, _):
            taken = await submit(parts, example("C-102"))
            await drive(parts, taken.workflow_id)

    run()
    before, after = planner.views[3].observations, planner.views[4].observations
    assert after[:-1] == before
    assert (after[-1].tool, after[-1].error, after[-1].result) == ("caseops_resolve_document_alias", "not_found", None)


def test_what_was_accepted_and_goes_on_is_told_as_under_way():
    tools = FakeTools()

    def still(request: Any) -> Any:
        found = tools.honest(request)
        assert isinstance(found, Success)
        return Success({**found.result, "record": {**found.result["record"], "status": "queued"}})

    tools.script = {"send_return_notice": [tools.but(status="queued")], "find_notice": [still]}
    case = driven(tools, whole=False)
    assert (case.record["state"], case.record["status"]) == ("RETURN_CREATED", "waiting")
    assert case.record["calls"][-1]["execution_state"] == "running"
    assert "about to be sent" in case.told
    assert (case.found["ended_well"], case.first) == (None, None)


def test_after_a_time_out_nothing_is_made_twice_and_nothing_is_sent_before_it_was_looked_for():
    tools = FakeTools()
    tools.script = {"create_return": [tools.then(unknown("timeout"))]}
    case = driven(tools)
    sent = [request.tool.name for request in tools.requests]
    assert sent.count("create_return") == len(tools.returns) == 1
    assert sent[sent.index("create_return") + 1] == "find_return"
    assert (case.record["state"], case.first) == ("COMPLETED", None)
    assert [one["code"] for one in case.found["mended"]] == ["timeout"]


def test_several_results_belong_each_to_the_request_that_asked():
    tools, told = FakeTools(refunds={"A-1": 3000, "A-2": 5000}), {}

    @asynchronous
    async def run() -> None:
        async with engine(tools) as parts:
            taken = {name: await take(parts, order_id=name, request_id=name) for name in ("A-1", "A-2")}
            for workflow_id in taken.values():
                await settle(parts, workflow_id)
            for name, workflow_id in taken.items():
                told[name] = await record_of(parts, workflow_id)

    run()
    made = {key: one["order_id"] for key, one in tools.returns.items()}
    for name, record in told.items():
        (effect,) = [one for one in record["effects"] if one["name"] == "create_return"]
        number = record["result"]["return_id"]
        assert (made[effect["idempotency_key"]], effect["external_id"]) == (name, number)
        assert number in record["customer_message"]["en"]
        calls = [call["call_id"] for call in record["calls"]]
        assert len(set(calls)) == len(calls) == 4
    assert told["A-1"]["result"]["return_id"] != told["A-2"]["result"]["return_id"]


def test_what_was_made_on_another_target_is_not_taken_for_done():
    tools = FakeTools()
    tools.script = {"create_return": [tools.but(order_id="A-2")]}
    case = driven(tools)
    assert case.record["state"] == "COMPENSATION_REQUIRED" or case.record["reason"] == "compensated"
    assert case.claims() is False
    assert case.first == ("persistence", "wrong_effect")
    assert case.found["ended_well"] is not True
