"""What deviated first in a case, by its label, apart from what followed; of cases that an engine really drove."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from host.domain.proposals import NOTHING_USED, Final, PlannerFault, PlannerView, Reply, ToolCall, Utterance
from host.engine.parts import Parts
from shared_contracts.contract import Scope
from shared_contracts.digest import digest
from shared_contracts.tools import TOOLS
from tests.support.diagnoses import Spoil, diagnosis_of, lost, made_again, unspoilt
from tests.support.engine import DESK, asynchronous, engine, owners, settle, take
from tests.support.fake_tools import FakeTools, rejected, unknown
from tests.support.scripted_planner import ScriptedPlanner, calling, honest, with_arguments

FOREIGN = calling("get_order", {"order_id": "A-OTHER"})
ELSEWHERE = calling("cancel_return", {"order_id": "A-1", "return_id": "R-1"})
UNFIT = calling("get_order", {"order": 1})
CLAIM = Final(answer={"done": True}, evidence_refs=("order://A-1@1",))
Plant = Callable[[Parts], None]


def untouched(_parts: Parts) -> None:
    """Nothing is planted."""


def unguarded(statement: str) -> Plant:
    """Leave in the ledger what only a disaster leaves."""

    def plant(parts: Parts) -> None:
        with owners(parts) as connection, connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")
            assert connection.execute(statement.encode()).rowcount == 1

    return plant


def diagnosed(
    tools: FakeTools,
    planner: ScriptedPlanner | None = None,
    *,
    plant: Plant = untouched,
    spoil: Spoil = unspoilt,
    scopes: frozenset[Scope] = DESK.scopes,
) -> dict[str, Any]:
    """Run the one case to its end, and diagnose it."""
    found: list[dict[str, Any]] = []

    @asynchronous
    async def run() -> None:
        async with engine(tools, planner, principal=DESK.model_copy(update={"scopes": scopes})) as parts:
            workflow_id = await take(parts)
            await settle(parts, workflow_id)
            plant(parts)
            found.append(await diagnosis_of(parts, tools, workflow_id, spoil))

    run()
    return found[0]


def failing(tool: str, code: str = "rate_limited", times: int = 40) -> FakeTools:
    return FakeTools(script={tool: [rejected(code)] * times})


def always(word: Any) -> ScriptedPlanner:
    return ScriptedPlanner(always=lambda state: word(state) if callable(word) else word)


def said_raw(said: Any, raw: Utterance) -> Reply:
    """A turn with what it was read out of."""
    return Reply(said, NOTHING_USED, raw)


LABELS = {
    "a tool of another state": (
        "decision_boundary", "tool_not_in_state", lambda: diagnosed(FakeTools(), always(ELSEWHERE)),
    ),
    "a token without the tool's scope": (
        "decision_boundary", "scope_missing", lambda: diagnosed(failing("get_order", "scope_missing")),
    ),
    "another customer's order": (
        "decision_boundary", "foreign_resource", lambda: diagnosed(FakeTools(), ScriptedPlanner([FOREIGN])),
    ),
    "arguments that do not fit": (
        "candidate_generation", "arguments_invalid", lambda: diagnosed(FakeTools(), always(UNFIT)),
    ),
    "429": ("connection", "rate_limited", lambda: diagnosed(failing("create_return"))),
    "503": ("connection", "unavailable", lambda: diagnosed(failing("create_return", "unavailable"))),
    "500": ("connection", "internal_error", lambda: diagnosed(failing("get_order", "internal_error"))),
    "two returns": ("idempotency", "made_twice", lambda: diagnosed(FakeTools(), spoil=made_again("R-2", None))),
    "one return and a stale record": (
        "persistence", "sent_without_intent",
        lambda: diagnosed(FakeTools(), plant=unguarded("DELETE FROM effect WHERE name = 'create_return'")),
    ),
    "only the notice is missing": (
        "external_notification", "rate_limited", lambda: diagnosed(failing("send_return_notice")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LABELS)
def test_each_kind_of_fault_has_its_label(name: str):
    label, code, scene = LABELS[name]
    found = scene()
    first = found["first_deviation"]
    assert (first["label"], first["code"]) == (label, code)
    assert found["said"] == f"First deviation, {label}: {first['said']}"
    assert first["evidence"] != []
    assert first["at"] is not None
    assert first["checkpoint"] is not None or first["step_id"] is not None


def test_a_requester_without_the_scope_is_stopped_before_any_call_and_that_is_the_decision_boundary():
    tools = FakeTools()
    found = diagnosed(tools, scopes=frozenset())
    first = found["first_deviation"]
    assert (first["label"], first["code"], first["cause"]) == ("decision_boundary", "scope_missing", "tool_not_exposed")
    assert (first["checkpoint"] is not None, tools.requests) == (True, [])


STALE = {
    "the ledger says that nothing was made": (
        "verified_without_effect",
        "UPDATE effect SET outcome = 'absent', external_id = NULL, verified_at = NULL WHERE name = 'create_return'",
    ),
    "the effect was never seen to be reached": (
        "verified_without_effect", "UPDATE effect SET verified_at = NULL WHERE name = 'create_return'",
    ),
    "the call is in doubt still": (
        "effect_without_verified_call", "UPDATE call SET execution_state = 'unknown' WHERE tool = 'create_return'",
    ),
    "the ledger has another number": (
        "other_number", "UPDATE effect SET external_id = 'R-9' WHERE name = 'create_return'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STALE)
def test_one_return_and_a_record_that_is_behind_it_is_of_the_persistence(name: str):
    code, statement = STALE[name]
    found = diagnosed(FakeTools(), plant=unguarded(statement))
    assert (found["first_deviation"]["code"], found["first_deviation"]["label"]) == (code, "persistence")
    assert found["reconciliation"]["duplicate"] == []
    assert (found["state"], found["ended_well"]) == ("COMPLETED", False), "an answer that nothing bears out"


def test_a_case_that_ran_as_it_should_deviates_in_nothing():
    found = diagnosed(FakeTools())
    assert (found["first_deviation"], found["consequences"], found["mended"]) == (None, [], [])
    assert (found["ended_well"], found["state"]) == (True, "COMPLETED")
    both = found["reconciliation"]
    assert both["compared"] > 0
    assert (both["untracked"], both["missing"], both["duplicate"]) == ([], [], [])


def test_what_the_rules_give_to_a_person_is_no_deviation():
    found = diagnosed(FakeTools(line={"dangerous": True}))
    assert (found["state"], found["reason"]) == ("NEEDS_REVIEW", "dangerous_goods")
    assert (found["first_deviation"], found["ended_well"]) == (None, False)


def test_a_case_that_waits_for_a_person_has_not_deviated_so_far():
    found = diagnosed(FakeTools(refund=60_000))
    assert (found["state"], found["first_deviation"], found["ended_well"]) == ("WAITING_APPROVAL", None, None)
    assert "so far" in found["said"]


def test_a_fault_that_the_run_went_on_from_is_told_and_is_no_first_deviation():
    found = diagnosed(failing("get_order", times=1), ScriptedPlanner([UNFIT]))
    assert (found["state"], found["first_deviation"]) == ("COMPLETED", None)
    assert [(one["code"], one["label"]) for one in found["mended"]] == [
        ("arguments_invalid", "candidate_generation"),
        ("rate_limited", "connection"),
    ]


def test_of_several_failures_the_first_is_named_and_the_rest_follows_in_order():
    tools = FakeTools(script={"create_return": [unknown()], "find_return": [rejected("unavailable")] * 9})
    found = diagnosed(tools)
    first, after = found["first_deviation"], found["consequences"]
    assert (first["code"], first["label"]) == ("timeout", "connection")
    assert {one["code"] for one in after[:-1]} == {"unavailable"}
    assert (after[-1]["checkpoint"], after[-1]["label"]) == (_last(found), None)
    assert "NEEDS_REVIEW" in after[-1]["said"]
    times = [one["at"] for one in (first, *after)]
    assert times == sorted(times)


def _last(found: dict[str, Any]) -> int:
    return max(one["checkpoint"] for one in found["consequences"])


def test_a_fault_that_was_mended_does_not_hide_what_the_case_ended_by():
    planner = ScriptedPlanner([honest, with_arguments(order_id="A-OTHER")])
    found = diagnosed(failing("get_order", times=1), planner)
    assert found["first_deviation"]["code"] == "foreign_resource"
    assert [one["code"] for one in found["mended"]] == ["rate_limited"]
    assert [one["code"] for one in found["consequences"]] == ["foreign_resource"]


def test_a_wrong_effect_is_first_and_its_undoing_follows():
    tools = FakeTools()
    tools.script["get_return"] = [tools.but(order_id="A-2")]
    found = diagnosed(tools)
    assert (found["first_deviation"]["code"], found["first_deviation"]["label"]) == ("wrong_effect", "persistence")
    assert "to be undone" in found["consequences"][0]["said"]


CAUSES = {
    "a tool of another state": (
        "tool_not_exposed", FakeTools(), always(ELSEWHERE), unspoilt,
    ),
    "a tool that the server does not offer": (
        "tool_not_exposed", FakeTools(names=frozenset({"get_order"})), None, unspoilt,
    ),
    "arguments that do not fit": ("vague_description", FakeTools(), always(UNFIT), unspoilt),
    "a tool that there is not": ("vague_description", FakeTools(), always(calling("make_it_so", {})), unspoilt),
    "a claim without a call": ("not_chosen", FakeTools(), always(CLAIM), unspoilt),
    "words instead of a call": ("not_chosen", FakeTools(), always(PlannerFault("no_call", "x")), unspoilt),
    "several calls in a turn": (
        "engine_dropped_the_call", FakeTools(), always(PlannerFault("several_calls", "x")), unspoilt,
    ),
    "a return that was said to be made": (
        "failure_delivered_as_success", FakeTools(), None, lost("create_return"),
    ),
    "a return that cannot be read back": (
        "acceptance_read_as_completion", FakeTools(script={"get_return": [rejected("not_found")] * 9}), None, unspoilt,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CAUSES)
def test_what_looks_done_and_is_not_has_its_cause(name: str):
    cause, tools, planner, spoil = CAUSES[name]
    assert diagnosed(tools, planner, spoil=spoil)["first_deviation"]["cause"] == cause


SHOWN = {
    "a tool of another state": ("tool_not_exposed", ELSEWHERE),
    "arguments that do not fit a tool that was shown": ("vague_description", UNFIT),
    "a tool that there is not": ("vague_description", calling("make_it_so", {})),
    "arguments that do not fit a tool that was not shown": ("tool_not_exposed", calling("cancel_return", {"x": 1})),
    "a claim without a call": ("not_chosen", CLAIM),
    "words instead of a call": ("not_chosen", said_raw(PlannerFault("no_call", "x"), Utterance(("I did",), ()))),
    "several calls in a turn": (
        "engine_dropped_the_call",
        said_raw(PlannerFault("several_calls", "x"), Utterance((), (("get_order", "{}"), ("create_return", "{}")))),
    ),
    "a call in what could not be read": (
        "engine_dropped_the_call", said_raw(PlannerFault("malformed_turn", "x"), Utterance((), (("get_order", {}),))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_a_cause_is_shown_by_what_the_planner_was_sent_and_what_it_gave(name: str):
    cause, word = SHOWN[name]
    first = diagnosed(FakeTools(), always(word))["first_deviation"]
    assert (first["cause"], first["cause_known_by"]) == (cause, "turn")
    turn = first["turn"]
    assert [(one["name"], one["description"]) for one in turn["definitions"]] == [
        ("get_order", TOOLS["get_order"].summary)
    ]
    assert turn["definitions_sha256"] == digest(turn["definitions"])
    assert turn["checkpoint"] == 3


def test_a_cause_whose_output_was_not_handed_over_is_inferred_and_said_to_be():
    first = diagnosed(FakeTools(), always(PlannerFault("several_calls", "x")))["first_deviation"]
    assert (first["cause"], first["cause_known_by"]) == ("engine_dropped_the_call", "record")


def test_a_cause_that_the_turn_says_otherwise_of_does_not_stand():
    said = said_raw(PlannerFault("no_call", "x"), Utterance(("so",), (("get_order", {}),)))
    first = diagnosed(FakeTools(), always(said))["first_deviation"]
    assert (first["code"], first["cause"], first["cause_known_by"]) == ("no_call", None, None)


def test_no_word_of_the_planner_or_of_the_customer_is_repeated():
    told: list[PlannerView] = []

    def word(state: PlannerView) -> Any:
        told.append(state)
        return ToolCall(f"x_{state.turn}", "get_order", {"order_id": "kx7q"})

    found = diagnosed(FakeTools(), always(word))
    assert told != []
    assert "kx7q" not in str(found)
    assert "kx7q" not in str(diagnosed(FakeTools(), ScriptedPlanner([with_arguments(order_id="kx7q")])))
