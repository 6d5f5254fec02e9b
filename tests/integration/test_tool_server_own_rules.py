"""Rules that are one tenant's alone: they win there, and say nothing of anybody else's returns."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from shared_contracts.base import dump
from shared_contracts.digest import canonical_json
from tests.support.tool_orders import order, policy, seed
from tests.support.tool_shop import Shop, ask, given, open_shop
from tool_server.dispatch import Dispatcher
from tool_server.load import SeedError, parse_seed

OWN = policy("acme-own", tenant_id="acme", effective_from="2026-02-01T00:00:00+09:00", return_fees=[])
LATER = policy("p-later", effective_from="2026-03-01T00:00:00+09:00")
ASKED = {"order_id": "A-1", "lines": [{"line_id": "L1", "quantity": 1}], "reason": "changed_mind"}


def answers(shop: Shop, name: str, **token: Any) -> dict[str, Any]:
    async def scene(tools: Dispatcher) -> dict[str, Any]:
        return given(await ask(tools, name, ASKED, **token))

    return shop.run(scene)


def test_a_tenants_own_rules_come_before_everybodys_and_are_nobody_elses(tmp_path: Path) -> None:
    both = order("A-1"), order("A-1", tenant_id="beta")
    shop = open_shop(tmp_path, *both, policies=[policy(), OWN, LATER])
    before = datetime.fromisoformat("2026-01-20T12:00:00+09:00")
    assert answers(shop, "check_return_policy")["rule_version"] == "acme-own"
    assert answers(shop, "check_return_policy", tenant="beta")["rule_version"] == "p-later"
    assert answers(shop, "check_return_policy", requested_at=before)["rule_version"] == "policy-v12"
    assert answers(shop, "create_return", key="K-1")["refund"]["amount"] == 3_000  # its own have no fee
    assert answers(shop, "create_return", key="K-2", tenant="beta")["refund"]["amount"] == 2_500


def test_versions_of_two_tenants_may_begin_at_one_instant_and_two_of_one_may_not(tmp_path: Path) -> None:
    acme, beta, more = (policy(name, tenant_id=name.partition("-")[0]) for name in ("acme-1", "beta-1", "acme-2"))
    shop = open_shop(tmp_path, order("A-1"), policies=[policy(), acme, beta])
    shop.load(seed(order("A-1"), policies=[policy(), acme, beta]))
    with pytest.raises(
        SeedError, match="acme-2 begins at the instant at which acme-1, which is loaded already, begins"
    ):
        shop.load(seed(policies=[more]))
    with pytest.raises(SeedError, match="two versions cannot begin at one instant"):
        parse_seed(canonical_json(dump(seed(policies=[acme, more]))))


def test_an_earlier_return_was_made_under_the_tenants_own_rules(tmp_path: Path) -> None:
    made = {
        "return_id": "R-old", "status": "created", "reason": "other", "created_at": "2026-07-22T09:00:00+09:00",
        "lines": [{"line_id": "L1", "quantity": 1}],
    }  # fmt: skip
    both = order("A-1", returns=[made]), order("A-1", tenant_id="beta", returns=[made])
    shop = open_shop(tmp_path, *both, policies=[policy(), OWN, LATER])
    made_under = shop.rows("SELECT tenant_id, rule_version FROM returns.returns ORDER BY tenant_id")
    assert made_under == [("acme", "acme-own"), ("beta", "p-later")]
