"""What a kind needs in order to act by itself: each thing taken out in turn, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from host.domain.control import Control
from host.domain.principals import AuthorizationSet
from host.domain.suitability import MEANINGS, Condition, failing, is_update, updates
from host.rights import read_authorization
from host.workflows.catalogue import WORKFLOWS
from host.workflows.returns import RETURNS
from shared_contracts.tools import TOOLS
from tests.support.unfit import UNFIT, Without

AUTHZ = read_authorization(Path(__file__).parents[2] / "host" / "data" / "authz-v7.json")
READS = {state: tuple(n for n in names if not TOOLS[n].writes) for state, names in RETURNS.tools.items()}

# what stands for more than one thing
SEVERAL = {"whoever goes on by hand", "a second credential", "the success among the ends"}


def found(without: Without, known: AuthorizationSet = AUTHZ) -> dict[Condition, tuple[str, ...]]:
    every = failing(without.kind(), without.registry(), without.authorization(known))
    return {one.condition: one.why for one in every}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.release)
def test_what_is_carried_may_act_under_the_committed_authorization_set(workflow):
    assert failing(workflow, TOOLS, AUTHZ) == ()


@pytest.mark.parametrize("name", UNFIT)
def test_a_kind_without_one_thing_fails_the_condition_that_names_it(name):
    without = UNFIT[name]
    assert without.says in found(without)[without.condition]


@pytest.mark.parametrize("name", sorted(set(UNFIT) - SEVERAL))
def test_one_thing_missing_fails_one_condition_with_one_sentence(name):
    without = UNFIT[name]
    assert found(without) == {without.condition: (without.says,)}


def test_a_state_that_nobody_owns_and_that_hands_over_fails_for_both_reasons():
    assert set(found(UNFIT["whoever goes on by hand"])) == {Condition.STATES_UNDEFINED, Condition.NO_WAY_TO_WAIT}


def test_every_condition_is_broken_by_something_and_has_a_sentence_of_its_own():
    assert {without.condition for without in UNFIT.values()} == set(Condition) == set(MEANINGS)
    assert len(set(MEANINGS.values())) == len(Condition) == 5


def test_a_kind_that_never_ends_has_no_states_to_speak_of():
    bare = replace(RETURNS, ends={})
    assert "No state ends a case." in {one.condition: one.why for one in failing(bare, TOOLS, AUTHZ)}[
        Condition.STATES_UNDEFINED
    ]  # fmt: skip


def test_a_state_without_an_end_and_without_a_way_out_is_undefined():
    stuck = replace(RETURNS, ends={name: ends for name, ends in RETURNS.ends.items() if name != "EXPIRED"})
    (only,) = failing(stuck, TOOLS, AUTHZ)
    assert only.why == ("EXPIRED is no end, and no move leads out of it.",)


def test_something_must_lie_between_the_first_state_and_the_ends():
    rows = tuple(replace(row, source=("RECEIVED",), target="COMPLETED") for row in RETURNS.transitions[:1])
    short = replace(RETURNS, transitions=rows, ends={"COMPLETED": (Control.COMPLETED,)})
    why = {one.condition: one.why for one in failing(short, TOOLS, AUTHZ)}[Condition.STATES_UNDEFINED]
    assert why == ("No state lies between the first one and the ends.",)


def test_all_that_is_missing_is_named_at_once():
    bare = replace(TOOLS["create_return"], idempotency_key="", reconcile_with="", compensate_with="")
    (only,) = failing(RETURNS, {**TOOLS, "create_return": bare}, AUTHZ)
    assert len(only.why) == 3


def test_a_kind_that_asks_nobody_needs_no_approver():
    free = {name: replace(tool, approval_required_when="") for name, tool in TOOLS.items()}
    nobody = AUTHZ.model_copy(update={"approvers": ()})
    assert failing(replace(RETURNS, approval_state=None, approvable=None), free, nobody) == ()


def test_a_kind_that_only_reads_has_no_update_to_take_back_and_no_credential_to_part():
    reading = replace(RETURNS, tools=READS, effects=())
    assert updates(reading, TOOLS) == ()
    assert failing(reading, {name: tool for name, tool in TOOLS.items() if not tool.writes}, AUTHZ) == ()


def test_an_effect_without_a_contract_counts_as_an_update_and_any_other_unknown_name_does_not():
    assert is_update(RETURNS, {}, "create_return")
    assert not is_update(RETURNS, {}, "get_order")
    assert not is_update(RETURNS, TOOLS, "get_order")
