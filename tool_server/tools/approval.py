"""Whether a person's signed yes permits this very return, as our own tables have it at this moment.

Nothing is taken from the host's word but the workflow's version: the action is built again from the order, its rules,
its destination and the arguments that came over the wire, under the order's lock. Invariant: any text gives an event
that holds or a refusal with its reason; it never raises.
"""

from __future__ import annotations

import base64
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
)
from shared_contracts.base import Money
from tool_server.call import Call, Refused, refused
from tool_server.store import approvals as store
from tool_server.store.pool import Connection

log = structlog.get_logger()


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
    why = held_against(event, _asked(call, version, stated, refund), [one.approver for one in trusted], now)
    return event if why is None else void(call, why, event)


def void(call: Call, why: Void, event: ApprovalEvent | None) -> Refused:
    """Refuse for an approval that is void; `event` is what its signature proved to be said, None where none held."""
    event_id = None if event is None else event.event_id
    claims = call.caller.claims
    log.warning("approval_refused", reason=why.value, event=event_id, tenant=claims.tenant_id, jti=claims.jti)
    return refused("approval_refused", {"reason": why.value}, event)


def _asked(call: Call, version: int, stated: dict[str, Any], refund: Money) -> Request:
    claims = call.caller.claims
    resource = call.arguments[call.tool.resource_argument]
    action = Action(
        tenant_id=claims.tenant_id,
        resource=resource,
        tool=call.tool.name,
        contract_version=call.tool.version,
        arguments=call.arguments,
        amount=refund,
        destination_ref=stated["destination_ref"],
        order_version=stated["version"],
        policy_version=stated["rule_version"],
    )
    return Request(
        workflow_id=claims.task_id,
        version=version,
        tenant_id=claims.tenant_id,
        subject=claims.sub,
        tool=call.tool.name,
        resource=resource,
        action_digest=action_digest(action),
        amount=refund,
    )


def _owned(trusted: TrustedApprover) -> tuple[Name, Ed25519PublicKey]:
    raw = base64.urlsafe_b64decode(trusted.key.x + "=")
    return trusted.approver.name, Ed25519PublicKey.from_public_bytes(raw)
