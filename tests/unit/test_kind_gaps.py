"""A kind in whose states the engine would be at a loss is carried by no program: it is refused before a case comes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from host.domain.control import Actor
from host.domain.gaps import SAID_OF_EVERY_KIND, IncompleteKindError, complete, gaps
from host.workflows.catalogue import WORKFLOWS
from host.workflows.claims import CLAIMS, S


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.release)
def test_a_kind_that_is_carried_has_no_gap(workflow):
    assert list(gaps(workflow)) == []
    assert complete(workflow) == (workflow,)


def test_a_state_that_offers_nothing_is_a_gap_and_so_is_one_that_was_forgotten():
    rest = {state: tools for state, tools in CLAIMS.tools.items() if state != S.DOCUMENTS_LISTED}
    assert list(gaps(replace(CLAIMS, tools={**rest, S.RULES_READ: ()}))) == [
        "RULES_READ offers no tool, so no planner is asked in it",
        "DOCUMENTS_LISTED offers no tool, so no planner is asked in it",
    ]


@pytest.mark.parametrize("word", SAID_OF_EVERY_KIND)
def test_a_state_without_a_move_on_what_the_engine_may_say_is_a_gap(word):
    rest = replace(CLAIMS, transitions=tuple(row for row in CLAIMS.transitions if row.on != word))
    lost = (S.RECEIVED, S.CASE_READ, S.RULES_READ, S.DOCUMENTS_LISTED, S.RETRY_WAIT)
    assert set(gaps(rest)) == {f"{state} has no move on {word}" for state in lost}


def test_a_move_that_a_timer_makes_is_none_of_the_engines():
    rows = tuple(replace(row, by=(Actor.TIMER,)) if row.on == "denied" else row for row in CLAIMS.transitions)
    assert "RECEIVED has no move on denied" in gaps(replace(CLAIMS, transitions=rows))


def test_the_refusal_names_the_kind_and_every_gap():
    with pytest.raises(
        IncompleteKindError, match=r"the kind claims is not complete: RECEIVED offers .*; CASE_READ offers"
    ):
        complete(*WORKFLOWS, replace(CLAIMS, tools={}))
