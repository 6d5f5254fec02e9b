"""What an evaluation refuses to begin, and what it does to which request, before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from host.evaluation.plan import Plan, UnfitError, plan
from host.rights import read_authorization
from host.settings import Settings
from shared_contracts.base import dump, parse
from shared_contracts.evaluation import AFTER_A_YES, SIX, EvaluationCase, FaultKind
from shared_contracts.evaluation_cases import case_set
from tests.support.evaluating import changed, chosen
from tests.support.evaluation_set import CASES

SETTINGS = Settings()
RIGHTS = read_authorization(SETTINGS.authz_file)


def planned(*cases: EvaluationCase, settings: Settings = SETTINGS) -> Plan:
    return plan(settings, RIGHTS, case_set(cases), 8, 7, None)


def refused(*cases: EvaluationCase, settings: Settings = SETTINGS) -> str:
    with pytest.raises(UnfitError) as error:
        planned(*cases, settings=settings)
    return "\n".join(error.value.problems)


def test_every_case_of_the_data_set_can_be_run_and_its_principal_is_of_its_tenant():
    todo = planned(*CASES)

    assert [one.case for one in todo.cases] == sorted(CASES, key=lambda case: case.id)
    assert all(one.principal.tenant_id == one.case.tenant for one in todo.cases)
    assert {one.principal.name for one in todo.cases} == {"returns-desk@acme-jp", "returns-desk@hoshi-jp"}
    assert todo.approvers() == {"tanaka", "suzuki", "mori"}


def test_each_fault_of_the_data_set_is_done_in_one_place_and_expiry_is_the_clocks():
    todo = planned(*CASES)
    wire, mail = todo.struck(at_mail=False), todo.struck(at_mail=True)

    assert {fault.kind for fault in mail.values()} == {FaultKind.NOTICE_FAILURE}
    elsewhere = {FaultKind.NOTICE_FAILURE, FaultKind.APPROVAL_EXPIRY}
    assert {fault.kind for fault in wire.values()} == (SIX | AFTER_A_YES) - elsewhere
    by_clock = {one.case.id for one in todo.cases if one.by_clock}
    assert by_clock == {"high-value-14", "high-value-15", "midway-fault-06"}
    assert {one.case.id for one in todo.cases if one.spends_a_key} == {"high-value-08"}
    assert {one.case.id for one in todo.cases if one.late} == {"midway-fault-06"}


@pytest.mark.parametrize("name", ["order_snapshot", "policy_version"])
def test_other_data_than_the_pinned_is_refused(name: str):
    said = refused(*chosen("normal-01"), settings=SETTINGS.model_copy(update={name: "another"}))
    assert f"{name} is another" in said


def test_other_rights_than_the_pinned_are_refused(tmp_path: Path):
    other = RIGHTS.model_copy(update={"version": "authz-v8"})
    with pytest.raises(UnfitError, match="authz_version is authz-v8"):
        plan(SETTINGS, other, case_set(tuple(chosen("normal-01"))), 8, 7, None)


def test_everything_that_is_wrong_with_the_cases_is_said_at_once():
    normal, high, faulty = chosen("normal-01", "high-value-01", "midway-fault-05")
    unread = changed(normal, id="a", request={**normal.request, "lines": []})
    stranger = changed(normal, id="b", tenant="nobody-jp")
    decided = changed(high, id="c", decision={"by": "nemo", "verdict": "approve"},
                      expected={**dump(high)["expected"], "approver": "nemo"})  # fmt: skip
    struck = parse(
        EvaluationCase, {**dump(faulty), "id": "d", "fault": {**dump(faulty)["fault"], "tool": "get_weather"}}
    )
    same = changed(normal, id="e", request={**normal.request, "order_id": faulty.request["order_id"]})

    said = refused(unread, stranger, decided, struck, same)

    for wanted in ("a: the case does not fit", "b: nobody of nobody-jp", "c: nemo is no approver",
                   "d: no get_weather is called", "e: its order is that of d"):  # fmt: skip
        assert wanted in said


def test_who_tries_to_decide_is_an_approver_of_somebody_and_who_has_it_undone_an_operator():
    denied, undone = chosen("high-value-12", "midway-fault-02")
    said = refused(
        changed(denied, decision={**dump(denied)["decision"], "tried_by": "nemo"}), changed(undone, undone_by="ito")
    )
    assert "high-value-12: nemo is no approver" in said
    assert "midway-fault-02: ito is no operator who decides reviews" in said


def test_nobody_decides_after_their_key_was_revoked_for_another_case():
    revoked, late = chosen("high-value-08", "midway-fault-06")
    decision, expected = dump(late)["decision"], dump(late)["expected"]
    moris = changed(late, decision={**decision, "by": "mori"}, expected={**expected, "approver": "mori"})
    assert planned(revoked, late)
    assert "midway-fault-06: mori decides it when their key is revoked" in refused(revoked, moris)
    assert planned(*chosen("high-value-07", "high-value-08"))  # the other one is over before
