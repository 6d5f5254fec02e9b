"""The gate: that it lets a good report pass, that each thing wrong makes it say no, and that it says for what."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.evaluation.codes import PROBLEMS, Code, Condition
from host.evaluation.documents import GateView
from host.evaluation.gate import CASES_MIN, COUNTS, gate, release_gate
from shared_contracts.base import dump, parse
from shared_contracts.evaluation import SIX, Category
from shared_contracts.evaluation_report import EvaluationReport
from tests.support.evaluations import RATES, cases, conditions, document, entry, raw, report, struck
from tests.support.planted import planted


def failed(view: GateView) -> set[Condition]:
    return {one.condition for one in view.conditions if not one.held}


def refused(view: GateView) -> set[str]:
    return {one.code for one in view.refused}


def replaced(made: list[dict[str, Any]], by: dict[str, Any]) -> list[dict[str, Any]]:
    """Put a case in the place of one of its category, so that the counts stay."""
    at = next(n for n, one in enumerate(made) if one["category"] == by["category"])
    if by["fault"] is not None:
        by["fault"]["kind"] = made[at]["fault"]["kind"]
    return [*made[:at], by, *made[at + 1 :]]


def compared(**changes: Any) -> dict[str, Any]:
    return {**document([])["compared"], **changes}


def test_a_report_in_which_all_is_well_passes_and_names_all_six_conditions():
    view = gate(report())
    assert (view.passed, view.said) == (True, "passed")
    assert [one.condition for one in view.conditions] == list(Condition)
    assert all(one.held and one.said and not one.ids for one in view.conditions)
    assert (view.refused, view.severe, view.unmatched) == ((), (), ())
    assert len(Condition) == 6
    assert sum(COUNTS.values()) == CASES_MIN == 120


@pytest.mark.parametrize("code", Code)
def test_one_case_with_one_thing_wrong_turns_the_gate_red_for_that_reason_alone(code):
    view = gate(report(replaced(cases(), planted(code))))
    row = PROBLEMS[code]
    assert not view.passed
    assert failed(view) == ({row.breaks} if row.breaks is not None else set())
    assert [one.code for one in view.severe] == ([code] if row.severe else [])
    assert [(one.id, [problem.code for problem in one.problems]) for one in view.unmatched] == [("planted", [code])]
    assert refused(view) == ({"fault_not_proved"} if code is Code.FAULT_UNPROVED else set())
    assert all(one.ids == ("planted",) for one in view.conditions if not one.held)


@pytest.mark.parametrize("code", Code)
def test_a_small_set_with_the_same_defect_is_red_for_it_and_without_it_for_its_count_alone(code):
    category = Category(planted(code)["category"])
    without, with_it = gate(report([raw("planted", category)])), gate(report([planted(code)]))
    assert refused(without) == {"too_few_cases"}
    assert (failed(without), without.severe, without.unmatched) == (set(), (), ())
    assert {problem.code for one in with_it.unmatched for problem in one.problems} == {code}
    assert refused(with_it) - {"fault_not_proved"} == {"too_few_cases"}


@given(st.lists(st.sampled_from(Code), max_size=4))
def test_whatever_is_planted_the_gate_names_all_of_it_and_nothing_else(codes):
    made = [raw(f"fine-{n}") for n in range(3)]
    made += [planted(code) | {"id": f"planted-{n}"} for n, code in enumerate(codes)]
    view = gate(report(made))
    assert failed(view) == {PROBLEMS[code].breaks for code in codes} - {None}
    assert sorted(one.code for one in view.severe) == sorted(code for code in codes if PROBLEMS[code].severe)
    assert sorted(p.code for one in view.unmatched for p in one.problems) == sorted(codes)
    assert view.measures.rates.matched.of == 3


def test_the_first_line_leaves_no_reason_out():
    said = gate(report([planted(Code.FOREIGN_ORDER)])).said
    for reason in ("too_few_cases", "foreign_order_processed", "nothing_out_of_permission", "1 of the cases"):
        assert reason in said


def test_one_severe_incident_fails_119_perfect_cases():
    view = gate(report(replaced(cases(), planted(Code.FOREIGN_ORDER))))
    assert (view.measures.rates.matched.of, view.measures.rates.matched.value) == (119, 99.2)
    assert not view.passed
    assert "severe" in view.said


@pytest.mark.parametrize(
    ("found", "condition"),
    [
        ("untracked", Condition.TRACKED),
        ("missing", Condition.TRACKED),
        ("duplicate", Condition.SINGLE),
    ],
)
def test_what_the_three_way_comparison_found_breaks_a_condition_and_stands_there_by_id(found, condition):
    view = gate(report(compared=compared(**{found: ["jti-1"]})))
    assert (view.passed, failed(view)) == (False, {condition})
    assert [one.ids for one in view.conditions if not one.held] == [("jti-1",)]


def test_calls_of_tokens_that_were_issued_to_others_are_nothing_to_complain_of():
    assert gate(report(compared=compared(external=3))).passed


def stop(cause: str, workflow: str | None) -> dict[str, Any]:
    return {"cause": cause, "reason": "it was too much", "workflow_id": workflow}


@pytest.mark.parametrize(
    ("cause", "of", "named"),
    [
        ("call_limit", "normal-1", "call_limit {}"),
        ("duplicate_return", "asking", "duplicate_return {}"),
        ("queue_too_long", None, "queue_too_long it was too much"),
        ("call_limit", None, "call_limit it was too much"),
    ],
    ids=["of a case that has calls enough", "of another finding", "of none", "of no case"],
)
def test_a_stop_that_no_case_asks_for_makes_the_run_no_evidence(cause: str, of: str | None, named: str):
    made = asking_for_a_stop()
    workflow = next((one["got"]["workflow_ids"][0] for one in made if one["id"] == of), None)
    view = gate(report(made, stops=[stop(cause, workflow)]))
    assert not view.passed
    assert [(one.code, one.ids) for one in view.refused] == [("stop_unasked", (named.format(workflow),))]


def test_a_stop_that_its_case_asks_for_is_as_the_rules_have_it_and_one_that_stays_is_not():
    made = asking_for_a_stop()
    asked = stop("call_limit", made[0]["got"]["workflow_ids"][0])
    assert gate(report(made, stops=[asked])).passed
    view = gate(report(made, stops=[asked], stopped=["new_work", "updates"]))
    assert (view.passed, [one.ids for one in view.refused]) == (False, [("new_work", "updates")])
    assert "stop_engaged" in view.said


def asking_for_a_stop() -> list[dict[str, Any]]:
    """Let one case need more calls than the limit gives, and end as the rules have it."""
    made = cases()
    one = next(one for one in made if one["category"] == "steering") | {"id": "asking"}
    for side in (one["expected"], one["got"]):
        side["reason"] = "limit"
    return [one, *(other for other in made if other["got"]["workflow_ids"] != one["got"]["workflow_ids"])]


def test_a_run_of_faults_passes_by_its_own_conditions_and_no_release_by_it():
    made = struck()
    view = gate(report(made, scope="faults"))
    assert (view.passed, view.refused, view.scope) == (True, (), "faults")
    assert view.said == "passed (a run of faults alone: no pre-production evaluation, no release passes by it)"
    assert {one.what: one.shown for one in view.faults_show}["recovers"] is True
    assert refused(gate(report(made))) == {"too_few_cases"}, "taken for the whole it is a part"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda made: made.pop(), "too_few_cases"),
        (lambda made: made[0]["evidence"].update(fired=0), "fault_not_proved"),
        (lambda made: made[0]["got"].update(state="REJECTED"), None),
        (lambda made: made[0]["got"]["effects"].update(returns=2), None),
    ],
    ids=["a fault without a case", "a fault that did not fire", "another end", "a second return"],
)
def test_a_run_of_faults_is_red_for_a_fault_that_is_missing_unproved_or_ends_otherwise(change, code: str | None):
    made = struck()
    change(made)
    view = gate(report(made, scope="faults"))
    assert (view.passed, refused(view)) == (False, set() if code is None else {code})
    for found in ("untracked", "missing", "duplicate"):
        assert not gate(report(struck(), scope="faults", compared=compared(**{found: ["jti-1"]}))).passed


@pytest.mark.parametrize("scope", ["without_updates", "retail"])
def test_what_is_not_the_whole_passes_by_its_cases_alone_and_says_so(scope: str):
    view = gate(report([raw("one")], scope=scope))
    assert (view.passed, "no pre-production evaluation" in view.said) == (True, True)
    assert refused(release_gate(report([raw("one")], scope=scope), unsigned=None)) == {"not_pre_production"}
    assert not gate(report([planted(Code.DUPLICATE_RETURN)], scope=scope)).passed
    assert refused(gate(report([], scope=scope))) >= {"too_few_cases"}


@pytest.mark.parametrize("missing", [1, 5])
def test_fewer_than_120_cases_are_refused(missing):
    view = gate(report(cases()[missing:]))
    assert (view.passed, refused(view)) == (False, {"too_few_cases"})
    assert f"normal {35 - missing} of 35" in view.refused[0].said


def test_120_cases_of_one_category_are_not_the_set():
    view = gate(report([raw(f"normal-{n}") for n in range(120)]))
    assert refused(view) == {"too_few_cases"}
    assert "foreign_order 0 of 10" in view.refused[0].said


def test_a_category_that_is_short_is_not_made_up_for_by_another():
    made = cases()
    view = gate(report([*made[:-1], raw("normal-36")]))
    assert (view.passed, refused(view)) == (False, {"too_few_cases"})
    assert view.refused[0].said == "120 cases of 120: steering 3 of 4"


def test_a_set_in_which_a_fault_has_no_case_is_too_small():
    made = cases()
    for one in made:
        if one["fault"] is not None and one["fault"]["kind"] == "disconnect":
            one["fault"]["kind"] = "timeout"
    assert refused(gate(report(made))) == {"too_few_cases"}
    assert {one["fault"]["kind"] for one in cases() if one["fault"]} == SIX


def test_the_same_case_again_does_not_make_a_report_longer():
    made = cases()
    view = gate(report([*made[:-1], made[-2]]))
    assert "case_repeated" in refused(view)
    assert [one.ids for one in view.refused if one.code == "case_repeated"] == [(made[-2]["id"],)]


def test_a_run_that_cost_nothing_is_refused_and_every_component_without_a_price_named():
    free = dict.fromkeys(RATES, 0.0) | {"currency": "JPY", "basis": "given"}
    view = gate(report(rates=free))
    assert refused(view) == {"cost_per_item_zero", "cost_component_missing"}
    named = next(one.ids for one in view.refused if one.code == "cost_component_missing")
    assert named == ("tools", "retries", "approvers", "compensation")


def test_prices_of_next_to_nothing_make_no_cost():
    little = dict.fromkeys(RATES, 1e-9) | {"currency": "JPY", "basis": "given"}
    assert refused(gate(report(rates=little))) == {"cost_per_item_zero"}


def test_one_missing_component_is_refused():
    view = gate(report(rates=RATES | {"compensation_call": 0.0}))
    assert [(one.code, one.ids) for one in view.refused] == [("cost_component_missing", ("compensation",))]


def test_a_fault_without_evidence_is_refused_by_its_case():
    made = cases()
    at = next(n for n, one in enumerate(made) if one["fault"] is not None)
    made[at]["evidence"] = None
    view = gate(report(made))
    assert [(one.code, one.ids) for one in view.refused] == [("fault_not_proved", (made[at]["id"],))]


def test_a_comparison_that_compared_nothing_proves_nothing():
    assert refused(gate(report(compared=compared(compared=0)))) == {"nothing_compared"}


def test_a_report_that_leaves_out_what_is_wrong_with_a_case_is_found_out():
    made = [dump(entry(one)) for one in replaced(cases(), planted(Code.DUPLICATE_RETURN))]
    for one in made:
        one["problems"] = []
    view = gate(parse(EvaluationReport, document(made)))
    assert refused(view) == {"scored_otherwise"}
    assert [one.code for one in view.severe] == ["duplicate_return"]
    assert failed(view) == {Condition.SINGLE}


def test_a_report_that_invents_what_is_wrong_is_found_out_too():
    made = [dump(entry(one)) for one in cases()]
    made[0]["problems"] = [{"code": "anything", "severe": True, "said": "no"}]
    view = gate(parse(EvaluationReport, document(made)))
    assert (refused(view), view.unmatched) == ({"scored_otherwise"}, ())


def test_three_conclusions_stand_apart_and_without_a_model_nothing_is_said_of_any():
    control, tools, model = gate(report()).claims
    assert (control.subject, tools.subject, model.subject) == ("control_plane", "tools", "model")
    assert (control.code_exists.shown, control.contract_test_passes.shown, control.live_system_tried.shown) == (
        True, None, True,
    )  # fmt: skip
    assert tools.contract_test_passes.shown is None
    for shown in (model.code_exists, model.contract_test_passes, model.live_system_tried):
        assert shown.shown is False
        assert "nothing here says anything about any model" in shown.said


def tool_tested(tool: str = "create_return", **changes: Any) -> dict[str, Any]:
    return {"tool": tool, "version": "1", "build": "0.1.0", "passed": 15, "of": 15} | changes


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, None),
        ({"passed": 14}, "contract_test_failed"),
        ({"build": "0.2.0"}, "contract_test_of_another_version"),
        ({"version": "2"}, "contract_test_of_another_version"),
    ],
)
def test_contract_tests_are_shown_and_gate_the_report_by_their_result_and_their_version(changes, code):
    view = gate(report(contract_tests=[tool_tested(**changes), tool_tested("cancel_return")]))
    shown = view.claims[1].contract_test_passes
    assert shown.shown is (code is None)
    assert f"{changes.get('passed', 15) + 15} of 30" in shown.said
    assert [(one.code, one.ids) for one in view.refused] == ([] if code is None else [(code, ("create_return",))])
    assert view.passed is (code is None)


@pytest.mark.parametrize(("calls", "tried"), [(0, False), (4, True)])
def test_a_model_is_tried_when_it_was_asked_and_not_when_it_was_named(calls, tried):
    made = cases()
    made[0]["got"]["model_calls"] = calls
    view = gate(report(made, conditions=conditions(model="some-model"), rates=RATES | {"model_call": 1.0}))
    assert view.claims[2].live_system_tried.shown is tried


def test_the_versions_of_what_was_evaluated_stand_beside_the_answer():
    assert gate(report()).versions == report().conditions


def on(ident: str, **changes: Any) -> list[dict[str, Any]]:
    """Change what was seen of one case."""
    made = cases()
    next(one for one in made if one["id"] == ident)["got"].update(changes)
    return made


@pytest.mark.parametrize(
    "seen",
    [
        {"reached": []},
        {"reached": ["RECEIVED"]},
        {"calls": 0},
        {"calls": 3},
        {"retries": 1},
        {"effects": {"returns": 0, "notices": 0}},
    ],
)
def test_a_case_that_looks_well_by_what_no_run_leaves_is_not_believed(seen):
    made = on("normal-1", **seen)
    if "effects" in seen:
        one = next(one for one in made if one["id"] == "normal-1")
        one["expected"]["effects"], one["has_side_effect"] = seen["effects"], False
    view = gate(report(made))
    assert (view.passed, refused(view), view.unmatched) == (False, {"contradicts_itself"}, ())
    assert [one.ids for one in view.refused] == [("normal-1",)]


@pytest.mark.parametrize(
    "flags",
    [
        {"automatable": False}, {"has_side_effect": False}, {"needs_compensation": True},
        {"category": "midway_fault"},
    ],
)  # fmt: skip
def test_a_case_whose_own_flags_belie_what_it_expects_is_not_believed(flags):
    made = [*cases(), raw("more") | flags]
    assert refused(gate(report(made))) == {"contradicts_itself"}


def test_a_case_under_another_name_does_not_make_a_report_longer():
    made = cases()
    copy = {**made[0], "id": "normal-99"}
    view = gate(report([*made[1:], copy, made[1] | {"id": "normal-98"}]))
    assert [(one.code, one.ids) for one in view.refused] == [("case_repeated", ("normal-2", "normal-98"))]


def test_what_was_seen_of_one_fault_proves_no_second():
    made = cases()
    struck = [one for one in made if one["fault"] is not None and one["fault"]["kind"] == "timeout"]
    struck[1]["evidence"] = dict(struck[0]["evidence"])
    view = gate(report(made))
    assert [(one.code, set(one.ids)) for one in view.refused] == [("case_repeated", {one["id"] for one in struck})]


def test_a_comparison_of_fewer_rows_than_the_cases_have_requests_and_effects_is_not_believed():
    assert gate(report(compared=compared(compared=2000))).passed
    assert refused(gate(report(compared=compared(compared=120)))) == {"compared_too_little"}
