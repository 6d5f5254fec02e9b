"""What a planner sees: the case, the state and typed observations; never a secret, and never our own objects."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict, fields
from typing import Any, get_type_hints

import pytest

from host.domain.proposals import PlannerView, ToolCall
from host.domain.state import ControlLayer, Evidence, State, Task, Trace
from host.planner.context import definition, taken, view
from shared_contracts.tools import TOOLS
from tests.unit.workflow_state import CASE, attempt, call, effect, state

CANARY = "canary-5f2e"
# What a planner must never be shown, by name.
DENIED = {
    "tenant_id", "tenant", "principal", "requester", "customer", "resource", "request_id", "idempotency_key", "key",
    "token", "jti", "scope", "scopes", "credential", "authorization", "approval", "approved", "budget", "limits",
    "lease", "lease_owner", "fence", "version", "workflow_id", "step_id", "active_ms", "recoveries", "facts_of_rule",
    "updates_stopped", "reads_stopped", "fingerprint", "attempts", "decisions", "arguments_sha256", "external_id",
}  # fmt: skip


def seen(at: State) -> PlannerView:
    return view(at.task.kind, at.task.release, at.task.state, at.task.case, at.evidence.calls, at.control.refusals)


def marked() -> State:
    """A state in whose every inner field the canary stands."""
    return state(
        calls=(call(1, "get_order", result={"order_id": "A-1"}, fingerprint=CANARY),),
        attempts=({**attempt(1, 1, "call", "success"), "jti": CANARY},),
        effects=({**effect(1, "create_return", "succeeded"), "idempotency_key": CANARY, "external_id": CANARY},),
        tenant_id=CANARY, principal=CANARY, request_id=CANARY, customer=CANARY, resource=CANARY, reason=CANARY,
        policy=CANARY, authz=CANARY, order_snapshot=CANARY,
    )  # fmt: skip


def names(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {name for item in value.values() for name in names(item)}
    if isinstance(value, list | tuple):
        return {name for item in value for name in names(item)}
    return set()


def test_the_whole_view_of_a_received_case_is_this():
    assert asdict(seen(state())) == {
        "kind": "returns",
        "release": "returns-1", "state": "RECEIVED", "turn": 1, "case": CASE, "observations": (), "refusals": (),
    }  # fmt: skip


def test_an_observation_is_the_call_and_its_typed_result_and_no_more():
    at = state(calls=(call(1, "get_order", result={"order_id": "A-1"}),), attempts=(attempt(1, 1, "call", "success"),))
    assert asdict(seen(at))["observations"] == (
        {
            "tool": "get_order", "call_id": "call_1", "arguments": {"order_id": "A-1"},
            "result": {"order_id": "A-1"}, "error": None,
        },
    )  # fmt: skip


def test_no_name_of_the_deny_list_stands_anywhere_in_a_view():
    assert names(asdict(seen(marked()))) & DENIED == set()


def test_a_secret_anywhere_in_the_state_never_reaches_the_planner():
    assert CANARY not in json.dumps(asdict(seen(marked())), default=str)


def test_a_view_is_made_without_the_layers_that_a_planner_may_not_read():
    given = set(get_type_hints(view).values())
    assert given & {State, Task, ControlLayer, Trace, Evidence} == set()
    assert set(inspect.signature(view).parameters) == {"kind", "release", "state", "case", "calls", "refusals"}


def test_a_failed_call_shows_its_code_and_no_result():
    at = state(calls=(call(1, "create_return", "failed", result={"return_id": "R-9"}, error={"code": "wrong_effect"}),))
    (observation,) = seen(at).observations
    assert (observation.result, observation.error) == (None, "wrong_effect")


def test_a_call_that_our_own_crash_cut_off_is_unseen_but_its_turn_is_not_given_out_again():
    at = state(calls=(call(1, "get_order", "failed", error={"code": "cut_off"}),))
    assert seen(at).observations == ()
    assert seen(at).turn == 2


def test_a_turn_is_never_the_same_twice():
    refused = ({"code": "no_call", "message": "-"},)
    turns = [
        seen(at).turn
        for at in (state(), state(refusals=refused), state(refusals=refused, calls=(call(1, "get_order"),)))
    ]
    assert turns == [1, 2, 3]


def test_what_a_planner_changes_in_its_view_it_changes_for_itself_alone():
    facts = {"facts": {"refund": {"amount": 90_000}}, "lines": [{"line_id": "1"}]}
    at = state(calls=(call(1, "check_return_policy", result=facts),))
    before = json.dumps([at.task.case, at.evidence.calls[0].result, at.evidence.calls[0].arguments])
    mine = seen(at)
    mine.case["lines"][0]["quantity"] = 99
    mine.case["order_id"] = "A-9"
    result = mine.observations[0].result
    assert result is not None
    result["facts"]["refund"]["amount"] = 1
    result["lines"].clear()
    mine.observations[0].arguments["order_id"] = "A-9"
    assert json.dumps([at.task.case, at.evidence.calls[0].result, at.evidence.calls[0].arguments]) == before


def test_a_tools_schema_is_a_copy_too():
    shown = definition(TOOLS["create_return"])
    shown.input_schema["properties"].clear()
    shown.input_schema["additionalProperties"] = True
    assert TOOLS["create_return"].input_schema["properties"]
    assert TOOLS["create_return"].input_schema["additionalProperties"] is False


def test_a_tool_is_shown_by_name_summary_and_schema_alone():
    assert {field.name for field in fields(definition(TOOLS["get_order"]))} == {"name", "description", "input_schema"}


def test_a_proposal_cannot_be_changed_after_it_was_handed_in():
    arguments = {"order_id": "A-1", "lines": [{"line_id": "1", "quantity": 1}]}
    mine = ToolCall("c", "create_return", arguments)
    copied = taken(mine)
    arguments["lines"][0]["quantity"] = 99
    assert copied is not None
    assert copied.arguments["lines"] == [{"line_id": "1", "quantity": 1}]


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"x": value}
    return value


@pytest.mark.parametrize(
    "proposal",
    [
        ToolCall(1, "get_order", {}),
        ToolCall("c", None, {}),
        ToolCall("c", "get_order", []),
        ToolCall("c", "get_order", "{}"),
        ToolCall("c", "get_order", nested(100_000)),
    ],
    ids=["id", "name", "list", "text", "deep"],
)
def test_what_has_not_the_shape_of_a_call_is_none(proposal):
    assert taken(proposal) is None


LAYERS = {
    "task": {
        "workflow_id", "kind", "release", "tenant_id", "principal", "request_id", "customer", "resource", "case",
        "requested_at", "state", "resume_state", "reason",
    },
    "evidence": {"calls", "effects", "versions", "asked", "undoing"},
    "control": {
        "control", "active_ms", "entered_active_ms", "tokens", "cost_micros", "cost_today", "refusals_in_a_row",
        "refusals", "recoveries", "updates_stopped", "reads_stopped", "leased", "abandoned", "asleep", "closed",
    },
    "trace": {"version", "fence", "seq", "decisions", "committed_at"},
}  # fmt: skip


def test_the_state_has_five_layers_and_no_field_stands_in_two_of_them():
    at = state()
    layers = {name: {f.name for f in fields(getattr(at, name))} for name in LAYERS}
    assert {f.name for f in fields(State)} == {*LAYERS, "proposal"}
    assert layers == LAYERS
    every = [name for group in layers.values() for name in group]
    assert len(every) == len(set(every))
