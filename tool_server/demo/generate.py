"""Writes `shop.json`, the demo shop as of its snapshot: `python -m tool_server.demo.generate`.

Invariant: the same code writes the same bytes on every machine; a test writes them again and compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tool_server.demo.named import NAMED
from tool_server.demo.ordinary import ORDINARY, settled
from tool_server.demo.parts import SNAPSHOT
from tool_server.demo.people import RECIPIENTS
from tool_server.demo.rules import POLICIES
from tool_server.seed import Seed

SHOP = Path(__file__).with_name("shop.json")


def shop() -> Seed:
    """Put the shop together and check it against the model once more, as it will be read."""
    seed = Seed(
        snapshot=SNAPSHOT.isoformat(),
        policies=POLICIES,
        orders=tuple(settled(order) for order in (*NAMED, *ORDINARY)),
        recipients=RECIPIENTS,
    )
    return Seed.model_validate_json(seed.model_dump_json())


def _one_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _rows(values: Iterable[Any], indent: str) -> str:
    rows = f",\n{indent} ".join(_one_line(value) for value in values)
    return f"[\n{indent} {rows}]" if rows else "[]"


def _block(row: dict[str, Any], many: tuple[str, ...]) -> str:
    """Give the head of an order or policy on one line, and each of its rows on a line of its own."""
    head = _one_line({key: value for key, value in row.items() if key not in many})[:-1]
    tails = "".join(f',\n  "{name}": {_rows(row[name], "  ")}' for name in many)
    return f" {head}{tails}}}"


def render(seed: Seed) -> str:
    """Write the file so that a person can read it and a diff shows what changed."""
    data = seed.model_dump(mode="json")
    everybodys = [{name: value for name, value in one.items() if name != "tenant_id"} for one in data["policies"]]
    policies = ",\n".join(_block(policy, ("rules",)) for policy in everybodys)
    orders = ",\n".join(_block(order, ("lines", "returns")) for order in data["orders"])
    return (
        f'{{"snapshot": {_one_line(data["snapshot"])},\n'
        f'"policies": [\n{policies}],\n'
        f'"orders": [\n{orders}],\n'
        f'"recipients": {_rows(data["recipients"], "")}}}\n'
    )


def main() -> None:
    """Write the file beside this module."""
    SHOP.write_text(render(shop()), encoding="utf-8")


if __name__ == "__main__":
    main()
