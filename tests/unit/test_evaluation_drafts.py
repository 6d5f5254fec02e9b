"""With every update removed a case that would have acted ends with a person and nothing done, and no other changes."""

from __future__ import annotations

import pytest

from host.domain.workflow import Language
from host.workflows.returns_messages import message
from shared_contracts.evaluation import Category, Effects
from shared_contracts.evaluation_cases import case_set
from shared_contracts.evaluation_drafts import REASON, UPDATES, without_updates
from shared_contracts.returns import RulingOutcome
from tests.support.evaluation_set import CASES, NOT_THEIRS, ruled

DRAFTED = {case.id: case for case in without_updates(case_set(CASES)).cases}
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)


@each
def test_who_would_have_acted_by_the_rules_is_a_persons_and_the_others_end_as_before(case):
    drafted = DRAFTED[case.id]
    acts = case.category not in NOT_THEIRS and ruled(case)[0] in {RulingOutcome.ELIGIBLE, RulingOutcome.APPROVAL}
    assert drafted.request == case.request
    if not acts:
        assert drafted == case
        return
    assert (drafted.expected.state, drafted.expected.reason) == ("NEEDS_REVIEW", REASON)
    assert drafted.expected.effects == Effects(returns=0, notices=0)
    assert drafted.expected.path == ("get_order", "check_return_policy")
    assert (drafted.decision, drafted.needs_human) == (None, True)


def test_a_fault_stays_where_it_is_done_to_a_read_and_its_customer_is_told_of_a_person():
    left = {case.id: case for case in DRAFTED.values() if case.fault is not None}
    assert left.keys() == {"midway-fault-01", "midway-fault-04"}
    for case in left.values():
        assert case.category is Category.MIDWAY_FAULT
        assert case.fault is not None
        assert case.fault.told_ja in message("NEEDS_REVIEW", REASON, Language.JA, {}, ())


def test_no_update_is_expected_of_any():
    assert {"create_return", "send_return_notice"} <= UPDATES
    assert not any(UPDATES & set(case.expected.path) for case in DRAFTED.values())
