"""What the contract tests are about: a tenant of their own with an order for each trial, and good arguments for a tool.

Invariant: every trial has an order that no other has touched.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from host.evaluation import goods
from shared_contracts.contract import Tool

TENANT, CUSTOMER, PRINCIPAL = "contract-test", "CT-C1", "contract-test"
ASKED_AT = datetime(2026, 7, 30, 3, 0, tzinfo=UTC)
LINES = [{"line_id": "L1", "quantity": 1}]
ORDERS, DEAR = 120, "CT-DEAR"
CHEAP_YEN, DEAR_YEN = 1_000, 90_000  # below and above every threshold of the packaged rules
# what has to be made first for an argument to be good: the tool that makes it
MADE_BY = {"return_id": "create_return", "corrects": "send_return_notice"}


def seed() -> dict[str, Any]:
    """Give a file for `kessai-tools load`: orders and their one customer, under the rules that are loaded already."""
    cheap = [goods.order(TENANT, f"CT-{number}", CUSTOMER, CHEAP_YEN, 5) for number in range(1, ORDERS + 1)]
    return goods.file([*cheap, goods.order(TENANT, DEAR, CUSTOMER, DEAR_YEN, 5)], [goods.person(TENANT, CUSTOMER)])


@dataclass
class Shelf:
    """Orders that no trial has had yet."""

    _numbers: Iterator[int] = field(default_factory=lambda: itertools.cycle(range(1, ORDERS + 1)))

    def order(self) -> str:
        """Take the next."""
        return f"CT-{next(self._numbers)}"


def arguments(tool: Tool, order_id: str, made: Mapping[str, str]) -> dict[str, Any]:
    """Fill a tool's arguments; `made` are the ids of what was made for it. KeyError: nobody has named a value."""
    good: dict[str, Any] = {"order_id": order_id, "lines": LINES, "reason": "changed_mind", **made}
    return {name: good[name] for name in tool.arguments.model_fields}
