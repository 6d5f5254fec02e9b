"""One request body to one JSON-RPC message, read strictly before anything acts on it.

Invariant: the check reads what the handler will read. A batch, a repeated member, an id of another type than string
or integer, a call without an id, or a body of one protocol revision under the header of another goes no further.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from shared_contracts.strict_json import NotJsonError, strict_json
from tool_server.answers import RpcId

_NOTIFICATIONS = "notifications/"
_ID_MAX = 2**63
_OBJECT = (dict, type(None))
CALL = "tools/call"
SERVED = tuple(reversed(KNOWN_PROTOCOL_VERSIONS))  # the newest first; the library has no switch for any of them


@dataclass(frozen=True, slots=True)
class Message:
    """What the edge needs to know of a message; `tool` is the called tool's name, as the caller wrote it."""

    rpc_id: RpcId
    method: str
    tool: str | None

    @property
    def is_notification(self) -> bool:
        """Tell whether nobody waits for an answer; none of them does anything here."""
        return self.method.startswith(_NOTIFICATIONS)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the body is no message that is served; `number` is the protocol's own code, `tool` what it would call.

    `code` is our own row of it, `more` what the protocol wants told beside that.
    """

    number: int
    text: str
    rpc_id: RpcId = None
    tool: str | None = None
    code: str = "invalid_request"
    more: Mapping[str, Any] | None = None


def read_message(body: bytes, versions: list[str]) -> Message | Fault:
    """Read the body; `versions` are the values of the protocol-version header, usually one."""
    try:
        value = strict_json(body)
    except NotJsonError as error:
        return Fault(PARSE_ERROR, f"Parse error: {error}.")
    if not isinstance(value, dict):
        return Fault(INVALID_REQUEST, "The body must be one JSON-RPC object; batches are not served.")
    fault = _envelope_fault(value) or _version_fault(value, versions)
    return _message(value) if fault is None else replace(fault, tool=_tool(value))


def _message(value: dict[str, Any]) -> Message:
    return Message(rpc_id=value.get("id"), method=value["method"], tool=_tool(value))


def _tool(value: dict[str, Any]) -> str | None:
    params = value.get("params") if value.get("method") == CALL else None
    name = params.get("name") if isinstance(params, dict) else None
    return name if isinstance(name, str) else None


def _envelope_fault(value: dict[str, Any]) -> Fault | None:
    method, params = value.get("method"), value.get("params", {})
    if value.get("jsonrpc") != "2.0" or not isinstance(method, str) or not isinstance(params, dict):
        return Fault(INVALID_REQUEST, "The body must be a JSON-RPC 2.0 request or notification with object params.")
    if "result" in value or "error" in value:  # what we take for a request, the protocol's own code takes for an answer
        return Fault(INVALID_REQUEST, "A request has no result and no error.")
    if "id" not in value:
        if method.startswith(_NOTIFICATIONS):
            return None
        return Fault(INVALID_REQUEST, "A request needs an id; without one nothing is executed.")
    if not _is_id(value["id"]):
        return Fault(INVALID_REQUEST, "The id must be a string or an integer of 64 bits.")
    if method == CALL and not (isinstance(params.get("name"), str) and isinstance(params.get("arguments"), _OBJECT)):
        text = "tools/call needs a name (string) and arguments (object)."
        return Fault(INVALID_PARAMS, text, value["id"])
    return None


def _is_id(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, str) or (isinstance(value, int) and -_ID_MAX <= value < _ID_MAX)


def _version_fault(value: dict[str, Any], versions: list[str]) -> Fault | None:
    """The header routes the request, so a body that names a revision must name the header's."""
    meta = value.get("params", {}).get("_meta")
    named = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
    if len(versions) > 1 or (named is not None and versions != [named]):
        text = "The MCP-Protocol-Version header does not match the protocol version in the body."
        return Fault(HEADER_MISMATCH, text, value.get("id"))
    if versions and versions[0] not in SERVED:
        told = {"supported": list(SERVED), "requested": versions[0]}
        text = "This server does not speak the protocol version that the request names."
        return Fault(UNSUPPORTED_PROTOCOL_VERSION, text, value.get("id"), code="version_mismatch", more=told)
    return None
