"""A retail shop's own data, for tests that are given it as a file: loaded as the product loads it."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from tool_server.load_retail import retail_seed
from tool_server.seed import Seed, SeedAmount

DELIVERED_ON = date(2026, 7, 20)


def read_retail(file: Path) -> dict[str, Any]:
    """Read the file with decimal amounts: no binary fraction ever holds one."""
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"), parse_float=Decimal)
    return data


def without_approvals(file: Path, delivered_on: date | None = DELIVERED_ON) -> Seed:
    """The file as it is loaded, but that no sum needs a person: these tests call the tools themselves."""
    seed = retail_seed(file.read_bytes(), delivered_on)
    never = (SeedAmount(currency="USD", amount=10**9),)
    policies = tuple(one.model_copy(update={"approval_thresholds": never}) for one in seed.policies)
    return seed.model_copy(update={"policies": policies})


def cents(amount: Decimal | int) -> int:
    """Give an amount in cents; one that has parts of a cent is no amount."""
    exact = Decimal(amount) * 100
    assert exact == exact.to_integral_value(), amount
    return int(exact)


def lines_of(order: dict[str, Any], item_ids: list[str]) -> dict[str, int]:
    """Name the lines of the wanted items; an item that stands twice is taken once for each time it is wanted."""
    open_lines = {f"L{number}": item["item_id"] for number, item in enumerate(order["items"], 1)}
    wanted: dict[str, int] = {}
    for item_id in item_ids:
        line_id = next(line_id for line_id, item in open_lines.items() if item == item_id)
        del open_lines[line_id]
        wanted[line_id] = 1
    return wanted
