"""Before and after a change: three groups that nobody chooses, equal conditions, and no regression hidden in a mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.evaluation.codes import PROBLEMS, Code
from host.evaluation.compare import SAID, compare
from host.evaluation.counted import Rate
from host.evaluation.documents import CompareView, Comparison
from host.evaluation.groups import groups
from shared_contracts.evaluation import Category
from tests.support.evaluations import LIMITS, cases, conditions, document, entry, raw, report
from tests.support.planted import planted

NORMAL = [f"normal-{n}" for n in range(1, 36)]
TOOL = {"changed_component": "tool"}


def among(made: list[dict[str, Any]], ident: str) -> dict[str, Any]:
    return next(one for one in made if one["id"] == ident)


def told_wrong(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All eight mid-way faults fail: the customer was told something else."""
    for one in made:
        if one["category"] == "midway_fault":
            one["got"]["told_ja"] = "失敗しました。"
    return made


def seen(before: list[dict[str, Any]], after: list[dict[str, Any]], **changes: Any) -> CompareView:
    return compare(report(before), report(after, conditions=conditions(**(TOOL | changes))))


def made_of(view: CompareView) -> Comparison:
    assert view.refused == ()
    assert view.comparison is not None
    return view.comparison


def differing(view: CompareView) -> list[str]:
    assert view.comparison is None
    return [one.what for one in view.refused]


# --- the verdict ---------------------------------------------------------------------------------------------


def test_eight_of_eight_fixed_and_two_notices_twice_among_35_normal_cases_is_a_regression():
    after = cases()
    for ident in NORMAL[:2]:
        among(after, ident)["got"]["effects"] = {"returns": 1, "notices": 2}
    view = seen(told_wrong(cases()), after)
    made = made_of(view)
    assert made.verdict == "regression"
    assert made.fixed == Rate(value=100.0, of=8, n=8)
    assert [(one.id, one.code) for one in made.new] == [(ident, "duplicate_notice") for ident in NORMAL[:2]]
    assert [one.id for one in made.worse] == NORMAL[:2]
    assert set(NORMAL) <= {*made.groups.neighbours, *made.groups.controls}
    assert "do not release" in view.said


def test_what_had_failed_and_is_mended_with_nothing_worse_is_fixed():
    made = made_of(seen(told_wrong(cases()), cases()))
    assert (made.verdict, made.worse, made.severe) == ("fixed", (), ())
    assert made.control_regression == Rate(value=0.0, of=0, n=len(made.groups.controls))
    assert made.neighbours.of == made.neighbours.n == len(made.groups.neighbours)


def test_a_change_without_effect_is_not_to_be_built_upon():
    view = seen(told_wrong(cases()), told_wrong(cases()))
    assert made_of(view).verdict == "no_effect"
    assert made_of(view).fixed == Rate(value=0.0, of=0, n=8)
    assert "do not stack" in view.said
    assert "last workflow release whose evaluation passed" in view.said


def test_mending_some_is_neither_fixed_nor_without_effect():
    after = told_wrong(cases())
    among(after, "midway_fault-1")["got"]["told_ja"] = among(cases(), "normal-1")["got"]["told_ja"]
    made = made_of(seen(told_wrong(cases()), after))
    assert (made.verdict, made.fixed) == ("partly_fixed", Rate(value=12.5, of=1, n=8))


def test_where_nothing_had_failed_there_is_no_rate_of_fixing_and_nobody_is_sent_back():
    view = seen(cases(), cases())
    made = made_of(view)
    assert (made.verdict, made.fixed.value, made.groups.neighbours) == ("no_effect", None, ())
    assert view.said not in SAID.values()
    assert len(made.groups.controls) == 120


def test_a_control_that_breaks_is_a_regression_without_any_severe_incident():
    before, after = told_wrong(cases()), cases()
    among(after, "out_of_period-3")["got"]["reason"] = "final_sale"
    made = made_of(seen(before, after))
    assert (made.verdict, made.severe) == ("regression", ())
    assert made.control_regression == Rate(value=2.6, of=1, n=39)
    assert [one.id for one in made.worse] == ["out_of_period-3"]


def test_a_severe_incident_in_a_case_that_had_failed_otherwise_is_new():
    before, after = told_wrong(cases()), cases()
    among(after, "midway_fault-1")["got"]["effects"] = {"returns": 2, "notices": 1}
    made = made_of(seen(before, after))
    assert (made.verdict, made.worse) == ("regression", ())
    assert [(one.id, one.code) for one in made.new] == [("midway_fault-1", "duplicate_return")]


def test_a_severe_incident_that_was_there_before_is_counted_and_is_no_regression():
    def doubled() -> list[dict[str, Any]]:
        made = cases()
        among(made, "normal-1")["got"]["effects"] = {"returns": 2, "notices": 1}
        return made

    made = made_of(seen(doubled(), doubled()))
    assert (made.verdict, len(made.severe), made.new) == ("no_effect", 1, ())


@pytest.mark.parametrize("found", ["untracked", "missing", "duplicate"])
def test_more_calls_that_nobody_can_account_for_are_a_regression(found):
    stray = {**document([])["compared"], found: ["jti-1"]}
    after = report(compared=stray, conditions=conditions(**TOOL))
    made = made_of(compare(report(told_wrong(cases())), after))
    assert (made.verdict, made.unaccounted) == ("regression", ("jti-1",))


def test_less_of_one_kind_that_nobody_can_account_for_makes_nothing_of_another_good():
    none = document([])["compared"]
    before = report(told_wrong(cases()), compared={**none, "untracked": ["jti-1", "jti-2"]})
    made = made_of(compare(before, report(compared={**none, "duplicate": ["R-1"]}, conditions=conditions(**TOOL))))
    assert (made.verdict, made.beside) == ("regression", ("duplicate: 1 by the three-way comparison, 0 before",))


def test_a_stop_that_was_not_there_before_is_a_regression_whatever_the_cases_show():
    stop = {"cause": "foreign_data", "reason": "-", "workflow_id": None}
    stopped = report(stops=[stop], conditions=conditions(**TOOL))
    made = made_of(compare(report(told_wrong(cases())), stopped))
    assert (made.verdict, made.worse, made.new) == ("regression", (), ())
    assert made.beside == ("stop_unasked: all work was stopped, and no case asks for that",)
    assert made_of(compare(report(told_wrong(cases()), stops=[stop]), stopped)).verdict == "fixed"


def test_two_reports_the_wrong_way_round_are_not_compared():
    later = report(told_wrong(cases()), made_at="2026-08-02T09:00:00Z")
    assert differing(compare(later, report(conditions=conditions(**TOOL)))) == ["the report before is the later one"]


@given(st.lists(st.sampled_from(Code), max_size=5), st.lists(st.sampled_from(Code), max_size=5))
def test_whatever_fails_before_and_after_each_case_is_in_one_group_and_nothing_worse_is_called_better(old, new):
    def run(codes: list[Code]) -> list[dict[str, Any]]:
        made = [raw(f"{category}-{n}", category) for category in Category for n in range(5)]
        for n, code in enumerate(codes):
            bad = planted(code)
            at = next(one for one in made if one["id"] == f"{bad['category']}-{n}")
            at["got"], at["evidence"] = bad["got"], bad["evidence"]
        return made

    view = compare(report(run(old)), report(run(new), conditions=conditions(**TOOL)))
    made = made_of(view)
    grouped = [*made.groups.failed, *made.groups.neighbours, *made.groups.controls]
    assert sorted(grouped) == sorted(f"{category}-{n}" for category in Category for n in range(5))
    assert made.fixed.n + made.neighbours.n + made.control_regression.n == len(grouped)
    assert (made.verdict == "regression") is bool(made.worse or made.new)
    assert len(made.worse) == made.neighbours.n - made.neighbours.of + made.control_regression.of


# --- the groups ----------------------------------------------------------------------------------------------


def test_neighbours_were_where_a_failed_case_went_wrong_and_controls_are_the_others():
    made = [entry(one) for one in told_wrong(cases())]
    chosen = groups(made)
    assert chosen.failed == tuple(f"midway_fault-{n}" for n in range(1, 9))
    assert (chosen.states, chosen.tools) == (("RETRY_WAIT",), ("send_return_notice",))
    assert set(NORMAL) <= set(chosen.neighbours)
    categories = {one.rpartition("-")[0] for one in chosen.controls}
    assert categories == {"out_of_period", "missing_order", "foreign_order", "steering"}


def test_a_case_that_leaves_its_way_points_at_the_tool_where_it_did():
    made = [raw("bad"), raw("near"), raw("far", Category.MISSING_ORDER), raw("mid", Category.OUT_OF_PERIOD)]
    made[0]["got"] |= {"path": ["get_order"], "state": "REJECTED", "reached": ["RECEIVED", "REJECTED"]}
    chosen = groups([entry(one) for one in made])
    assert chosen.tools == ("check_return_policy",)
    assert chosen.states == ("RECEIVED",)
    assert (chosen.neighbours, chosen.controls) == (("near", "far", "mid"), ())


@pytest.mark.parametrize(
    ("code", "tool"),
    [
        (Code.WRONG_RETURN, "create_return"),
        (Code.DUPLICATE_NOTICE, "send_return_notice"),
        (Code.NOTICE_MISSING, "send_return_notice"),
    ],
)
def test_a_wrong_effect_points_at_the_tool_that_makes_such_effects(code, tool):
    assert groups([entry(planted(code))]).tools == (tool,)


def test_what_all_cases_share_makes_nobody_a_neighbour():
    made = [raw("bad", Category.HIGH_VALUE), raw("other", Category.HIGH_VALUE), raw("plain")]
    made[0]["got"] |= {"state": "EXPIRED", "path": list(made[0]["expected"]["path"][:2]), "handover": True}
    made[0]["got"]["reached"] = ["RECEIVED", "ORDER_VERIFIED", "ELIGIBLE", "WAITING_APPROVAL", "EXPIRED"]
    made[0]["got"]["effects"] = {"returns": 0, "notices": 0}
    stays = raw("refused", Category.OUT_OF_PERIOD)
    chosen = groups([entry(one) for one in (*made, stays)])
    assert chosen.states == ("WAITING_APPROVAL",)
    assert chosen.tools == ("create_return",)
    assert (chosen.neighbours, chosen.controls) == (("other", "plain"), ("refused",))


# --- equal conditions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("order_snapshot", "2026-08-01"),
        ("policy", "policy-v13"),
        ("authz", "authz-v8"),
        ("concurrency", 4),
        ("seed", 8),
        ("dataset_sha256", "1" * 64),
    ],
)
def test_what_has_to_be_equal_and_is_not_is_named_and_nothing_is_compared(name, value):
    view = seen(cases(), cases(), **{name: value})
    assert differing(view) == [name]
    assert view.refused[0].after == str(value)
    assert "not compared" in view.said


@pytest.mark.parametrize(
    "change", [{"nth": 2}, {"times": 2}, {"tool": "create_return"}, {"kind": "disconnect"}], ids=str
)
def test_a_fault_that_strikes_elsewhere_is_named_by_its_case(change):
    after = cases()
    among(after, "midway_fault-1")["fault"] |= change
    view = seen(cases(), after)
    assert differing(view) == ["fault_positions"]
    assert view.refused[0].ids == ("midway_fault-1",)


def test_a_case_that_is_missing_or_expects_something_else_is_named():
    view = seen(cases(), cases()[1:])
    assert (differing(view), view.refused[0].ids) == (["cases"], ("normal-1",))
    after = cases()
    among(after, "normal-2")["expected"]["calls_max"] = 5
    view = seen(cases(), after)
    assert (differing(view), view.refused[0].ids) == (["expectations"], ("normal-2",))


def test_a_report_that_has_a_case_twice_cannot_be_compared():
    assert differing(seen(cases(), [*cases(), cases()[0]])) == ["cases after are not told apart"]


def test_limits_that_were_raised_make_two_runs_unequal():
    after = report(limits=LIMITS | {"calls": 9}, conditions=conditions(**TOOL))
    assert differing(compare(report(), after)) == ["limits"]


def test_the_one_part_that_was_changed_has_to_be_named():
    assert differing(seen(cases(), cases(), changed_component=None)) == ["changed_component"]


@pytest.mark.parametrize(
    ("part", "versions", "differs"),
    [
        ("tool", {"create_return": "2"}, []),
        ("tool", {"create_return": "2", "get_order": "2"}, ["tools"]),
        ("notification", {"send_return_notice": "2"}, []),
        ("notification", {"create_return": "2"}, ["tools"]),
        ("persistence", {"create_return": "2"}, ["tools"]),
    ],
)
def test_only_the_changed_part_may_have_another_version(part, versions, differs):
    tools = conditions()["tools"] | versions
    view = seen(cases(), cases(), changed_component=part, tools=tools)
    assert [one.what for one in view.refused] == differs
    assert all(set(one.ids) == set(versions) for one in view.refused)


@pytest.mark.parametrize("what", ["create_return", "returns"])
def test_a_version_that_asks_for_fewer_approvals_is_another_series_and_not_compared(what):
    fewer = conditions()["approvals"] | {what: "never"}
    new = {"tools": conditions()["tools"] | {"create_return": "2"}, "workflow_release": "returns-2"}
    assert seen(cases(), cases(), **new).refused == ()
    view = seen(cases(), cases(), **new, approvals=fewer)
    assert differing(view) == ["approvals"]
    assert f"'{what}': 'never'" in view.refused[0].after


@pytest.mark.parametrize(("part", "differs"), [("planner", []), ("orchestrator", ["planner", "model"])])
def test_another_model_is_a_change_of_the_planner_and_of_nothing_else(part, differs):
    view = seen(cases(), cases(), changed_component=part, planner="other", model="other-1")
    assert [one.what for one in view.refused] == differs


def test_a_new_release_of_the_workflow_is_what_a_change_comes_in():
    assert seen(cases(), cases(), workflow_release="returns-2").refused == ()


def test_both_reports_are_scored_anew():
    before, after = report(told_wrong(cases())), report(conditions=conditions(**TOOL))
    hidden = before.model_copy(update={"cases": tuple(one.model_copy(update={"problems": ()}) for one in before.cases)})
    assert compare(hidden, after).comparison == compare(before, after).comparison
    assert {code.value for code in PROBLEMS} >= {p.code for one in before.cases for p in one.problems}
