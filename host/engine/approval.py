"""What a stored call asks an approver, and whether the answer that is there permits it now. Pure.

The host holds an event against the request that it stored, with keys and rights of its own, at every dispatch; the
tool server does the same with its own. A void approval sends nothing.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from host.domain.state import Asked, CallRecord, State
from host.domain.workflow import Workflow
from host.engine.parts import Parts
from shared_contracts.approval import (
    Action,
    Name,
    Request,
    Void,
    VoidError,
    action_digest,
    held_against,
    opened,
    public_key,
)
from shared_contracts.contract import Tool
from shared_contracts.digest import digest


def action_of(workflow: Workflow, state: State, tool: Tool, call: CallRecord) -> Action | None:
    """Say what an approver would decide; None where the evidence does not tell all of it."""
    known = None if workflow.approvable is None else workflow.approvable(state.evidence.seen())
    if known is None:
        return None
    return Action(
        tenant_id=state.task.tenant_id,
        resource=state.task.resource,
        tool=tool.name,
        contract_version=tool.version,
        arguments=dict(call.arguments),
        amount=known.amount,
        destination_ref=known.destination_ref,
        order_version=known.order_version,
        policy_version=known.policy_version,
    )


def request_of(state: State, asked: Asked) -> Request:
    """Say what an event has to be about: the newest request of this workflow."""
    task = state.task
    return Request(
        workflow_id=str(task.workflow_id),
        version=asked.version,
        tenant_id=task.tenant_id,
        subject=task.principal,
        tool=asked.action.tool,
        resource=asked.action.resource,
        action_digest=asked.action_digest,
        amount=asked.action.amount,
    )


def void(parts: Parts, state: State, tool: Tool, call: CallRecord) -> Void | None:
    """Tell why no approval permits this call; None where one does."""
    asked = state.evidence.asked
    if asked is None or asked.event is None:
        return Void.NO_APPROVER
    action = asked.action
    if action_digest(action) != asked.action_digest or action.contract_version != tool.version:
        return Void.OTHER_ACTION
    if action.tool != call.tool or digest(action.arguments) != digest(dict(call.arguments)):
        return Void.OTHER_ACTION
    try:
        event = opened(asked.event, lambda kid: _key(state, kid))
    except VoidError as error:
        return error.why
    if asked.expires_at <= asked.read_at:
        return Void.EXPIRED
    return held_against(event, request_of(state, asked), parts.authorization.approvers, asked.read_at)


def _key(state: State, kid: str) -> tuple[Name, Ed25519PublicKey] | None:
    """Give the key that the event was recorded under, while it is not revoked."""
    known = None if state.evidence.asked is None else state.evidence.asked.key
    if known is None or known[0] != kid:
        return None
    return known[1], public_key(known[2])
