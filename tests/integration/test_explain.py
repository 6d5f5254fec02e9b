"""Fixed questions about a run, answered from its record: also of one that failed."""

from __future__ import annotations

from host.domain.proposals import ToolCall
from host.engine.drive import drive
from tests.support.engine import asynchronous, engine, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown
from tests.support.records import answers_of
from tests.support.scripted_planner import ScriptedPlanner

CLOSING = (
    "Was there a real call request?",
    "What did the engine record?",
    "Does the result meet the completion condition?",
)


@asynchronous
async def test_a_completed_run_answers_the_three_closing_questions_with_yes():
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        answers = await answers_of(parts, workflow_id)
    assert list(answers)[:3] == list(CLOSING)
    assert answers[CLOSING[0]]["answer"] == "yes, 4 requests"
    assert answers[CLOSING[1]]["answer"].startswith("COMPLETED")
    assert answers[CLOSING[2]]["answer"].startswith("yes, every expected effect is verified")
    assert any('status == "created"' in line and "met" in line for line in answers[CLOSING[2]]["details"])


@asynchronous
async def test_a_run_in_doubt_says_that_nobody_knows_and_never_that_it_was_not_called():
    tools = FakeTools(script={"create_return": [unknown()], "find_return": [rejected("unavailable")] * 9})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await settle(parts, workflow_id)
        answers = await answers_of(parts, workflow_id)
    assert answers[CLOSING[2]]["answer"] == "no, it ended as NEEDS_REVIEW"
    assert "create_return: not met" in answers[CLOSING[2]]["details"][0]
    assert any("no outcome yet, not verified" in line for line in answers[CLOSING[1]]["details"])
    started = answers["Did the tool really start?"]["details"]
    assert any("create_return #1" in line and line.endswith("nobody knows") for line in started)


@asynchronous
async def test_the_six_questions_of_an_incident_are_answered_for_a_failing_run():
    foreign = ToolCall("call_f", "get_order", {"order_id": "A-OTHER"})
    named = "call_0123456789abcdef_1"  # as a program names one; what a person could have written is told by its digest
    wrong = ToolCall(named, "get_order", {"order": 1})
    async with engine(FakeTools(), ScriptedPlanner(script=[wrong, foreign])) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        answers = await answers_of(parts, workflow_id)
    assert any("arguments_invalid" in line and named in line for line in answers["What was proposed?"]["details"])
    assert answers["Did the arguments pass?"]["answer"].startswith("no")
    authorised = answers["Who authorised it?"]
    assert "returns-desk@acme-jp" in authorised["answer"]
    assert any("deny" in line and "foreign_" in line for line in authorised["details"])
    assert answers["Did the tool really start?"]["answer"] == "not that anybody knows"
    assert answers["Was the answer a fact, a business error or a protocol error?"]["answer"] == "nothing came back"
    assert answers["Why did it stop?"]["answer"].startswith("foreign_")
    assert "permission" in answers["Why did it stop?"]["answer"]


@asynchronous
async def test_an_answer_is_told_as_a_fact_or_as_the_class_of_its_error():
    tools = FakeTools(script={"get_order": [rejected("unavailable")], "create_return": [rejected("not_eligible")]})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await settle(parts, workflow_id)
        lines = (await answers_of(parts, workflow_id))["Was the answer a fact, a business error or a protocol error?"]
    said = [line.split(": ", 1)[1] for line in lines["details"]]
    assert said == ["transient error unavailable", "a fact", "a fact", "business error not_eligible"]


@asynchronous
async def test_the_seven_questions_of_an_audit_name_request_policy_versions_evidence_and_detours():
    async with engine(FakeTools(script={"get_order": [rejected("unavailable")]})) as parts:
        workflow_id = await take(parts, request_id="REQ-7")
        await settle(parts, workflow_id)
        answers = await answers_of(parts, workflow_id)
    assert answers["Which request started which run?"]["answer"] == f"request REQ-7 started run {workflow_id}"
    assert answers["What did the planner propose at which step?"]["answer"].startswith("4 calls")
    assert any("read_allowed" in line for line in answers["Which policy allowed or denied it?"]["details"])
    assert any("policy-v12" in line for line in answers["Which policy allowed or denied it?"]["details"])
    assert all("version 1" in line for line in answers["Which tool version was called?"]["details"])
    evidence = answers["Which evidence and rule version does the result come from?"]
    assert "policy policy-v12" in evidence["answer"]
    assert "order://A-1@1" in evidence["details"]
    detours = answers["Where did retries, recovery or a stop happen?"]
    assert any("transient (unavailable) in RETRY_WAIT" in line for line in detours["details"])
    assert "notice://" in answers["Which observations did the final answer use?"]["answer"]


@asynchronous
async def test_a_refused_request_has_its_answer_without_any_effect():
    async with engine(FakeTools(script={"get_order": [rejected("not_found")]})) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        answers = await answers_of(parts, workflow_id)
    assert answers[CLOSING[2]]["answer"] == "yes: the answer is REJECTED (order_not_found), which needs no effect"
