"""Whether a token was minted for this very call: tool, resource, arguments and key. Pure.

Invariant: what a token does not say is refused, never assumed. Only an outside host's reading token may leave
out the tool, the resource and the arguments' digest; what its writes need it must name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared_contracts.contract import FROM_TOKEN, Tool
from shared_contracts.task_token import CallDetails, TaskClaims, Use
from tool_server.call import Refused, refused


def bind(claims: TaskClaims, tool: Tool, arguments: Mapping[str, Any], arguments_sha256: str) -> CallDetails | Refused:
    """Give the details that bound this call, or the first respect in which the token is for another."""
    if claims.use is Use.PROBE or len(claims.authorization_details) != 1:
        return refused("token_for_other_tool")
    details = claims.authorization_details[0]
    outside_read = claims.use is Use.EXTERNAL and not tool.writes
    if not _same(details.tool, tool.name, may_be_absent=outside_read):
        return refused("token_for_other_tool")
    if not _same(details.resource, arguments[tool.resource_argument], may_be_absent=outside_read):
        return refused("token_for_other_resource")
    if not _same(details.arguments_sha256, arguments_sha256, may_be_absent=claims.use is Use.EXTERNAL):
        return refused("token_for_other_arguments")
    return _keyed(claims, tool, details)


def _keyed(claims: TaskClaims, tool: Tool, details: CallDetails) -> CallDetails | Refused:
    if tool.idempotency_key != FROM_TOKEN:
        return details
    if details.idempotency_key is None:
        return refused("key_missing")
    if details.attempt is not None:
        return details
    if claims.use is Use.EXTERNAL:  # an outside host sends an intention and knows nothing of attempts
        return details.model_copy(update={"attempt": 1})
    return refused("key_missing")


def _same(named: str | None, wanted: str, *, may_be_absent: bool) -> bool:
    return may_be_absent if named is None else named == wanted
