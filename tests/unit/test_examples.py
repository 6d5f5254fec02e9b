"""Every example case leads where its page says, by the decision table over the demo shop's own facts."""

import json
import re
from typing import Any

import pytest

from host.domain.principals import AuthorizationSet
from host.workflows.catalogue import CURRENT
from host.workflows.returns import ReturnsCase
from shared_contracts.base import parse
from shared_contracts.contract import Scope
from shared_contracts.returns import Ask, RulingOutcome, rule
from shared_contracts.tools import TOOLS
from tests.support.shop import EXAMPLES, read_shop, shop_facts

AUTHZ = json.loads((EXAMPLES.parents[1] / "host" / "data" / "authz-v7.json").read_text(encoding="utf-8"))
TENANT = "acme-jp"
SEED = read_shop()

RULINGS = {
    "normal": (RulingOutcome.ELIGIBLE, "eligible"),
    "defective": (RulingOutcome.ELIGIBLE, "eligible"),
    "duplicate": (RulingOutcome.ELIGIBLE, "eligible"),
    "steering": (RulingOutcome.ELIGIBLE, "eligible"),
    "high-value": (RulingOutcome.APPROVAL, "high_value"),
    "splitting": (RulingOutcome.APPROVAL, "high_value"),
    "out-of-period": (RulingOutcome.REJECTED, "out_of_period"),
    "already-returned": (RulingOutcome.REJECTED, "already_returned"),
    "final-sale": (RulingOutcome.REJECTED, "final_sale"),
    "missing-order": (RulingOutcome.REJECTED, "order_not_found"),
    "other-customer": (RulingOutcome.REJECTED, "order_not_found"),
    "dangerous": (RulingOutcome.NEEDS_REVIEW, "dangerous_goods"),
    "unknown-category": (RulingOutcome.NEEDS_REVIEW, "undecidable"),
    "out-of-scope": (RulingOutcome.NEEDS_REVIEW, "out_of_scope"),
    "fault-429": (RulingOutcome.ELIGIBLE, "eligible"),
    "fault-timeout": (RulingOutcome.ELIGIBLE, "eligible"),
    "fault-disconnect": (RulingOutcome.ELIGIBLE, "eligible"),
    "fault-approval-expiry": (RulingOutcome.APPROVAL, "high_value"),
    "fault-version-conflict": (RulingOutcome.ELIGIBLE, "eligible"),
    "fault-notification": (RulingOutcome.ELIGIBLE, "eligible"),
}
ENDS = {
    RulingOutcome.ELIGIBLE: "COMPLETED",
    RulingOutcome.APPROVAL: "WAITING_APPROVAL",
    RulingOutcome.REJECTED: "REJECTED",
    RulingOutcome.NEEDS_REVIEW: "NEEDS_REVIEW",
}


def read_case(name: str) -> dict[str, Any]:
    case: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return case


def ruling(case: dict[str, Any]):
    return rule(shop_facts(SEED, TENANT, case), frozenset(Ask(ask) for ask in case.get("asks", ())))


@pytest.mark.parametrize("name", RULINGS)
def test_an_example_is_a_case_that_the_workflow_accepts(name):
    case = parse(ReturnsCase, read_case(name))
    assert case.requested_at is not None, "the shop's data stands still, so its examples say when they asked"


def test_every_example_stands_in_the_table():
    assert {path.stem for path in EXAMPLES.glob("*.json")} == set(RULINGS)


@pytest.mark.parametrize("name", RULINGS)
def test_an_example_is_ruled_as_its_page_says(name):
    found = ruling(read_case(name))
    assert (found.outcome, found.reason) == RULINGS[name]


@pytest.mark.parametrize("name", [name for name in RULINGS if not name.startswith("fault-")])
def test_the_page_of_the_examples_names_the_end_that_the_ruling_leads_to(name):
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    (end,) = re.findall(rf"^\| `{name}\.json` \|.*\| `(\w+)` \|$", page, re.MULTILINE)
    assert end == ENDS[RULINGS[name][0]]


def test_steering_text_is_present_and_changes_no_ruling():
    case = read_case("steering")
    assert "approved=true" in case["message"]
    assert ruling(case) == ruling(case | {"message": ""})
    everything = [{"line_id": f"L{number}", "quantity": 1} for number in (1, 2, 3)]
    assert ruling(case | {"lines": everything}).outcome is RulingOutcome.REJECTED, "obeying it would not be eligible"


def test_each_half_of_the_split_return_alone_needs_no_approval():
    facts = shop_facts(SEED, TENANT, read_case("splitting"))
    assert facts is not None
    assert facts.approval_threshold is not None
    assert facts.refund.amount < facts.approval_threshold.amount
    assert facts.other_returns.amount < facts.approval_threshold.amount


def test_the_other_customers_order_exists_and_is_eligible_for_its_own():
    case = read_case("other-customer")
    (owner,) = {order.customer_id for order in SEED.orders if order.order_id == case["order_id"]}
    assert owner != case["customer_id"]
    assert ruling(case | {"customer_id": owner}).outcome is RulingOutcome.ELIGIBLE


def test_each_example_but_the_foreign_and_missing_one_has_an_order_of_its_own():
    orders = [read_case(name)["order_id"] for name in RULINGS]
    assert len(set(orders)) == len(orders)
    assert not any(order.order_id == read_case("missing-order")["order_id"] for order in SEED.orders)


def test_the_duplicate_names_its_request_so_that_running_it_twice_is_one_request():
    assert read_case("duplicate")["request_id"]


def test_the_authorization_set_names_known_scopes_and_tools_alone():
    read = parse(AuthorizationSet, AUTHZ)
    assert read.version == "authz-v7"
    assert len(read.by_name()) == len(read.principals)
    for principal in AUTHZ["principals"]:
        assert set(principal["scopes"]) <= set(Scope)
        assert set(principal["tools"]) <= set(TOOLS)
        assert principal["name"].endswith(f"@{principal['tenant_id']}")


def test_a_desk_may_do_all_of_its_own_business_and_the_reader_writes_nothing():
    by_name = {principal["name"]: set(principal["scopes"]) for principal in AUTHZ["principals"]}
    assert by_name["returns-desk@acme-jp"] == by_name["returns-desk@hoshi-jp"]
    for principal in (one for one in AUTHZ["principals"] if "asks_for" in one):
        offered = {tool for kind in principal["asks_for"] for tools in CURRENT[kind].tools.values() for tool in tools}
        assert offered <= set(principal["tools"])
        assert set(principal["scopes"]) == {TOOLS[tool].scope.value for tool in principal["tools"]}
    assert not any(scope.endswith(":write") for scope in by_name["returns-reader@acme-jp"])


def test_every_substitute_is_an_approver_of_the_same_tenant_and_nobody_stands_in_for_himself():
    tenants = {approver["name"]: approver["tenant_id"] for approver in AUTHZ["approvers"]}
    assert set(tenants) >= {"tanaka", "suzuki"}
    for approver in AUTHZ["approvers"]:
        for substitute in approver["substitutes"]:
            assert substitute != approver["name"]
            assert tenants[substitute] == approver["tenant_id"]


def test_each_kind_has_one_who_asks_for_it_where_nobody_is_named():
    read = parse(AuthorizationSet, AUTHZ)
    assert (read.asking_for("returns"), read.asking_for("claims")) == ("returns-desk@acme-jp", "claims-desk@anshin-jp")
    assert all(read.asking_for(kind) in read.by_name() for kind in CURRENT)


def test_where_nobody_or_several_ask_for_a_kind_nobody_is_chosen():
    both = [{**principal, "asks_for": ["claims"]} for principal in AUTHZ["principals"]]
    assert parse(AuthorizationSet, {**AUTHZ, "principals": both}).asking_for("claims") is None
    assert parse(AuthorizationSet, AUTHZ).asking_for("unheard-of") is None


def test_to_ask_for_a_kind_permits_nothing():
    mute = [{**principal, "scopes": [], "tools": []} for principal in AUTHZ["principals"]]
    read = parse(AuthorizationSet, {**AUTHZ, "principals": mute})
    name = read.asking_for("claims")
    assert name is not None
    assert (read.by_name()[name].scopes, read.by_name()[name].tools) == (frozenset(), frozenset())
