"""Return requests that others know to be right for their own data: the same lines, worth the same cents.

The data has no dates, so it is loaded with a labelled overlay of them. Run with `--retail FILE`.
"""

from pathlib import Path
from typing import Any

import pytest

from shared_contracts.base import parse
from shared_contracts.policies import PolicyFacts
from shared_contracts.retail import TENANT
from shared_contracts.returns import RulingOutcome, rule
from tests.support.retail import cents, lines_of, read_retail, without_approvals
from tests.support.tool_shop import Shop, ask, code_of, given, open_shop

ASKED_AT = "2026-07-30T12:00:00+00:00"
NOTHING_ASKED: frozenset[Any] = frozenset()


@pytest.fixture
def data(retail: Path) -> dict[str, Any]:
    return read_retail(retail)


@pytest.fixture
def shop(retail: Path, tmp_path: Path) -> Shop:
    opened = open_shop(tmp_path, policies=[])
    opened.load(without_approvals(retail))
    return opened


def orders_of(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {order["order_id"]: order for order in data["orders"]}


async def told(tools: Any, order: dict[str, Any], lines: dict[str, int], customer: str | None = None) -> Any:
    wanted = [{"line_id": line_id, "quantity": units} for line_id, units in lines.items()]
    return await ask(
        tools,
        "check_return_policy",
        {"order_id": order["order_id"], "lines": wanted, "reason": "changed_mind"},
        tenant=TENANT,
        customer=order["user_id"] if customer is None else customer,
        requested_at=ASKED_AT,
    )


def test_every_right_request_is_eligible_and_worth_what_the_data_says(data, shop):
    async def scene(tools: Any) -> int:
        for wanted in data["returns"]:
            order = orders_of(data)[wanted["order_id"]]
            answer = parse(PolicyFacts, given(await told(tools, order, lines_of(order, wanted["item_ids"]))))
            assert answer.snapshot == "retail, overlay: all deliveries on 2026-07-20"
            assert rule(answer.facts, NOTHING_ASKED).outcome is RulingOutcome.ELIGIBLE, wanted
            assert (answer.facts.refund.amount, answer.facts.refund.currency) == (cents(wanted["refund_usd"]), "USD")
        return len(data["returns"])

    assert shop.run(scene) >= 30


def test_the_returns_that_are_made_of_them_pay_back_these_cents_once(data, shop):
    """The same request again is answered with the same return; another one over its lines finds nothing left."""

    async def scene(tools: Any) -> tuple[int, int]:
        taken: set[tuple[str, str]] = set()
        paid = refused = 0
        for wanted in data["returns"]:
            order = orders_of(data)[wanted["order_id"]]
            lines = lines_of(order, wanted["item_ids"])
            units = {(order["order_id"], line_id) for line_id in lines}
            answer = await created(tools, order, lines, f"{wanted['task']}-{wanted['position']}")
            if units & taken:
                assert code_of(answer) == "quantity_gone"
                refused += 1
            else:
                assert given(answer)["refund"] == {"amount": cents(wanted["refund_usd"]), "currency": "USD"}
                again = await created(tools, order, lines, f"{wanted['task']}-{wanted['position']}")
                assert given(again)["return_id"] == given(answer)["return_id"]
                paid += cents(wanted["refund_usd"])
                taken |= units
        return paid, refused

    paid, refused = shop.run(scene)
    assert refused > 0
    assert shop.one("SELECT sum(refund)::bigint FROM returns.returns") == paid
    assert shop.one("SELECT count(*) FROM returns.returns") == len(data["returns"]) - refused


async def created(tools: Any, order: dict[str, Any], lines: dict[str, int], key: str) -> Any:
    wanted = [{"line_id": line_id, "quantity": units} for line_id, units in lines.items()]
    arguments = {"order_id": order["order_id"], "lines": wanted, "reason": "changed_mind"}
    return await ask(
        tools, "create_return", arguments, tenant=TENANT, customer=order["user_id"], requested_at=ASKED_AT, key=key
    )


def test_nothing_goes_back_of_an_order_that_was_not_delivered_or_is_another_customers(data, shop):
    async def scene(tools: Any) -> set[str]:
        reasons = set()
        for order in data["orders"]:
            first = {"L1": 1}
            if order["status"] != "delivered":
                facts = parse(PolicyFacts, given(await told(tools, order, first))).facts
                reasons.add(rule(facts, NOTHING_ASKED).reason)
            assert code_of(await told(tools, order, first, customer="U-nobody")) == "not_found"
        return reasons

    assert shop.run(scene) == {"not_returnable"}


def test_without_the_overlay_no_delivered_order_is_decided_by_itself(data, retail, tmp_path):
    shop = open_shop(tmp_path, policies=[])
    shop.load(without_approvals(retail, None))

    async def scene(tools: Any) -> set[str]:
        delivered = [order for order in data["orders"] if order["status"] == "delivered"]
        answers = [parse(PolicyFacts, given(await told(tools, order, {"L1": 1}))) for order in delivered[:40]]
        return {rule(answer.facts, NOTHING_ASKED).reason for answer in answers}

    assert shop.run(scene) == {"undecidable"}
