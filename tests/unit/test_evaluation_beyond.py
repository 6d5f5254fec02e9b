"""The cases of the faults beyond the six stand beside the 120, and what they expect is held against the rules."""

from __future__ import annotations

from collections import Counter

import pytest

from host.domain.workflow import Language
from host.evaluation.plan import plan
from host.evaluation.proved import faults_show
from host.rights import read_authorization
from host.settings import Settings
from host.workflows.returns_messages import message
from shared_contracts.evaluation import AFTER_A_YES, OUTAGES, SIX, Category, FaultKind
from shared_contracts.evaluation_cases import case_set
from shared_contracts.returns import RulingOutcome
from tests.support.evaluation_set import BEYOND, CASES, ruled
from tests.support.evaluations import entry, give_fault, raw

each = pytest.mark.parametrize("case", BEYOND, ids=lambda case: case.id)
STATEMENTS = ("stops", "recovers", "within_permission")


def test_each_fault_beyond_the_six_has_two_cases_at_least_and_none_of_the_six_is_here_again():
    counted = Counter(case.fault.kind for case in BEYOND if case.fault is not None)
    assert counted.keys() == set(FaultKind) - SIX - AFTER_A_YES
    assert min(counted.values()) >= 2
    assert {case.category for case in BEYOND} == {Category.MIDWAY_FAULT}


def test_their_ids_and_orders_are_nobody_elses():
    both = (*CASES, *BEYOND)
    assert len({case.id for case in both}) == len(both)
    mine = [case.request["order_id"] for case in BEYOND]
    assert len(set(mine)) == len(mine)
    assert not {case.request["order_id"] for case in CASES} & set(mine)


@each
def test_each_begins_as_the_rules_have_it(case):
    due = RulingOutcome.ELIGIBLE if case.decision is None else RulingOutcome.APPROVAL
    assert ruled(case)[0] is due


@each
def test_what_the_customer_is_told_is_the_products_own_sentence(case):
    told = message(case.expected.state, case.expected.reason, Language.JA, {"return_id": "R-1"}, ())
    assert case.fault.told_ja in told


def test_what_hurts_all_is_kept_apart_from_what_hurts_one():
    settings = Settings()
    todo = plan(settings, read_authorization(settings.authz_file), case_set((*CASES, *BEYOND)), 8, 7, None)
    outages = {one.case.fault.kind for one in todo.cases if one.outage is not None and one.case.fault is not None}
    assert outages == set(OUTAGES)
    assert not any(one.by_clock for one in todo.cases if one.outage is not None)
    assert FaultKind.OLDER_CONTRACT not in {fault.kind for fault in todo.struck(at_mail=False).values()}
    assert todo.has(FaultKind.COMMIT_LOST)


def struck(**got):
    made = raw("fault-1", Category.MIDWAY_FAULT)
    give_fault(made, FaultKind.WORKER_KILLED)
    made["got"] |= got
    return made


def test_faults_show_three_things_and_say_which_case_breaks_each():
    good = struck()
    assert [(one.what, one.shown, one.ids) for one in faults_show([entry(good)])] == [
        ("stops", None, ()), ("recovers", True, ()), ("within_permission", True, ()),
    ]  # fmt: skip
    twice = struck(effects={"returns": 2, "notices": 1})
    stuck = struck(state="RETRY_WAIT")
    assert {one.what: one.ids for one in faults_show([entry(twice)])}["within_permission"] == ("fault-1",)
    assert {one.what: one.ids for one in faults_show([entry(stuck)])}["recovers"] == ("fault-1",)
    assert faults_show([entry(raw("normal-1"))]) == ()


def test_a_fault_that_did_not_happen_shows_nothing():
    unproved = struck()
    unproved["evidence"]["fired"] = 0
    assert {one.what: one.shown for one in faults_show([entry(unproved)])} == {
        "stops": None, "recovers": False, "within_permission": False,
    }  # fmt: skip
