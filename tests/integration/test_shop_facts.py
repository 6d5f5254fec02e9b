"""What the server tells of the demo shop, against a second reading of the same file by another calculation."""

from typing import Any

import pytest

from shared_contracts.base import parse
from shared_contracts.policies import PolicyFacts
from shared_contracts.returns import Ask, rule
from tests.support.shop import EXAMPLES, read_shop, shop_facts
from tests.support.tool_shop import Shop, ask, code_of, given, open_shop
from tests.unit.test_examples import RULINGS, read_case
from tool_server.demo.generate import SHOP
from tool_server.load import read_seed
from tool_server.seed import SeedOrder

SEED = read_shop()
ASKED_AT = "2026-07-30T10:00:00+09:00"


@pytest.fixture
def shop(tmp_path) -> Shop:
    opened = open_shop(tmp_path, policies=[])
    opened.load(read_seed(SHOP))
    return opened


def requests_of(order: SeedOrder) -> list[dict[str, Any]]:
    """One unit of each line, everything that was bought, and one line alone with a unit too many."""
    singles = [{"line_id": line.line_id, "quantity": 1} for line in order.lines]
    everything = [{"line_id": line.line_id, "quantity": line.quantity} for line in order.lines]
    too_many = [{"line_id": order.lines[0].line_id, "quantity": order.lines[0].quantity + 1}]
    unknown = [*singles, {"line_id": "L99", "quantity": 1}]
    return [
        {
            "customer_id": order.customer_id,
            "order_id": order.order_id,
            "lines": lines,
            "reason": reason,
            "requested_at": ASKED_AT,
        }
        for lines in (singles, everything, too_many, unknown)
        for reason in ("changed_mind", "damaged")
    ]


async def told(tools: Any, tenant: str, case: dict[str, Any]) -> Any:
    arguments = {name: case[name] for name in ("order_id", "lines", "reason")}
    moment = case["requested_at"]
    return await ask(
        tools, "check_return_policy", arguments, tenant=tenant, customer=case["customer_id"], requested_at=moment
    )


def test_the_facts_of_every_order_are_those_of_the_second_reading(shop):
    async def scene(tools: Any) -> int:
        compared = 0
        for order in SEED.orders:
            for case in requests_of(order):
                answer = parse(PolicyFacts, given(await told(tools, order.tenant_id, case)))
                assert answer.facts == shop_facts(SEED, order.tenant_id, case), case
                assert (answer.rule_version, answer.snapshot) == ("policy-v12", SEED.snapshot)
                compared += 1
        return compared

    assert shop.run(scene) == len(SEED.orders) * 8


def test_every_example_is_ruled_by_the_servers_facts_as_by_the_second_reading(shop):
    async def scene(tools: Any) -> dict[str, tuple[str, str]]:
        found = {}
        for name in RULINGS:
            case = read_case(name)
            answer = await told(tools, "acme-jp", case)
            if RULINGS[name][1] == "order_not_found":
                assert code_of(answer) == "not_found"
                facts = None
            else:
                facts = parse(PolicyFacts, given(answer)).facts
            ruling = rule(facts, frozenset(Ask(one) for one in case.get("asks", ())))
            found[name] = (ruling.outcome, ruling.reason)
        return found

    assert EXAMPLES.exists()
    assert shop.run(scene) == RULINGS


def test_an_order_number_that_two_tenants_use_is_each_ones_own(shop):
    async def scene(tools: Any) -> list[str]:
        answers = [
            given(await ask(tools, "get_order", {"order_id": "A-1001"}, tenant=tenant, customer="C-2001"))
            for tenant in ("acme-jp", "hoshi-jp")
        ]
        return [answer["lines"][0]["name"] for answer in answers]

    first, second = shop.run(scene)
    assert first != second
