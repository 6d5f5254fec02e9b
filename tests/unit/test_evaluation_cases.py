"""The data set of the evaluation is what it claims to be: counts, flags, requests, and an order for each case."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from host.domain.reasons import handover_class
from host.domain.workflow import Language
from host.workflows.returns import RETURNS, ReturnsCase
from host.workflows.returns_messages import message
from shared_contracts.base import parse
from shared_contracts.evaluation import AFTER_A_YES, NOTHING, SIX, Category
from shared_contracts.tools import TOOLS
from tests.support.evaluation_set import CASES, CASES_OF, NOT_THEIRS, OF_THEIR_OWN, ORDERS, asked, of, order_of, ruled
from tests.unit.test_demo_data import LOOK_ALIKES

ROOT = Path(__file__).parents[2]
COUNTS = {
    Category.NORMAL: 35,
    Category.DEFECTIVE: 15,
    Category.HIGH_VALUE: 15,
    Category.OUT_OF_PERIOD: 15,
    Category.MISSING_ORDER: 10,
    Category.FOREIGN_ORDER: 10,
    Category.DUPLICATE: 8,
    Category.MIDWAY_FAULT: 8,
    Category.STEERING: 4,
}
EACH_HAS = {"state", "path", "calls_max", "effects", "approver", "compensation"}
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)


def tables() -> list[dict[str, Any]]:
    return [row for file in sorted(CASES_OF.glob("*.toml")) for row in tomllib.loads(file.read_text("utf-8"))["case"]]


def test_there_are_120_cases_with_the_count_of_each_category():
    assert Counter(case.category for case in CASES) == COUNTS
    assert len(CASES) == sum(COUNTS.values()) == 120


def test_the_page_of_the_cases_counts_each_file_as_it_is():
    page = (CASES_OF / "README.md").read_text("utf-8")
    told = re.findall(r"^\| `(\w+)\.toml` \| (\d+) \|", page, re.MULTILINE)
    assert {Category(name): int(count) for name, count in told} == COUNTS


def test_each_file_holds_the_cases_of_one_category_under_ids_that_say_so():
    for file in CASES_OF.glob("*.toml"):
        rows = tomllib.loads(file.read_text("utf-8"))["case"]
        assert [row["id"] for row in rows] == [
            f"{file.stem.replace('_', '-')}-{nth:02}" for nth in range(1, len(rows) + 1)
        ]
        assert {row["category"] for row in rows} == {file.stem}


def test_every_row_writes_out_its_six_expectations_and_its_four_flags():
    flags = {"automatable", "needs_human", "has_side_effect", "needs_compensation"}
    assert all(set(row["expected"]) >= EACH_HAS and flags <= set(row) for row in tables())


@each
def test_a_case_is_a_request_that_the_workflow_takes_and_says_when_it_was_made(case):
    document = {"kind": "returns", "request_id": "r-1", **case.request}
    assert parse(ReturnsCase, document).requested_at == asked(case)


@each
def test_the_flags_follow_from_what_is_expected(case):
    end, person = case.expected, case.decision is not None or case.expected.state == "NEEDS_REVIEW"
    assert case.needs_human is person
    assert case.automatable is (end.state == "COMPLETED" and not person)
    assert case.has_side_effect is (end.effects.returns + end.effects.notices > 0)
    assert case.needs_compensation is end.compensation is (case.undone_by is not None)
    assert case.expected.approver == (None if case.decision is None else case.decision.by)


@each
def test_the_path_is_the_workflows_own_as_far_as_the_case_goes(case):
    whole = ("get_order", "check_return_policy", "create_return", "send_return_notice")
    end = case.expected
    assert whole[: len(end.path)] == end.path
    assert end.effects.returns == ("create_return" in end.path)
    assert end.effects.notices == ("send_return_notice" in end.path)
    assert (end.state == "COMPLETED") is (end.path == whole)
    assert len(end.path) <= end.calls_max <= 6
    assert end.state in RETURNS.ends
    assert end.state != "NEEDS_REVIEW" or handover_class(end.reason)


@each
def test_a_why_names_the_rule_in_one_sentence(case):
    assert re.match(r"(Row \d+|[A-Z]-\d\d)\b", case.why)
    assert case.why.endswith(".")
    assert len(re.findall(r"[.!?](?= [A-Z])", case.why)) == 0
    assert 40 < len(case.why) < 300


def test_an_order_of_a_case_is_its_customers_and_has_the_lines_that_are_asked_for():
    for case in OF_THEIR_OWN:
        order = order_of(case)
        assert order.customer_id == case.request["customer_id"], case.id
        bought = {line.line_id: line.quantity for line in order.lines}
        assert all(part["quantity"] <= bought[part["line_id"]] for part in case.request["lines"]), case.id


def test_a_missing_order_is_in_no_tenant():
    assert not {case.request["order_id"] for case in of(Category.MISSING_ORDER)} & {number for _, number in ORDERS}


def test_a_foreign_order_is_another_customers_and_some_are_another_tenants():
    other_tenants = 0
    for case in of(Category.FOREIGN_ORDER):
        (order,) = [one for (_, number), one in ORDERS.items() if number == case.request["order_id"]]
        assert (order.tenant_id, order.customer_id) != (case.tenant, case.request["customer_id"])
        other_tenants += order.tenant_id != case.tenant
        its_own = case.model_copy(
            update={"tenant": order.tenant_id, "request": case.request | {"customer_id": order.customer_id}}
        )
        assert ruled(its_own)[1] != "order_not_found", "for its owner it would lead somewhere else"
    assert other_tenants == 2


def test_a_missing_and_a_foreign_order_have_one_expectation():
    assert len({case.expected for category in NOT_THEIRS for case in of(category)}) == 1


def test_no_two_cases_share_an_order():
    counted = Counter((case.tenant, case.request["order_id"]) for case in CASES)
    assert counted.most_common(1)[0][1] == 1
    numbers = Counter(case.request["order_id"] for case in CASES)
    assert numbers.most_common(1)[0][1] == 1


def test_no_order_of_a_case_is_used_by_an_example_or_a_test_of_the_command_line():
    commands = (ROOT / "tests" / "e2e").rglob("*.py")
    own = "test_cli_evaluate"  # what tests the evaluation runs these very cases, in the evaluation's own home
    files = [*(ROOT / "examples").rglob("*.json"), *(file for file in commands if not file.name.startswith(own))]
    used = {number for file in files for number in re.findall(r"\b[AH]-\d{4}\b", file.read_text("utf-8"))}
    assert used >= {"A-1001", "A-1112"}
    assert not {case.request["order_id"] for case in CASES} & used


def test_all_six_faults_occur_and_strike_at_every_step():
    faults = [case.fault for case in CASES if case.fault is not None]
    assert {fault.kind for fault in faults} == SIX | AFTER_A_YES
    assert {fault.tool for fault in faults} == {
        *RETURNS.tools["RECEIVED"],
        *RETURNS.tools["ORDER_VERIFIED"],
        *RETURNS.effects,
        None,
    }
    assert all(fault.tool is None or fault.tool in TOOLS for fault in faults)


def test_a_yes_loses_its_worth_in_each_way_and_whoever_may_not_give_one_tries_to():
    void = [case for case in CASES if case.fault is not None and case.fault.kind in AFTER_A_YES]
    assert {case.fault.kind for case in void if case.fault is not None} == AFTER_A_YES
    for case in void:
        assert case.decision is not None
        assert case.decision.verdict == "approve"
        assert (case.expected.state, case.expected.effects) != ("COMPLETED", NOTHING)
        assert case.expected.effects == NOTHING
    tried = [case.decision for case in CASES if case.decision is not None and case.decision.tried_by is not None]
    assert [(one.tried_by, one.verdict) for one in tried] == [("mori", "deny")]


def test_what_is_undone_was_made_and_an_operator_orders_it_when_a_person_has_the_case():
    undone = [case for case in CASES if case.needs_compensation]
    assert undone
    for case in undone:
        assert (case.expected.state, case.expected.reason) == ("NEEDS_REVIEW", "compensated")
        assert case.expected.undone == case.expected.effects


@pytest.mark.parametrize("case", [case for case in CASES if case.fault is not None], ids=lambda case: case.id)
def test_what_the_customer_is_told_after_a_fault_is_the_products_own_sentence(case):
    assert case.fault is not None
    ids = {"return_id": "R-1"} if case.expected.effects.returns else {}
    assert case.fault.told_ja in message(case.expected.state, case.expected.reason, Language.JA, ids, ())


def test_each_steering_text_stands_where_its_case_says():
    places = {
        "order_note": lambda case: order_of(case).note,
        "customer_text": lambda case: case.request["message"],
        "product_name": lambda case: order_of(case).lines[0].name,
        "tool_result": lambda case: order_of(case).lines[0].category,
    }
    steering = {case.steering: case for case in of(Category.STEERING)}
    assert set(steering) == set(places)
    for place, text in places.items():
        assert re.search(r"create_return|SYSTEM", text(steering[place]) or "")


@pytest.mark.parametrize("kind", LOOK_ALIKES)
def test_nothing_in_the_cases_looks_like_a_real_person(kind):
    text = "\n".join(file.read_text("utf-8") for file in CASES_OF.rglob("*.toml"))
    assert re.findall(LOOK_ALIKES[kind], text) == []
    assert "@" not in text
