"""Brings the shop to where a tool can be called: what a good call is about is there, or is made."""

from __future__ import annotations

import asyncio
from typing import Any

from shared_contracts.contract import Tool
from tests.support.tool_shop import Shop, ask, given
from tool_server.demo.generate import SHOP
from tool_server.dispatch import Dispatcher
from tool_server.loads import load_file

# A good value for each argument that a tool takes, as the demo and the orders of tests have it: a new one is a line.
GOOD: dict[str, Any] = {
    "order_id": "A-1",
    "lines": [{"line_id": "L1", "quantity": 1}],
    "reason": "changed_mind",
    "return_id": "R-1",
    "corrects": "<m-1@mail.example>",
    "case_id": "C-102",
    "rule_set": "motor-claim-standard@2026.1",
    "document_id": "DOC-C102-003",
}
# by the argument that names the object
OWNERS: dict[str, dict[str, str]] = {
    "order_id": {"tenant": "acme", "customer": "C-1"},
    "case_id": {"tenant": "anshin-jp", "customer": "P-3002"},
}
ORDER = {"order_id": GOOD["order_id"]}
RETURN = {"lines": GOOD["lines"], "reason": GOOD["reason"]}


def good(tool: Tool) -> dict[str, Any]:
    """Arguments that fit the tool's schema; one that nobody has named a value for is a KeyError."""
    return {name: GOOD[name] for name in tool.arguments.model_fields}


def owner_of(tool: Tool) -> dict[str, str]:
    """Whose the object is."""
    return OWNERS[tool.resource_argument]


async def prepared(tools: Dispatcher, tool: Tool) -> dict[str, Any]:
    """Arguments that are good for the tool now: what has to be made first is made."""
    arguments = good(tool)
    if "return_id" in arguments:
        arguments["return_id"] = await made_return(tools)
    if "corrects" in arguments:
        arguments["corrects"] = await sent_notice(tools, arguments["return_id"])
    return arguments


def with_demo(shop: Shop) -> None:
    """Give a shop that has orders of its own the demo's data of every other business."""
    for file in sorted(set(SHOP.parent.glob("*.json")) - {SHOP}):
        asyncio.run(load_file(shop.database.owner, file))


async def made_return(tools: Dispatcher, key: str = "prepared-return", **changes: Any) -> str:
    answer = await ask(tools, "create_return", {**ORDER, **RETURN, **changes}, key=key)
    return str(given(answer)["return_id"])


async def sent_notice(tools: Dispatcher, return_id: str, key: str = "prepared-notice") -> str:
    answer = await ask(tools, "send_return_notice", {**ORDER, "return_id": return_id}, key=key)
    return str(given(answer)["message_id"])


def effects_of(shop: Shop, key: str) -> int:
    """How many effects a key has: rows of every family, and never more mails than rows."""
    rows = shop.one(
        "SELECT (SELECT count(*) FROM returns.returns WHERE idempotency_key = %s)"
        " + (SELECT count(*) FROM returns.cancellations WHERE idempotency_key = %s)"
        " + (SELECT count(*) FROM notices.outbox WHERE idempotency_key = %s)",
        key, key, key,
    )  # fmt: skip
    assert len(shop.mails()) <= shop.one("SELECT count(*) FROM notices.outbox")
    return int(rows)
