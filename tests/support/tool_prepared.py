"""Brings the shop to where a write tool can be called: one preparation per kind of argument that tools take."""

from __future__ import annotations

from typing import Any

from shared_contracts.contract import Tool
from tests.support.tool_shop import Shop, ask, given
from tool_server.dispatch import Dispatcher

ORDER = {"order_id": "A-1"}
CLAIM = {"case_id": "C-102", "document_id": "DOC-C102-003", "rule_set": "motor-claim-standard@2026.1"}
RETURN = {"lines": [{"line_id": "L1", "quantity": 1}], "reason": "changed_mind"}


async def prepared(tools: Dispatcher, tool: Tool) -> dict[str, Any]:
    """Arguments that are good for the tool now; an argument that no preparation knows is a KeyError."""
    arguments: dict[str, Any] = {}
    for name in tool.arguments.model_fields:
        match name:
            case "order_id":
                arguments |= ORDER
            case "lines" | "reason":
                arguments[name] = RETURN[name]
            case "return_id":
                arguments[name] = await made_return(tools)
            case "corrects":
                arguments[name] = await sent_notice(tools, arguments["return_id"])
            case "case_id" | "document_id" | "rule_set":
                arguments[name] = CLAIM[name]
            case _:
                raise KeyError(name)
    return arguments


def owner_of(tool: Tool) -> dict[str, str]:
    """Whose the prepared object is."""
    claims = tool.resource_argument == "case_id"
    return {"tenant": "anshin-jp", "customer": "P-3002"} if claims else {"tenant": "acme", "customer": "C-1"}


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
