"""Whether a person's signed yes permits this very return, as our own tables have it at this moment.

Nothing is taken from the host's word but the workflow's version: the action is built again from the order, its rules,
its destination and the arguments that came over the wire, under the order's lock. Invariant: any text gives an event
that holds or a refusal with its reason; it never raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from shared_contracts.approval import (
    Action,
    ApprovalEvent,
    Name,
    Request,
    TrustedApprover,
    Void,
    VoidError,
    action_digest,
    held_against,
    opened,
    public_key,
)
from shared_contracts.base import Money, dump
from tool_server.call import Call, Refused, refused
from tool_server.store import approvals as store
from tool_server.store.pool import Connection

log = structlog.get_logger()
NOTHING_MORE: Mapping[str, Any] = MappingProxyType({})


async def approved(
    connection: Connection, call: Call, text: str, stated: dict[str, Any], refund: Money
) -> ApprovalEvent | Refused:
    """Give the event that permits paying back `refund` for what `policies.facts` stated, or why it does not."""
    now, trusted = await store.trusted(connection, call)
    keys = {one.key.kid: _owned(one) for one in trusted}
    try:
        event = opened(text, keys.get)
    except VoidError as error:
        return void(call, error.why, None)
    version = call.details.approved_version
    if version is None:  # the host does not say for which version; its tokens always do
        return void(call, Void.OTHER_VERSION, event)
    action = _action(call, stated, refund)
    why = held_against(event, _asked(call, version, action), [one.approver for one in trusted], now)
    if why is Void.OTHER_ACTION:
        return void(call, why, event, {"action": dump(action)})
    return event if why is None else void(call, why, event)


def void(call: Call, why: Void, event: ApprovalEvent | None, details: Mapping[str, Any] = NOTHING_MORE) -> Refused:
    """Refuse for an approval that is void; `event` is what its signature proved to be said, None where none held.

    Where the action is another one by now, `details` tells what it would be, for the host to ask again about.
    """
    claims = call.caller.claims
    known = {"tenant": claims.tenant_id, "jti": claims.jti} | ({} if event is None else {"event_id": event.event_id})
    log.warning("approval_refused", reason=why.value, **known)
    return refused("approval_refused", {"reason": why.value, **details}, event)


def _action(call: Call, stated: dict[str, Any], refund: Money) -> Action:
    return Action(
        tenant_id=call.caller.claims.tenant_id,
        resource=call.arguments[call.tool.resource_argument],
        tool=call.tool.name,
        contract_version=call.tool.version,
        arguments=call.arguments,
        amount=refund,
        destination_ref=stated["destination_ref"],
        order_version=stated["version"],
        policy_version=stated["rule_version"],
    )


def _asked(call: Call, version: int, action: Action) -> Request:
    claims = call.caller.claims
    return Request(
        workflow_id=claims.task_id,
        version=version,
        tenant_id=claims.tenant_id,
        subject=claims.sub,
        tool=action.tool,
        resource=action.resource,
        action_digest=action_digest(action),
        amount=action.amount,
    )


def _owned(trusted: TrustedApprover) -> tuple[Name, Ed25519PublicKey]:
    return trusted.approver.name, public_key(trusted.key.x)
