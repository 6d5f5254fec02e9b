"""Cases of a retail shop's file, held against the tests' own reading of that file and of the rules."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from shared_contracts.evaluation import EvaluationCase
from shared_contracts.evaluation_retail import DELIVERED_ON, RetailSet, read_retail
from shared_contracts.returns import ReturnFacts, Ruling, rule
from tests.support.cli import ROOT
from tests.support.retail import lines_of
from tests.support.retail import read_retail as read_document
from tests.support.shop import shop_facts
from tool_server.load_retail import retail_seed
from tool_server.seed import Seed

OURS = ROOT / "examples" / "retail" / "shop.json"
ALONE, TWICE = "alone", "twice"


@dataclass(frozen=True)
class Made:
    """A file, and what the product makes of it."""

    document: dict[str, Any]
    made: RetailSet

    @cached_property
    def seed(self) -> Seed:
        return retail_seed(self.made.data, DELIVERED_ON)

    @property
    def cases(self) -> tuple[EvaluationCase, ...]:
        return self.made.cases.cases

    @cached_property
    def orders(self) -> dict[str, dict[str, Any]]:
        return {order["order_id"]: order for order in self.document["orders"]}

    def right(self) -> dict[str, dict[str, Any]]:
        """The file's own returns by their names, with the lines that they are about."""
        return {
            f"{one['task']}-{one['position']}": {
                **one,
                "lines": set(lines_of(self.orders[one["order_id"]], one["item_ids"])),
            }
            for one in self.document["returns"]
        }

    def of_returns(self) -> dict[str, dict[str, EvaluationCase]]:
        """The cases that are about the file's returns, by the return's name and by what happens to them."""
        found = defaultdict[str, dict[str, EvaluationCase]](dict)
        for case in self.cases:
            name, _, how = case.id.removeprefix("retail-").rpartition("-")
            if name not in {"foreign", "undelivered"}:
                found[name][how] = case
        return found

    def facts(self, case: EvaluationCase) -> ReturnFacts | None:
        return shop_facts(self.seed, case.tenant, case.request)

    def ruled(self, case: EvaluationCase) -> Ruling:
        return rule(self.facts(case), frozenset())


def made_of(file: Path) -> Made:
    made = read_retail(file)
    assert isinstance(made, RetailSet), made
    return Made(read_document(file), made)


def original(order_id: str) -> str:
    """The order of the file that a case's order is, or is a copy of."""
    return order_id.partition(".")[0]


def smallest(file: Path, folder: Path) -> Path:
    """The smallest part of a file that has one of everything: a return on either side of 500 dollars, an item that
    stands twice or a part of an order where there is one, and an order of each status.
    """
    document = json.loads(file.read_text("utf-8"))
    orders = {order["order_id"]: order for order in document["orders"]}
    returns = sorted(document["returns"], key=lambda one: -len(one["item_ids"]))
    chosen = [next(one for one in returns if (one["refund_usd"] >= 500) is high) for high in (False, True)]
    wanted = {one["order_id"] for one in chosen} | set(_one_of_each_status(orders))
    part = {**document, "orders": [orders[name] for name in orders if name in wanted], "returns": chosen}
    small = folder / "retail.json"
    small.write_text(json.dumps(part), encoding="utf-8")
    return small


def _one_of_each_status(orders: dict[str, dict[str, Any]]) -> Iterator[str]:
    for status in ("pending", "processed", "cancelled"):
        with suppress(StopIteration):
            yield next(name for name, order in orders.items() if order["status"] == status)


def dollars(one: dict[str, Any]) -> Decimal:
    return Decimal(one["refund_usd"])
