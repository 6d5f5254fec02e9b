"""What stands against the end of a stage is named, all of it at once, and the form shows what was recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from host.commands.rollout_form import form
from host.domain.principals import Audience, Operator, Principal
from host.domain.rollout import CASES, OpenStage, Reconciled, stands_against
from host.evaluation.gate import gate
from host.rollout_views import Actor, CheckRate, Passed, RolloutAct, RolloutView
from host.store.releases import Act
from shared_contracts.base import dump
from tests.support.evaluations import report

AT = datetime(2026, 8, 1, 9, tzinfo=UTC)
AGREE = Reconciled(compared=40, untracked=0, missing=0, duplicate=0)
GOOD = OpenStage(
    opening=1, stage=3, releases={"returns": "returns-1"}, actor="sato", reason="x", os_user="x", authz=None, at=AT,
    due=50, cases=50, ended=50, checked=50, wrong=0, uncompensated=0, same_releases=True,
)  # fmt: skip


def test_a_stage_that_has_shown_everything_has_nothing_against_it():
    assert stands_against(GOOD, AGREE) == ()
    assert CASES == {1: 10, 2: 20, 3: 50}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"same_releases": False}, "another release"),
        ({"ended": 49}, "49 of 50 cases have ended"),
        ({"uncompensated": 1}, "1 compensations are unfinished"),
        ({"checked": 49}, "49 of 50 cases are checked"),
        ({"wrong": 2}, "2 cases were found wrong"),
    ],
)
def test_each_lack_by_itself_keeps_the_last_stage_open(changes: dict[str, int], said: str):
    (only,) = stands_against(replace(GOOD, **changes), AGREE)  # type: ignore[arg-type]
    assert said in only


@pytest.mark.parametrize(
    ("compared", "said"),
    [
        (Reconciled(0, 0, 0, 0), "nothing was compared"),
        (Reconciled(40, 3, 0, 0), "3 untracked"),
        (Reconciled(40, 0, 3, 0), "3 missing"),
        (Reconciled(40, 0, 0, 3), "3 duplicate"),
    ],
)
def test_each_difference_of_both_sides_keeps_a_stage_open(compared: Reconciled, said: str):
    (only,) = stands_against(GOOD, compared)
    assert said in only


@pytest.mark.parametrize("stage", [1, 2])
def test_the_first_stages_want_no_check_and_what_somebody_found_wrong_all_the_same_stands_against_them(stage: int):
    assert stands_against(replace(GOOD, stage=stage, checked=0), AGREE) == ()
    assert stands_against(replace(GOOD, stage=stage, checked=1, wrong=1), AGREE) == ("1 cases were found wrong",)


def test_everything_that_is_lacking_is_named_at_once():
    bad = replace(GOOD, same_releases=False, ended=0, uncompensated=1, checked=0, wrong=1)
    assert len(stands_against(bad, Reconciled(0, 1, 1, 1))) == 9


def test_who_is_said_to_be_of_no_audience_comes_in_last_and_another_word_is_refused():
    plain = {"name": "x@y", "tenant_id": "y", "roles": [], "scopes": [], "tools": []}
    assert Principal.model_validate_json(_json(plain)).audience is Audience.ORDINARY
    for word in ("everybody", "", None, "Internal"):
        with pytest.raises(ValidationError):
            Principal.model_validate_json(_json(plain | {"audience": word}))


@pytest.mark.parametrize("act", ["release", "rollout"])
def test_who_acts_for_one_tenant_neither_releases_nor_rolls_out(act: str):
    with pytest.raises(ValidationError, match="does it for every tenant"):
        Operator.model_validate_json(_json({"name": "x", "tenant_id": "acme-jp", "may": [act]}))


def _json(document: dict[str, object]) -> str:
    return json.dumps(document)


def test_the_form_shows_every_condition_of_the_gate_and_each_number_of_a_passed_stage():
    decided = gate(report())
    by = Actor(name="sato", os_user="x", authz=None, reason="ten | of ten", at=AT)
    passed = Passed(
        cases=10, compared=412, untracked=0, missing=0, duplicate=0, uncompensated=0, checked=7, wrong=0,
        observed_seconds=3 * 86_400,
    )  # fmt: skip
    view = RolloutView(
        status="closed", said="no stage is open", stage=None, through=(), several_at_a_time=True, to_check=(),
        rate=CheckRate(one_in=10, incidents=0, cases=0, checks=7, wrong=0),
        history=(RolloutAct(act="pass", stage=1, releases={"returns": "returns-1"}, passed=passed, by=by),),
    )  # fmt: skip
    act = Act(
        1, "record", "returns", "returns-1", "ab" * 32, "build-7", AT, dump(decided), None, None, "sato", "x", {}, AT
    )
    page = form([act], view)
    for condition in decided.conditions:
        assert condition.said in page
    for rate in type(decided.measures.rates).model_fields:
        assert f"- {rate.replace('_', ' ')}: `" in page
    assert all(word in page for word in ("ab" * 32, "build-7", "policy-v12", "authz-v7", "3.0 days", "ten \\| of ten"))
    assert "| 10 | 412 | 0 | 0 | 0 | 0 | 7 | 0 | 3.0 days |" in page
    assert page == form([act], view)
    older = replace(act, gate={name: value for name, value in dump(decided).items() if name != "conditions"})
    assert "It passed. All that was said is kept, and is read by the program of build build-7." in form([older], view)
