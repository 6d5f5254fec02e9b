"""A read: one statement that gates, answers and logs; every family's reads pass through here.

Invariant: `not_found` is one and the same answer for what does not exist and for what is another's.
"""

from __future__ import annotations

from typing import Any, LiteralString

from tool_server.call import Answer, Answered, Call, refused
from tool_server.store.calls import call_text
from tool_server.store.pool import Pool


async def read(pool: Pool, query: LiteralString, call: Call, **more: Any) -> Answer:
    """Run a query that gives `code, result`, bounded by the token's tenant, customer and resource."""
    code, result = await pool.one(query, {"call": call_text(call), **bounds(call), **more})
    return answer(code, result)


def bounds(call: Call) -> dict[str, Any]:
    """Give the parameters that bound every data query."""
    return {
        "tenant": call.caller.claims.tenant_id,
        "customer": call.details.customer,
        "resource": call.arguments[call.tool.resource_argument],
    }


def answer(code: str | None, result: dict[str, Any] | None) -> Answer:
    """Turn what the database decided into an answer; a refusal's object becomes its details."""
    if code is None:
        return Answered({} if result is None else result)
    details = {} if result is None else {name: value for name, value in result.items() if name != "refused"}
    return refused(code, details)
