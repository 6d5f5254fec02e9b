"""What the edge answers when a request goes no further: an HTTP status with a JSON-RPC error in one shape.

Every refusal carries a row of `shared_contracts.errors` as its data, so that an MCP client raises it with its code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from shared_contracts.errors import ERRORS, error_body

RpcId = str | int | None


def error_number(status: int) -> int:
    """Give the JSON-RPC code of an HTTP status; ours lie outside the range that the protocol reserves."""
    return -(31_000 + status)


def refusal(
    status: int,
    code: str,
    message: str | None = None,
    rpc_id: RpcId = None,
    details: Mapping[str, Any] | None = None,
) -> Response:
    """Refuse with a row of the error table; `message` defaults to the row's own sentence."""
    text = ERRORS[code].meaning if message is None else message
    return _answer(
        status, error_number(status), rpc_id, error_body(code, text, None if details is None else dict(details))
    )


def protocol_fault(
    number: int, text: str, rpc_id: RpcId = None, code: str = "invalid_request", more: Mapping[str, Any] | None = None
) -> Response:
    """Refuse a body with the error code that the protocol itself defines for its fault; `more` stands beside ours."""
    return _answer(400, number, rpc_id, {**error_body(code, text), **({} if more is None else more)})


def _answer(status: int, number: int, rpc_id: RpcId, data: dict[str, Any]) -> Response:
    error = {"code": number, "message": data["message"], "data": data}
    body = json.dumps({"jsonrpc": "2.0", "id": rpc_id, "error": error}, separators=(",", ":"))
    return Response(body, status, media_type="application/json")
