"""One request out, one outcome back: the token's claims, the timeout, and who is told what.

The attempt's `jti` was committed before; a request whose lease has run out meanwhile is not sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from host.domain.outcome import Outcome
from host.domain.state import State
from host.domain.step import key_of
from host.engine.parts import Parts, Request
from shared_contracts.contract import Tool


async def send(parts: Parts, state: State, tool: Tool, arguments: Mapping[str, Any], timeout_seconds: float) -> Outcome:
    """Send the request under way of the call in hand; never raises for what the wire does."""
    task, call, under_way = state.task, state.in_hand(), state.request()
    effect, asked = state.effect_in_hand(), state.evidence.asked
    approved = asked is not None and tool.writes and asked.action.tool == tool.name
    request = Request(
        tool=tool,
        arguments=arguments,
        jti=under_way.jti,
        workflow_id=task.workflow_id,
        tenant_id=task.tenant_id,
        subject=task.principal,
        customer=task.customer,
        resource=task.resource,
        idempotency_key=key_of(task.workflow_id, call.tool) if tool.idempotency_key else None,
        attempt=effect.attempt if effect is not None else call.sends(),
        requested_at=task.requested_at,
        timeout_seconds=timeout_seconds,
        correlation={
            "dev.kessai/workflow_id": str(task.workflow_id),
            "dev.kessai/step_id": f"{task.workflow_id}.{call.step}",
            "dev.kessai/purpose": under_way.purpose,
        },
        approval=asked.event if asked is not None and approved else None,
        approved_version=asked.version if asked is not None and approved else None,
    )
    return await parts.tools.call(request)
