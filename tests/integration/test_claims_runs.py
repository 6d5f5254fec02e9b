"""The claims investigation on a real engine, real databases and the server's own handlers: each branch and refusal.

What a planner says changes nothing of what code found; what is refused leaves no call behind.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from host.domain.proposals import Final, PlannerView, ToolCall
from host.domain.state import State
from host.domain.workflow import Finding
from host.engine.accept import RequestConflictError
from host.engine.drive import drive
from host.workflows.claims import CLAIMS
from shared_contracts.base import dump
from tests.support.claims import DEMO, claims_shop, desk, example, recorded, submit
from tests.support.crash import DiedError, Fate, doomed
from tests.support.engine import advance_clock, asynchronous, rows, settle
from tests.support.fake_tools import rejected
from tests.support.scripted_planner import ScriptedPlanner, calling, honest
from tests.support.tool_shop import Shop
from tool_server import load_cases

SNAPSHOT, REQUIREMENTS = "caseops_get_case_snapshot", "caseops_get_policy_requirements"
UNCLASSIFIED, ALIAS = "caseops_list_unclassified_documents", "caseops_resolve_document_alias"
FOUR = [SNAPSHOT, REQUIREMENTS, UNCLASSIFIED, ALIAS]
ACCEPTED: dict[str, Any] = {
    "status": "completed",
    "step_count": 4,
    "result": {
        "outcome": "DOCUMENTS_COMPLETE_AFTER_NORMALIZATION",
        "received_document_codes": ["IDENTITY_DOCUMENT", "LOSS_STATEMENT"],
        "resolved_document_codes": ["ACCIDENT_CERTIFICATE"],
        "missing_document_codes": [],
        "evidence_refs": [
            "case://C-102@7",
            "evidence://C-102/DOC-C102-003@1",
            "policy://motor-claim-standard@2026.1",
        ],
    },
}
# How each example ends: state, reason, outcome, tools in their order.
BRANCHES: dict[str, tuple[str, str, str, list[str]]] = {
    "complete": ("COMPLETED", "documents_complete", "DOCUMENTS_COMPLETE", FOUR[:2]),
    "missing": ("COMPLETED", "missing_required_documents", "MISSING_REQUIRED_DOCUMENTS", FOUR[:3]),
    "no-alias": ("NEEDS_REVIEW", "evidence_insufficient", "EVIDENCE_INSUFFICIENT", FOUR),
    "other-rule-version": ("NEEDS_REVIEW", "undecidable", "UNDECIDABLE", FOUR),
    "three-unclassified": (
        "COMPLETED",
        "documents_complete_after_normalization",
        "DOCUMENTS_COMPLETE_AFTER_NORMALIZATION",
        [*FOUR, ALIAS, ALIAS],
    ),
    "other-tenant": ("REJECTED", "case_not_found", "CASE_NOT_FOUND", FOUR[:1]),
}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return claims_shop(tmp_path)


@pytest.fixture
def ungoverned(tmp_path: Path) -> Shop:
    """The same cases under rules that know no other title of a document."""
    seed = load_cases.read_seed(DEMO)
    bare = tuple(rules.model_copy(update={"aliases": ()}) for rules in seed.rule_sets)
    return claims_shop(tmp_path, seed.model_copy(update={"rule_sets": bare}))


@asynchronous
async def test_the_accepted_run_is_four_calls_and_twenty_three_checkpoints(shop: Shop) -> None:
    async with desk(shop) as (parts, tools):
        taken = await submit(parts, example("C-102"))
        await drive(parts, taken.workflow_id)
        again = await submit(parts, example("C-102"))
        await drive(parts, again.workflow_id)
        record = dump(await recorded(parts, taken.workflow_id))
        told = await rows(parts, "SELECT topic, payload ->> 'state' FROM outbox")
        audited = await rows(parts, "SELECT action, result FROM audit WHERE action = 'workflow_ended'")
    assert {name: record[name] for name in ACCEPTED} == ACCEPTED
    assert len(record["checkpoints"]) == 23
    assert [call["tool"] for call in record["calls"]] == FOUR
    assert all(call["execution_state"] == "verified" and len(call["attempts"]) == 1 for call in record["calls"])
    assert (again.workflow_id, again.created, len(tools.requests)) == (taken.workflow_id, False, 4)
    assert told == [("claims.completed", "COMPLETED")]
    assert audited == [("workflow_ended", "COMPLETED")]


@pytest.mark.parametrize("name", BRANCHES)
def test_each_branch_ends_as_the_documents_and_the_rules_have_it(name: str, shop: Shop) -> None:
    @asynchronous
    async def run() -> None:
        async with desk(shop) as (parts, _):
            taken = await submit(parts, example(name))
            await drive(parts, taken.workflow_id)
            record = await recorded(parts, taken.workflow_id)
        assert record.result is not None
        found = (record.state, record.reason, record.result.outcome, [call.tool for call in record.calls])
        assert found == BRANCHES[name]

    run()


@asynchronous
async def test_without_its_alias_rule_the_case_is_a_persons(ungoverned: Shop) -> None:
    async with desk(ungoverned) as (parts, _):
        taken = await submit(parts, example("C-102"))
        state = await drive(parts, taken.workflow_id)
    assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "evidence_insufficient")


@asynchronous
async def test_an_alias_rule_that_is_no_longer_in_effect_resolves_nothing(shop: Shop) -> None:
    case = {"kind": "claims", "case_id": "C-107", "claimant_id": "P-3007"}
    async with desk(shop) as (parts, _):
        after = await submit(parts, {**case, "requested_at": "2026-07-30T10:00:00+09:00"})
        before = await submit(parts, {**case, "requested_at": "2026-03-31T10:00:00+09:00"})
        ends = [(await drive(parts, one.workflow_id)).task.reason for one in (after, before)]
    assert ends == ["evidence_insufficient", "documents_complete_after_normalization"]


@asynchronous
async def test_a_foreign_case_and_one_that_does_not_exist_read_the_same(shop: Shop) -> None:
    async with desk(shop) as (parts, _):
        told = []
        for document in (
            example("other-tenant"),
            {"kind": "claims", "case_id": "C-999", "claimant_id": "P-3002"},
            {"kind": "claims", "case_id": "C-102", "claimant_id": "P-3003"},
        ):
            taken = await submit(parts, document)
            await drive(parts, taken.workflow_id)
            record = await recorded(parts, taken.workflow_id)
            told.append((record.state, record.reason, record.customer_message, record.result))
    assert told[0] == told[1] == told[2]


def lying(**answer: Any) -> Any:
    """The honest final with something else in it; `refs` stands for its evidence."""

    def word(view: PlannerView) -> Any:
        said = honest(view)
        assert isinstance(said, Final)
        refs = answer.get("refs", said.evidence_refs)
        return Final({**said.answer, **{k: v for k, v in answer.items() if k != "refs"}}, refs)

    return word


LIES: dict[str, tuple[int, Any]] = {  # honest turns before it, and the lie
    "with no calls at all": (0, Final({"outcome": "DOCUMENTS_COMPLETE"}, ("case://C-102@7",))),
    "with no evidence": (4, lying(refs=())),
    "with invented evidence": (4, lying(refs=("case://C-102@7", "evidence://C-102/DOC-C102-009@1"))),
    "with evidence left out": (4, lying(refs=("case://C-102@7",))),
    "with evidence beside the point": (4, lying(refs="case://C-102@7")),
    "with another outcome": (4, lying(outcome="MISSING_REQUIRED_DOCUMENTS")),
    "with a document that nobody sent": (4, lying(received_document_codes=["POLICE_REPORT"])),
    "before the alias was resolved": (3, Final({"outcome": "DOCUMENTS_COMPLETE"}, ("case://C-102@7",))),
    "that is no object": (4, Final("done", ("case://C-102@7",))),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("lie", LIES)
def test_a_final_answer_is_refused(lie: str, shop: Shop) -> None:
    turns, word = LIES[lie]

    @asynchronous
    async def run() -> None:
        planner = ScriptedPlanner([*[honest] * turns, word])
        async with desk(shop, planner) as (parts, tools):
            taken = await submit(parts, example("C-102"))
            await drive(parts, taken.workflow_id)
            refused = await rows(parts, "SELECT code FROM refusal")
            record = dump(await recorded(parts, taken.workflow_id))
        assert refused == [("unbacked_completion_claim",)]
        assert {name: record[name] for name in ACCEPTED} == ACCEPTED, (
            "the next honest turn goes on as if nothing was said"
        )
        assert len(tools.requests) == 4

    run()


@pytest.mark.parametrize(
    "references", [(), ("case://C-102@8",), ("case://C-102@7", "case://C-103@1"), "case://C-102@7"]
)
def test_evidence_that_nobody_observed_is_refused_whatever_the_businesss_own_criterion_would_take(
    references: Any, shop: Shop
) -> None:
    done = Finding("documents_complete", "documents_complete")
    credulous = replace(CLAIMS, finish=lambda *_: done)

    @asynchronous
    async def run() -> None:
        planner = ScriptedPlanner([honest, honest, Final({}, references), Final({}, ("case://C-102@7",))])
        async with desk(shop, planner) as (parts, _):
            ((key, kind),) = parts.kinds.items()
            taken = await submit(parts, example("C-102"))
            state = await drive(replace(parts, kinds={key: replace(kind, workflow=credulous)}), taken.workflow_id)
        assert [code for code, _ in state.control.refusals] == ["unbacked_completion_claim"]
        assert (state.task.state, len(planner.views)) == ("COMPLETED", 4), "the one with evidence is for the criterion"

    run()


@asynchronous
async def test_a_planner_that_only_claims_to_be_done_ends_with_a_failure_and_no_call(shop: Shop) -> None:
    planner = ScriptedPlanner(always=lambda _: Final({"outcome": "DOCUMENTS_COMPLETE"}, ("case://C-102@7",)))
    async with desk(shop, planner) as (parts, tools):
        taken = await submit(parts, example("C-102"))
        state = await drive(parts, taken.workflow_id)
    assert (state.task.state, state.task.reason, tools.requests) == ("NEEDS_REVIEW", "planner_exhausted", [])


@asynchronous
async def test_five_requests_at_once_under_one_key_are_one_run(shop: Shop) -> None:
    async with desk(shop) as (parts, tools):

        async def request() -> tuple[Any, State]:
            taken = await submit(parts, example("C-102"))
            return taken.workflow_id, await drive(parts, taken.workflow_id)

        ids = {one for one, _ in await asyncio.gather(*(request() for _ in range(5)))}
        (only,) = ids
        state = await settle(parts, only)
        runs = await rows(parts, "SELECT count(*) FROM workflow")
    assert (state.task.state, len(tools.requests), runs) == ("COMPLETED", 4, [(1,)])


@asynchronous
async def test_another_case_under_a_known_key_is_refused_and_calls_nothing(shop: Shop) -> None:
    async with desk(shop) as (parts, tools):
        taken = await submit(parts, example("C-102"))
        with pytest.raises(RequestConflictError):
            await submit(parts, {**example("missing"), "request_id": "claims-C-102"})
        runs = await rows(parts, "SELECT workflow_id, resource FROM workflow")
    assert (runs, tools.requests) == ([(taken.workflow_id, "C-102")], [])


@asynchronous
async def test_a_document_that_is_gone_is_told_to_the_planner_and_fails_nothing(shop: Shop) -> None:
    planner = ScriptedPlanner(
        [honest, honest, honest, calling(ALIAS, {"case_id": "C-102", "document_id": "DOC-C102-404"})]
    )
    async with desk(shop, planner) as (parts, _):
        taken = await submit(parts, example("C-102"))
        state = await drive(parts, taken.workflow_id)
    observed = [(one.tool, one.error) for one in planner.views[4].observations]
    assert observed[-1] == (ALIAS, "not_found")
    assert state.task.state == "COMPLETED"


@asynchronous
async def test_a_call_id_of_an_earlier_call_is_refused_and_changes_no_row_of_it(shop: Shop) -> None:
    def again(view: PlannerView) -> Any:
        return replace(honest(view), call_id=view.observations[0].call_id)

    planner = ScriptedPlanner([honest, again])
    async with desk(shop, planner) as (parts, tools):
        taken = await submit(parts, example("C-102"))
        await drive(parts, taken.workflow_id)
        calls = await rows(parts, "SELECT step, tool, execution_state FROM call ORDER BY step")
        refused = await rows(parts, "SELECT code FROM refusal")
    assert refused == [("call_id_reused",)]
    assert calls == [(n, tool, "verified") for n, tool in enumerate(FOUR, 1)]
    assert len(tools.requests) == 4


@asynchronous
async def test_the_same_action_again_is_blocked_before_it_is_sent(shop: Shop) -> None:
    def once_more(view: PlannerView) -> Any:
        """The tool is still one of the state: two papers are left."""
        return ToolCall(f"again_{view.turn}", ALIAS, dict(view.observations[-1].arguments))

    async with desk(shop, ScriptedPlanner([honest] * 4 + [once_more])) as (parts, tools):
        taken = await submit(parts, example("three-unclassified"))
        state = await drive(parts, taken.workflow_id)
    asked = [request.arguments["document_id"] for request in tools.requests if request.tool.name == ALIAS]
    assert [code for code, _ in state.control.refusals] == ["repeated_action"]
    assert (state.task.state, asked) == ("COMPLETED", ["DOC-C106-001", "DOC-C106-002", "DOC-C106-003"])


@pytest.mark.parametrize("tool", ["create_return", "send_return_notice", "cancel_return"])
def test_a_tool_that_writes_is_nothing_that_this_business_may_call(tool: str, shop: Shop) -> None:
    @asynchronous
    async def run() -> None:
        arguments = {
            "create_return": {
                "order_id": "C-102", "lines": [{"line_id": "L1", "quantity": 1}], "reason": "changed_mind",
            },
        }.get(tool, {"order_id": "C-102", "return_id": "R-1"})  # fmt: skip
        async with desk(shop, ScriptedPlanner([calling(tool, arguments)])) as (parts, tools):
            taken = await submit(parts, example("C-102"))
            state = await drive(parts, taken.workflow_id)
            effects = await rows(parts, "SELECT count(*) FROM effect")
        assert (state.task.state, state.task.reason) == ("NEEDS_REVIEW", "not_in_catalogue")
        assert (tools.requests, effects) == ([], [(0,)])

    run()


@asynchronous
async def test_another_case_is_denied_before_any_request(shop: Shop) -> None:
    async with desk(shop, ScriptedPlanner([calling(SNAPSHOT, {"case_id": "C-103"})])) as (
        parts,
        tools,
    ):
        taken = await submit(parts, example("C-102"))
        state = await drive(parts, taken.workflow_id)
    assert (state.task.reason, tools.requests) == ("foreign_resource", [])


@asynchronous
async def test_rules_of_another_version_than_the_cases_own_are_denied(shop: Shop) -> None:
    other = calling(REQUIREMENTS, {"case_id": "C-102", "rule_set": "motor-claim-standard@2025.2"})
    async with desk(shop, ScriptedPlanner([honest, other])) as (parts, tools):
        taken = await submit(parts, example("C-102"))
        state = await drive(parts, taken.workflow_id)
    assert (state.task.reason, tools.sent(REQUIREMENTS)) == ("foreign_arguments", 0)


@pytest.mark.parametrize(("faults", "end"), [(1, "COMPLETED"), (2, "NEEDS_REVIEW")])
def test_a_read_has_two_attempts_with_the_wait_of_every_retry_between(faults: int, end: str, shop: Shop) -> None:
    @asynchronous
    async def run() -> None:
        async with desk(shop) as (parts, tools):
            tools.script[ALIAS] = [rejected("unavailable")] * faults
            taken = await submit(parts, example("C-102"))
            waiting = await drive(parts, taken.workflow_id)
            ((seconds,),) = await rows(parts, "SELECT extract(epoch FROM wake_at - updated_at)::float8 FROM workflow")
            state = await settle(parts, taken.workflow_id)
        assert (waiting.task.state, waiting.task.resume_state) == ("RETRY_WAIT", "DOCUMENTS_LISTED")
        assert 1.0 <= seconds <= 1.6
        assert (state.task.state, tools.sent(ALIAS)) == (end, 2)

    run()


@pytest.mark.parametrize("at", range(1, 6))
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_driver_dead_at_any_commit_costs_neither_repeats_nor_calls_and_loses_no_terminal_row(
    at: int, before: bool, shop: Shop
) -> None:
    @asynchronous
    async def run() -> None:
        fate = Fate(at, before)
        async with desk(shop) as (parts, _):
            taken = await submit(parts, example("C-102"))
            async with doomed(parts, fate) as mortal:
                with pytest.raises(DiedError):
                    await drive(mortal, taken.workflow_id)
            advance_clock(parts, 15.1)
            state = await settle(parts, taken.workflow_id)
            ended = await rows(parts, "SELECT count(*) FROM audit WHERE action = 'workflow_ended'")
            told = await rows(parts, "SELECT count(*) FROM outbox")
        assert fate.seen == at
        assert (state.task.state, state.calls_made(), state.control.refusals) == ("COMPLETED", 4, ())
        assert (ended, told) == ([(1,)], [(1,)])

    run()


@asynchronous
async def test_the_engine_commits_five_times_beside_the_one_that_takes_the_case_in(shop: Shop) -> None:
    fate = Fate(0, before=False)
    async with desk(shop) as (parts, _):
        taken = await submit(parts, example("C-102"))
        async with doomed(parts, fate) as counted:
            await drive(counted, taken.workflow_id)
    assert fate.seen == 5


@pytest.mark.parametrize(("deaths", "end"), [(12, ("COMPLETED", 4)), (21, ("NEEDS_REVIEW", 0))])
def test_deaths_under_a_read_cost_no_call_up_to_a_bound_of_their_own(
    deaths: int, end: tuple[str, int], shop: Shop
) -> None:
    @asynchronous
    async def run() -> None:
        async with desk(shop) as (parts, _):
            taken = await submit(parts, example("C-102"))
            for _ in range(deaths):
                async with doomed(parts, Fate(1, before=False)) as mortal:
                    with pytest.raises(DiedError):
                        await drive(mortal, taken.workflow_id)
                advance_clock(parts, 15.1)
            state = await settle(parts, taken.workflow_id)
        assert (state.task.state, state.calls_made()) == end
        assert state.control.refusals == (), "none of it counts as a repetition"

    run()
