"""What was ordered to be undone, and how far it got. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def compensation_of(row: Row, orders: Sequence[Row]) -> dict[str, Any]:
    """List the orders with the calls of each; the newest says how far it got."""
    return {
        "state": orders[-1]["state"] if orders else "none",
        "orders": [
            {**{name: order[name] for name in _COPIED}, "steps": _steps(row, order, orders)} for order in orders
        ],
    }


_COPIED = ("n", "state", "ordered_by", "ordered_at", "due_at", "ended_at", "released_by", "released_at")


def _steps(row: Row, order: Row, orders: Sequence[Row]) -> list[str]:
    """Name an order's own calls: from its first step to where the next order begins."""
    later = [other["first_step"] for other in orders if other["n"] > order["n"]]
    return [
        call["step_id"]
        for call in row["calls"]
        if call["undoes"] is not None
        and call["step"] >= order["first_step"]
        and all(call["step"] < first for first in later)
    ]
