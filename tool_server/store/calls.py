"""The gate, the claim and the log that every call passes; the log keeps digests, never arguments.

Invariant: a call's log row is written in the statement or transaction that decided it.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, LiteralString

import orjson

from shared_contracts.approval import ApprovalEvent
from shared_contracts.task_token import CallDetails
from tool_server.call import Call, Caller
from tool_server.store.bounds import Bounds, bounds_of
from tool_server.store.pool import Connection, Parameters, Pool, Row, one
from tool_server.store.queries import queries

CALLS = queries("calls")
_TOOL_NAME_MAX = 80  # what a stranger calls a tool that does not exist


def call_text(call: Call, approval: ApprovalEvent | None = None) -> str:
    """Give the JSON of a call as the database's functions read it; `approval` is the event that it came with."""
    known = _who(call.caller, call.details, call.started) | {
        "tool": call.tool.name,
        "version": call.tool.version,
        "resource": call.arguments[call.tool.resource_argument],
        "arguments_sha256": call.arguments_sha256,
        "approval_event": None if approval is None else approval.event_id,
        "approver": None if approval is None else approval.approver,
    }
    return orjson.dumps(known).decode()


async def claim(connection: Connection, call: Call) -> tuple[str | None, bool]:
    """Claim the call's key and token; give the code of a refusal, and whether the key had acted before."""
    code, replayed = await one(connection, CALLS["claim"], {"call": call_text(call)})
    return code, bool(replayed)


async def refuse(pool: Pool, call: Call, code: str, approval: ApprovalEvent | None = None) -> str:
    """Log a refusal that was decided outside of SQL; give its code, or the gate's, which outranks it."""
    (decided,) = await pool.one(CALLS["refuse"], {"call": call_text(call, approval), "refusal": code})
    return str(decided)


async def refuse_early(
    pool: Pool, caller: Caller, name: str, version: str | None, arguments_sha256: str | None, code: str, started: float
) -> str:
    """Log a refusal of a call that never became one: an unknown tool, bad arguments, another's token."""
    claimed = caller.claims.authorization_details
    details = claimed[0] if claimed else None
    said = _who(caller, details, started) | {
        "tool": name.replace("\x00", "").encode("ascii", "backslashreplace").decode()[:_TOOL_NAME_MAX],
        "version": version,
        "resource": None if details is None else details.resource,
        "arguments_sha256": arguments_sha256,
    }
    (decided,) = await pool.one(CALLS["refuse"], {"call": orjson.dumps(said).decode(), "refusal": code})
    return str(decided)


async def run_within(
    connection: Connection, bounds: Bounds, query: LiteralString, parameters: Parameters
) -> Row | None:
    """Run one statement within bounds that no call brings along, in a transaction of its own; give its row."""
    async with connection.transaction():
        await one(connection, CALLS["enter"], {"within": bounds.text()})
        return await (await connection.execute(query, parameters)).fetchone()


async def disabled(pool: Pool) -> frozenset[str]:
    """Name the tools that an operator has removed."""
    (names,) = await pool.one(CALLS["disabled"], {})
    return frozenset(names)


async def token_fault(pool: Pool, caller: Caller) -> str | None:
    """Give the code for which a token is refused that asks for no call; a call's own statement looks for itself."""
    (code,) = await pool.one(CALLS["token_fault"], {"kid": caller.kid, "jti": caller.claims.jti})
    return None if code is None else str(code)


async def forget_tokens(pool: Pool) -> int:
    """Forget a batch of used tokens that have long expired; give how many."""
    (forgotten,) = await pool.one(CALLS["forget_tokens"], {})
    return int(forgotten)


async def schema_state(pool: Pool) -> int:
    """Give the number of the newest migration that the database has."""
    (version,) = await pool.one(CALLS["schema_state"], {})
    return int(version)


def _who(caller: Caller, details: CallDetails | None, started: float) -> dict[str, Any]:
    claims, within = caller.claims, bounds_of(caller.claims, details)
    return {
        "iss": claims.iss,
        "sub": claims.sub,
        "client_id": claims.client_id,
        "kid": caller.kid,
        "jti": claims.jti,
        "use": claims.use.value,
        "purpose": None if details is None or details.purpose is None else details.purpose.value,
        "tenant": within.tenant,
        "customer": within.customer,
        "reach": within.reach,
        "task_id": within.task_id,
        "key": None if details is None else details.idempotency_key,
        "attempt": None if details is None else details.attempt,
        "spent_us": round((perf_counter() - started) * 1_000_000),
    }
