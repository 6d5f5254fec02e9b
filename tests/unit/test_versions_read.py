"""What a row of the table reads decides its move: the version has to be told, and has to be the workflow's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from host.domain.control import Actor
from host.domain.step import Step
from host.domain.workflow import Seen, Transition, Version, Workflow, unmet
from host.engine.settle import conclude, wrong_effect
from host.workflows.returns import RETURNS
from shared_contracts.tools import TOOLS
from tests.support.fake_tools import FakeTools
from tests.unit.workflow_state import AT, CASE, MOVES, call, state

HELD = {"order_snapshot": AT, "policy": "policy-v12", "authz": "authz-v7"}
REQUEST = {name: CASE[name] for name in ("order_id", "lines", "reason")}
LATE = {"window_ends_at": "2026-07-01T00:00:00Z"}
# The moves that an answer makes: from, by the answer of, on.
ANSWERED: tuple[tuple[str, str, dict[str, Any] | None, str], ...] = (
    ("RECEIVED", "get_order", FakeTools().order("A-1"), "order_verified"),
    ("RECEIVED", "get_order", None, "order_not_found"),
    ("ORDER_VERIFIED", "check_return_policy", FakeTools().policy(REQUEST), "eligible"),
    ("ORDER_VERIFIED", "check_return_policy", FakeTools(line=LATE).policy(REQUEST), "ineligible"),
    ("ELIGIBLE", "create_return", {}, "return_verified"),
    ("APPROVED", "create_return", {}, "return_verified"),
    ("RETURN_CREATED", "send_return_notice", {}, "notice_verified"),
)


def observing(source: str, tool: str, workflow: Workflow = RETURNS, **stored: Any) -> Step:
    return Step(
        state(source, "observing", calls=(call(1, tool, **stored),)), workflow, MOVES, claim=False, active_ms=0.0
    )


def concluded(step: Step, tool: str, result: dict[str, Any] | None) -> tuple[str, str]:
    conclude(step, TOOLS[tool], Seen(tool, result, "not_found" if result is None else None))
    return step.state.task.state, step.state.task.reason


def reading(event: str, *versions: Version) -> Workflow:
    rows = tuple(replace(row, reads=versions) if row.on == event else row for row in RETURNS.transitions)
    return replace(RETURNS, transitions=rows)


def row_of(source: str, event: str) -> Transition:
    row = RETURNS.transition(source, event, Actor.ENGINE)
    assert row is not None
    return row


@pytest.mark.parametrize(("source", "tool", "result", "event"), ANSWERED)
def test_an_answer_that_tells_the_versions_of_its_row_makes_the_move(source, tool, result, event):
    moved, reason = concluded(observing(source, tool), tool, result)
    assert moved == row_of(source, event).target
    assert reason != "version_changed"


@pytest.mark.parametrize(("source", "tool", "result", "event"), [row for row in ANSWERED if row[2] is not None])
def test_a_row_that_reads_a_version_which_the_answer_does_not_tell_makes_no_move(source, tool, result, event):
    stricter = reading(event, Version.AUTHZ)
    assert concluded(observing(source, tool, stricter), tool, result) == ("NEEDS_REVIEW", "version_changed")


def test_an_answer_that_there_is_no_order_has_no_version_that_could_differ():
    assert concluded(observing("RECEIVED", "get_order"), "get_order", None) == ("REJECTED", "order_not_found")


@pytest.mark.parametrize(("source", "tool", "result", "event"), [row for row in ANSWERED if row[0] != "RECEIVED"])
def test_only_a_row_that_reads_the_contract_needs_it_to_be_the_one_that_the_call_was_made_under(
    source, tool, result, event
):
    found = concluded(observing(source, tool, contract_version="0"), tool, result)
    if Version.CONTRACT in row_of(source, event).reads:
        assert found == ("NEEDS_REVIEW", "version_changed")
    else:
        assert found[0] == row_of(source, event).target


def test_an_effect_that_was_compared_by_another_contract_is_a_persons_before_anything_is_undone():
    for made_under, expected in (("1", "COMPENSATION_REQUIRED"), ("0", "NEEDS_REVIEW")):
        step = observing("ELIGIBLE", "create_return", contract_version=made_under)
        wrong_effect(step, TOOLS["create_return"], {"refund": {}})
        assert step.state.task.state == expected


@pytest.mark.parametrize("row", RETURNS.transitions, ids=lambda row: f"{row.source[0]}-{row.on}")
def test_each_version_that_a_row_reads_forbids_it_where_it_was_not_told_or_is_another(row):
    named = {version: "v" for version in row.reads if version is not Version.ROW}
    assert unmet(row, named, named) == ()
    for version in named:
        assert unmet(row, {name: v for name, v in named.items() if name is not version}, named) == (version,)
        assert unmet(row, {**named, version: "other"}, named) == (version,)


def test_a_version_that_was_told_and_is_not_the_workflows_own_forbids_a_row_that_does_not_read_it():
    row = row_of("ORDER_VERIFIED", "eligible")
    told = {Version.POLICY: "policy-v12", Version.ORDER_SNAPSHOT: "another"}
    assert unmet(row, told, HELD) == (Version.ORDER_SNAPSHOT,)


def test_every_row_reads_something():
    assert [row.on for row in RETURNS.transitions if not row.reads] == []
