"""Which clients that nobody here wrote are tried, in which revision, and what each shows of five acts.

Invariant: every client does every act in every revision that it speaks; what is expected is what its user sees.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.server import LEGACY, MODERN


@dataclass(frozen=True, slots=True)
class Act:
    """`token` is one that reads, or the same when it has expired; `tool` None lists."""

    token: str
    tool: str | None
    arguments: str = "{}"


ACTS = {
    "list": Act("reads", None),
    "read": Act("reads", "get_order", '{"order_id": "A-1001"}'),
    "foreign order": Act("reads", "get_order", '{"order_id": "A-1003"}'),
    "no scope": Act(
        "reads",
        "create_return",
        '{"order_id": "A-1001", "lines": [{"line_id": "L1", "quantity": 1}], "reason": "other"}',
    ),
    "expired token": Act("expired", None),
}


@dataclass(frozen=True, slots=True)
class Client:
    """`era` as the client itself is told of it; `shows` has the exit code of each act and words of its output."""

    name: str
    era: str
    shows: dict[str, tuple[int, tuple[str, ...]]]


_REFUSED = '"code":"not_found"'
_INSPECTOR = {
    "list": (0, ('"name": "create_return"', '"outputSchema"')),
    "read": (0, ('"structuredContent"', '"order_id": "A-1001"')),
    "foreign order": (5, ('"code": "not_found"', '"code":"tool_is_error"')),
    "no scope": (1, (r"Insufficient scope: required \"returns:write\"",)),
}
_TYPESCRIPT = {
    "foreign order": (0, ('"code": "not_found"', '"isError": true')),
    "no scope": (1, ('InsufficientScopeError: Insufficient scope: required "returns:write"',)),
}
_FASTMCP = {
    "foreign order": (1, ('ToolError: {"error":{"code":"not_found"',)),
    "no scope": (1, ("MCPError: The tool needs the scope returns:write.", "'code': 'scope_missing'")),
    "expired token": (1, ("MCPError: The token has expired.", "'code': 'token_invalid'")),
}


def _spoken(revision: str, order: str) -> dict[str, tuple[int, tuple[str, ...]]]:
    return {"list": (0, (revision, "create_return")), "read": (0, (revision, order))}


CLIENTS = (
    Client(
        "inspector", "legacy", _INSPECTOR | {"expired token": (3, ('"code":"auth_required"', "The token has expired."))}
    ),
    Client(
        "inspector",
        "modern",
        _INSPECTOR
        | {
            "read": (0, ('"structuredContent"', '"io.modelcontextprotocol/serverInfo"')),
            "expired token": (3, ('"code":"auth_required"', "the server requires authorization (HTTP 401)")),
        },
    ),
    Client(
        "typescript",
        "legacy",
        _TYPESCRIPT
        | _spoken(LEGACY, '"order_id": "A-1001"')
        | {"expired token": (1, ("SdkHttpError: Error POSTing to endpoint", "The token has expired."))},
    ),
    Client(
        "typescript",
        MODERN,
        _TYPESCRIPT
        | _spoken(MODERN, '"order_id": "A-1001"')
        | {"expired token": (1, ("SdkHttpError: Version negotiation failed: the server requires authorization",))},
    ),
    Client("fastmcp", "legacy", _FASTMCP | _spoken(LEGACY, "'order_id': 'A-1001'")),
    Client("fastmcp", MODERN, _FASTMCP | _spoken(MODERN, "'order_id': 'A-1001'")),
    Client(
        "langchain",
        "legacy",
        _spoken(LEGACY, '"order_id":"A-1001"')
        | {
            "foreign order": (0, (_REFUSED,)),
            "no scope": (1, ("HTTPStatusError: Client error '403 Forbidden'",)),
            "expired token": (1, ("HTTPStatusError: Client error '401 Unauthorized'",)),
        },
    ),
)
