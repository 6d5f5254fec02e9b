"""The evaluation's cases of a retail shop's file: all of it, each end as the rules have it, and what is no such file.

With `--retail FILE` of that file too. What is expected is compared with the decision table over facts that the tests
work out themselves, and with what the file says of whose it is and what it is worth.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from shared_contracts.evaluation import SIX, Category, EvaluationCase, FaultKind
from shared_contracts.evaluation_cases import Refused
from shared_contracts.evaluation_retail import APPROVAL_FROM_USD, lines_of, numbered, read_retail
from shared_contracts.retail import TENANT
from shared_contracts.returns import ORDER_NOT_FOUND, RulingOutcome
from tests.support.retail import cents
from tests.support.retail_set import ALONE, OURS, TWICE, Made, dollars, made_of, original

BY_TABLE = {"REJECTED": RulingOutcome.REJECTED, "COMPLETED": RulingOutcome.ELIGIBLE}


def wrong(made: Made) -> list[str]:
    """Everything in which a file's cases differ from the file and the rules."""
    return [*_returns(made), *_others(made), *_orders(made)]


def _returns(made: Made) -> list[str]:
    found = list[str]()
    for name, one in made.right().items():
        cases = made.of_returns()[name]
        expiring = {FaultKind.APPROVAL_EXPIRY.value} if dollars(one) >= APPROVAL_FROM_USD else set()
        kinds = {kind.value for kind in SIX} - {FaultKind.APPROVAL_EXPIRY.value}
        if set(cases) != {ALONE, TWICE} | kinds | expiring:
            found.append(f"{name}: is run as {sorted(cases)}")
        found += [f"{case.id}: {said}" for case in cases.values() for said in _one(made, case, one)]
    return found


def _one(made: Made, case: EvaluationCase, one: dict[str, Any]) -> list[str]:
    facts, ruling, high = made.facts(case), made.ruled(case), dollars(one) >= APPROVAL_FROM_USD
    assert facts is not None
    asked = {line["line_id"] for line in case.request["lines"]}
    held = {
        "lines": asked == one["lines"],
        "customer": case.request["customer_id"] == one["user_id"],
        "order": original(case.request["order_id"]) == one["order_id"],
        "amount": facts.refund.amount == cents(one["refund_usd"]),
        "ruling": ruling.outcome is (RulingOutcome.APPROVAL if high else RulingOutcome.ELIGIBLE),
        "decision": (case.decision is not None) is high,
        "returns": case.expected.effects.returns == int(case.expected.state != "EXPIRED"),
        "notices": case.expected.effects.notices == int(case.expected.state == "COMPLETED"),
    }
    return [what for what, holds in held.items() if not holds]


def _others(made: Made) -> list[str]:
    """Each order is asked for by somebody else, and each that was not delivered by its own."""
    left = [case for case in made.cases if case.category in {Category.FOREIGN_ORDER, Category.OUT_OF_PERIOD}]
    asked = Counter((case.category, original(case.request["order_id"])) for case in left)
    due = Counter((Category.FOREIGN_ORDER, name) for name in made.orders)
    due += Counter(
        (Category.OUT_OF_PERIOD, name) for name, order in made.orders.items() if order["status"] != "delivered"
    )
    found = [] if asked == due else [f"asked for: {asked - due} too much, {due - asked} missing"]
    for case in left:
        ruling, owner = made.ruled(case), made.orders[original(case.request["order_id"])]["user_id"]
        foreign = case.category is Category.FOREIGN_ORDER
        held = (owner != case.request["customer_id"]) is foreign and (ruling == ORDER_NOT_FOUND) is foreign
        if not held or (case.expected.state, case.expected.reason) != ("REJECTED", ruling.reason):
            found.append(f"{case.id}: {ruling}")
    return found


def _orders(made: Made) -> list[str]:
    """Each case has an order to itself; those that are loaded are the file's, as often as they are needed."""
    asked = Counter(case.request["order_id"] for case in made.cases)
    loaded = {order.order_id for order in made.seed.orders}
    found = [f"{name} is that of several cases" for name, times in asked.items() if times > 1]
    found += [f"{name} is loaded or asked for, and not both" for name in set(asked) ^ loaded]
    lines = {order.order_id: [(line.name, line.unit_price) for line in order.lines] for order in made.seed.orders}
    return found + [f"{name} is no copy" for name in lines if lines[name] != lines[original(name)]]


def test_every_return_of_our_own_file_is_run_in_every_way_and_everything_else_is_refused():
    made = made_of(OURS)
    assert wrong(made) == []
    assert {case.tenant for case in made.cases} == {TENANT}
    refunds = {dollars(one) for one in made.right().values()}
    assert {APPROVAL_FROM_USD, APPROVAL_FROM_USD - dollars({"refund_usd": "0.01"})} <= refunds  # both sides of it


def test_every_return_of_the_outside_file_is_run_in_every_way_and_everything_else_is_refused(retail: Path):
    made = made_of(retail)
    assert wrong(made) == []
    assert len(made.document["returns"]) >= 30
    assert len(made.cases) > 1000


def test_a_fault_that_could_make_a_second_one_strikes_return_and_notice_by_turns():
    made = made_of(OURS)
    struck = Counter((case.fault.kind, case.fault.tool) for case in made.cases if case.fault is not None)
    for kind in (FaultKind.TIMEOUT, FaultKind.DISCONNECT, FaultKind.VERSION_CONFLICT):
        assert struck[kind, "create_return"] == struck[kind, "send_return_notice"] == 2
    assert len([tool for kind, tool in struck if kind is FaultKind.RATE_LIMITED]) == 4


def test_the_same_request_comes_again_after_the_first_and_at_once():
    again = Counter(case.repeated for case in made_of(OURS).cases)
    assert again["after"] == again["at_once"] == 2


def test_an_item_that_is_wanted_twice_is_two_lines_and_one_that_is_not_there_is_none():
    assert lines_of(["a", "b", "a"], ["a", "a"]) == ["L1", "L3"]
    assert lines_of(["a", "b", "a"], ["b", "a"]) == ["L2", "L1"]
    assert lines_of(["a", "b"], ["a", "a"]) is None
    assert lines_of(["a"], ["c"]) is None


def test_a_copy_has_a_number_of_its_own_and_the_first_is_the_order_itself():
    assert [numbered("#R1", nth) for nth in (1, 2, 3)] == ["#R1", "#R1.2", "#R1.3"]


OURS_READ = json.loads(OURS.read_text("utf-8"))


def changed(where: str, at: int, **changes: Any) -> bytes:
    document = json.loads(json.dumps(OURS_READ))
    document[where][at] |= changes
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "the file"),
        (json.dumps({**OURS_READ, "returns": []}).encode(), "returns"),
        (json.dumps({**OURS_READ, "returns": OURS_READ["returns"] * 2}).encode(), "return 1-0 stands there several"),
        (json.dumps({**OURS_READ, "orders": OURS_READ["orders"] * 2}).encode(), "#R1001 stands there several times"),
        (changed("returns", 0, user_id="U-ben"), "return 1-0: U-ben has no delivered order #R1001"),
        (changed("orders", 0, status="pending"), "return 1-0: U-ada has no delivered order #R1001"),
        (changed("returns", 0, item_ids=["501"] * 3), "return 1-0: the order does not have these items so often"),
        (changed("returns", 0, refund_usd=-1), "refund_usd"),
        (changed("orders", 0, order_id="a b"), "orders[0].order_id"),
        (changed("returns", 0, task="t" * 70), "id"),
        (changed("orders", 3, order_id="#R1001.2"), "order #R1001.2 has the number of another's copy"),
        (json.dumps({**OURS_READ, "orders": [{**one, "user_id": "U-ada"} for one in OURS_READ["orders"]]}).encode(),
         "one customer's"),
    ],
)  # fmt: skip
def test_what_no_cases_can_be_made_of_is_refused_with_its_place(tmp_path: Path, content: bytes, told: str):
    file = tmp_path / "retail.json"
    file.write_bytes(content)
    read = read_retail(file)
    assert isinstance(read, Refused)
    assert told in "\n".join(read.problems)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    assert isinstance(read_retail(tmp_path / "none.json"), Refused)
