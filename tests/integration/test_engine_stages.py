"""The nine stages of one call: each can fail by itself, under a code of its own that tells it from the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from host.domain.principals import Principal
from host.domain.proposals import NeedsHuman, PlannerFault
from host.engine.accept import CaseError
from tests.support.engine import DESK, asynchronous, engine, rows, settle, take
from tests.support.fake_tools import FakeTools, rejected
from tests.support.scripted_planner import ScriptedPlanner, calling, with_arguments


@dataclass(frozen=True)
class Failure:
    """One stage that fails: what is wrong, and where it shows: the case's reason, or a refusal's code."""

    code: str
    case: dict[str, Any] = field(default_factory=dict)
    principal: Principal = DESK
    planner: Callable[[], ScriptedPlanner] = ScriptedPlanner
    tools: dict[str, list[Any]] = field(default_factory=dict)


def saying(word: Any) -> Callable[[], ScriptedPlanner]:
    return lambda: ScriptedPlanner(always=word if callable(word) else lambda _view: word)


STAGES: dict[str, Failure] = {
    "goal composition": Failure("order_id", case={"order_id": ""}),
    "capability filtering": Failure("scope_missing", principal=DESK.model_copy(update={"scopes": frozenset()})),
    "action proposal": Failure("planner_needs_human", planner=saying(NeedsHuman("planner_needs_human"))),
    "protocol parsing": Failure("several_calls", planner=saying(PlannerFault("several_calls", "-"))),
    "argument validation": Failure("arguments_invalid", planner=saying(calling("get_order", {}))),
    "runtime authorization": Failure("foreign_resource", planner=saying(with_arguments(order_id="A-999"))),
    "tool execution": Failure("attempts_exhausted", tools={"get_order": [rejected("no_answer")] * 2}),
    "result normalisation": Failure("protocol", tools={"get_order": [rejected("bad_output")]}),
    "state update": Failure(
        "version_changed",
        tools={"check_return_policy": [FakeTools().but(rule_version="policy-v99")]},
    ),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_failure_in_a_stage_shows_under_its_own_code_and_has_no_effect(stage):
    failure = STAGES[stage]

    @asynchronous
    async def run() -> None:
        tools = FakeTools(script={name: list(answers) for name, answers in failure.tools.items()})
        async with engine(tools, failure.planner(), principal=failure.principal) as parts:
            if stage == "goal composition":
                with pytest.raises(CaseError, match=failure.code):
                    await take(parts, **failure.case)
                assert await rows(parts, "SELECT count(*) FROM workflow") == [(0,)]
                return
            workflow_id = await take(parts, **failure.case)
            state = await settle(parts, workflow_id)
            codes = {code for (code,) in await rows(parts, "SELECT code FROM refusal")} | {state.task.reason}
        assert state.task.state == "NEEDS_REVIEW"
        assert failure.code in codes
        assert codes & ({other.code for other in STAGES.values()} - {failure.code}) == set()
        assert tools.executed == []

    run()


def test_no_two_stages_share_a_code():
    assert len({failure.code for failure in STAGES.values()}) == len(STAGES) == 9
