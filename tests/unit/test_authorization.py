"""The rules of authorization: one example each, and what holds over all facts there can be."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.domain.authorization import (
    ALERTED,
    NO_RULE,
    RULES,
    TOLD_TO_PLANNER,
    Decision,
    Facts,
    Verdict,
    decide,
    effective_tools,
)
from host.domain.reasons import HANDOVER

READ = Facts(
    tool_name="get_order", tool_known=True, writes=False, draft_only=False, updates_stopped=False, reads_stopped=False,
    in_catalogue=True, in_state=True, available=True, same_tenant=True, on_resource=True, bound_arguments_hold=True,
    scope_held=True, budget_left=True, repeated=False, needs_approval=False, approved=False,
)  # fmt: skip
WRITE = replace(READ, tool_name="create_return", writes=True)
ANY = st.builds(Facts, tool_name=st.just("a_tool"), **{f.name: st.booleans() for f in fields(Facts)[1:]})

EXAMPLES: tuple[tuple[str, Verdict, Facts], ...] = (
    ("draft_only", Verdict.DENY, replace(WRITE, draft_only=True)),
    ("unknown_tool", Verdict.DENY, replace(READ, tool_known=False)),
    ("not_in_catalogue", Verdict.DENY, replace(READ, in_catalogue=False)),
    ("tool_not_in_state", Verdict.DENY, replace(READ, in_state=False)),
    ("foreign_tenant", Verdict.DENY, replace(READ, same_tenant=False)),
    ("foreign_resource", Verdict.DENY, replace(READ, on_resource=False)),
    ("foreign_arguments", Verdict.DENY, replace(WRITE, bound_arguments_hold=False)),
    ("scope_missing", Verdict.DENY, replace(WRITE, scope_held=False)),
    ("repeated_action", Verdict.DENY, replace(READ, repeated=True)),
    ("limit", Verdict.DENY, replace(READ, budget_left=False)),
    ("reads_stopped", Verdict.HALT, replace(READ, reads_stopped=True)),
    ("updates_stopped", Verdict.HALT, replace(WRITE, updates_stopped=True)),
    ("tool_unavailable", Verdict.DENY, replace(READ, available=False)),
    ("approval_required", Verdict.REQUIRE_APPROVAL, replace(WRITE, needs_approval=True)),
    ("write_allowed", Verdict.ALLOW, replace(WRITE, needs_approval=True, approved=True)),
    ("write_allowed", Verdict.ALLOW, WRITE),
    ("read_allowed", Verdict.ALLOW, READ),
)


@pytest.mark.parametrize(("reason", "verdict", "facts"), EXAMPLES, ids=lambda value: value if value in HANDOVER else "")
def test_a_rule_decides_the_facts_that_differ_in_its_one_point(reason, verdict, facts):
    assert decide(facts) == Decision(verdict, reason)


def test_every_rule_has_an_example_and_a_reason_of_its_own():
    reasons = [rule.reason for rule in RULES]
    assert {reason for reason, *_ in EXAMPLES} == set(reasons)
    assert len(set(reasons)) == len(reasons)


def test_facts_have_no_default_so_that_a_forgotten_one_is_no_permission():
    with pytest.raises(TypeError):
        Facts(tool_name="get_order", tool_known=True)


def test_where_no_rule_applies_the_answer_is_no():
    assert NO_RULE.verdict is Verdict.DENY


def test_denials_stand_before_every_permission():
    verdicts = [rule.verdict for rule in RULES]
    first_yes = verdicts.index(Verdict.ALLOW)
    assert Verdict.DENY not in verdicts[first_yes:]
    assert Verdict.HALT not in verdicts[first_yes:]
    assert Verdict.REQUIRE_APPROVAL not in verdicts[first_yes:]


@given(ANY)
def test_nothing_passes_without_scope_catalogue_state_tenant_resource_budget_and_a_tool_that_is_there(facts):
    needed = (
        facts.tool_known, facts.in_catalogue, facts.in_state, facts.same_tenant, facts.on_resource,
        facts.bound_arguments_hold, facts.scope_held, facts.budget_left, facts.available, not facts.repeated,
    )  # fmt: skip
    allowed = decide(facts).verdict is Verdict.ALLOW
    assert not allowed or all(needed)


@given(ANY)
def test_nothing_that_needs_an_approval_passes_without_one(facts):
    assert not (decide(facts).verdict is Verdict.ALLOW and facts.needs_approval and not facts.approved)


@given(ANY)
def test_what_is_only_drafted_never_passes_whatever_else_holds(facts):
    assert decide(replace(facts, draft_only=True)) == Decision(Verdict.DENY, "draft_only")


@given(ANY)
def test_a_stop_outranks_every_permission(facts):
    stopped = facts.reads_stopped or (facts.writes and facts.updates_stopped)
    assert not stopped or decide(facts).verdict in {Verdict.HALT, Verdict.DENY}


@given(ANY)
def test_an_approval_never_outranks_a_denial(facts):
    without = decide(replace(facts, approved=False))
    if without.verdict is Verdict.DENY:
        assert decide(replace(facts, approved=True)) == without


@given(ANY)
def test_a_decision_can_be_replayed_from_what_is_stored(facts):
    assert decide(Facts(**facts.as_record())) == decide(facts)


REVOKED: dict[str, dict[str, bool]] = {
    "foreign_tenant": {"same_tenant": False},
    "foreign_resource": {"on_resource": False},
    "tool_not_in_state": {"in_state": False},
    "not_in_catalogue": {"in_catalogue": False},
    "limit": {"budget_left": False},
    "scope_missing": {"scope_held": False},
}


@pytest.mark.parametrize("reason", REVOKED)
def test_what_was_revoked_since_the_offer_is_denied_for_its_own_reason(reason):
    assert decide(replace(WRITE, **REVOKED[reason])) == Decision(Verdict.DENY, reason)


def test_a_planner_is_told_only_what_it_can_mend_and_never_of_anothers_objects():
    assert {"unknown_tool", "tool_not_in_state", "repeated_action"} == TOLD_TO_PLANNER
    assert not TOLD_TO_PLANNER & ALERTED
    assert {r.reason for r in RULES} >= ALERTED == {
        "foreign_tenant", "foreign_resource", "foreign_arguments", "scope_missing", "not_in_catalogue",
    }  # fmt: skip


def test_every_denial_that_ends_a_case_has_a_class_for_the_person_who_gets_it():
    ending = {r.reason for r in RULES if r.verdict is Verdict.DENY} - TOLD_TO_PLANNER | {NO_RULE.reason}
    assert ending <= HANDOVER.keys()


NAMES = st.frozensets(st.sampled_from(["a", "b", "c", "d", "e"]))


@given(st.lists(NAMES, min_size=1, max_size=5))
def test_effective_tools_are_what_every_factor_grants(factors):
    assert effective_tools(*factors) == {n for n in "abcde" if all(n in factor for factor in factors)}


@given(st.lists(NAMES, min_size=1, max_size=5))
def test_an_empty_factor_leaves_no_tool_and_never_all(factors):
    for place in range(len(factors) + 1):
        assert effective_tools(*factors[:place], frozenset(), *factors[place:]) == frozenset()


def test_no_factor_at_all_leaves_nothing():
    assert effective_tools() == frozenset()


def test_each_factor_can_remove_a_tool():
    full = frozenset("abc")
    for place, name in combinations(range(4), 2):
        factors = [full] * 5
        factors[place] = full - {"abc"[name % 3]}
        assert effective_tools(*factors) == factors[place]
