"""Statements about approvals that run inside the transaction of a return; none commits."""

from __future__ import annotations

from datetime import datetime

from shared_contracts.approval import ApprovalEvent, TrustedApprover
from shared_contracts.base import parse
from tool_server.call import Call
from tool_server.store.pool import Connection, one
from tool_server.store.queries import queries

APPROVALS = queries("approvals")


async def trusted(connection: Connection, call: Call) -> tuple[datetime, tuple[TrustedApprover, ...]]:
    """Give the database's time, and whom the call's tenant trusts at it: nobody of another, nobody who was revoked."""
    now, rows = await one(connection, APPROVALS["trusted"], {"tenant": call.caller.claims.tenant_id})
    return now, tuple(parse(TrustedApprover, row) for row in rows)


async def use_event(connection: Connection, call: Call, event: ApprovalEvent) -> bool:
    """Record the event as used by the call's key, whose return must be there; False where it was used before."""
    parameters = {
        "tenant": call.caller.claims.tenant_id,
        "key": call.details.idempotency_key,
        "event": event.event_id,
        "approver": event.approver,
    }
    return (await connection.execute(APPROVALS["use_event"], parameters)).rowcount == 1
