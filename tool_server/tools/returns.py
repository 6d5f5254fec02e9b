"""The return family: one return number per business intention, however often and from wherever it is asked for.

A write is one transaction: claim (gate, key, attempt, single-use token) → the order's lock → facts of our own
tables → the decision table → the approval → return, counters, the approval's use, log → COMMIT. A refusal rolls all of
it back, so that neither the key nor the token nor the approval is spent. A replay answers with the effect as it stands
now: a return that was cancelled since is told as cancelled, since a caller that believes in it would send its number
to the customer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from shared_contracts.approval import ApprovalEvent, Void
from shared_contracts.base import parse
from shared_contracts.returns import (
    CreateReturn,
    ReturnFacts,
    Ruling,
    RulingOutcome,
    rule,
)
from tool_server.call import Answer, Answered, Call, Refused, refused
from tool_server.store import approvals
from tool_server.store import returns as store
from tool_server.store.calls import claim, refuse
from tool_server.store.pool import Connection, Pool
from tool_server.store.reading import answer, read
from tool_server.tools import Handler
from tool_server.tools.approval import approved, void
from tool_server.tools.facts import facts_of

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's: nothing that is misread over a telephone


async def create_return(pool: Pool, call: Call) -> Answer:
    """Issue a return number, if the rules allow it under the order's lock."""
    return await _write(pool, call, _create)


async def cancel_return(pool: Pool, call: Call) -> Answer:
    """Cancel a return whose label was not used, and free its units."""
    return await _write(pool, call, _cancel)


async def get_return(pool: Pool, call: Call) -> Answer:
    """Read one return of the order."""
    return await read(pool, store.RETURNS["get_return"], call, return_id=call.arguments["return_id"])


async def get_return_links(pool: Pool, call: Call) -> Answer:
    """Read what other systems have hung on a return."""
    return await read(pool, store.RETURNS["get_return_links"], call, return_id=call.arguments["return_id"])


async def find_return(pool: Pool, call: Call) -> Answer:
    """Look up what a key did; where it did nothing, its attempts up to the token's can no longer act."""
    return await read(pool, store.RETURNS["find_return"], call)


def return_number(tenant: str, key: str) -> str:
    """Derive the number from the key: 60 bits, so that even a doubled issue could not give a second number."""
    bits = int.from_bytes(hashlib.sha256(f"{tenant}\n{key}".encode()).digest()[:8])
    letters = "".join(_ALPHABET[(bits >> shift) & 31] for shift in range(0, 60, 5))
    return f"R-{letters[:4]}-{letters[4:8]}-{letters[8:]}"


async def _write(pool: Pool, call: Call, act: Callable[[Connection, Call], Awaitable[Answer]]) -> Answer:
    async def work(connection: Connection) -> tuple[bool, Answer]:
        code, acted_before = await claim(connection, call)
        if code is not None:
            return False, refused(code)
        if acted_before:
            return True, Answered(await store.replay(connection, call))
        done = await act(connection, call)
        return isinstance(done, Answered), done

    done = await pool.transact(work)
    if isinstance(done, Refused):
        code = await refuse(pool, call, done.code, done.approval)
        return done if code == done.code else refused(code)
    return done


async def _create(connection: Connection, call: Call) -> Answer:
    asked = parse(CreateReturn, call.arguments)
    stated = await store.locked_facts(connection, call)
    if stated is None or "refused" in stated:
        return answer("not_found" if stated is None else stated["refused"], stated)
    facts = facts_of(stated, asked.lines, asked.reason)
    permitted = await _permitted(connection, call, stated, facts)
    if isinstance(permitted, Refused):
        return permitted
    number = return_number(call.caller.claims.tenant_id, str(call.details.idempotency_key))
    made = await store.issue(connection, call, _ruled(number, stated, facts), permitted)
    if permitted is not None and not await approvals.use_event(connection, call, permitted):
        return void(call, Void.USED, permitted)
    return Answered(made)


async def _permitted(
    connection: Connection, call: Call, stated: dict[str, Any], facts: ReturnFacts
) -> ApprovalEvent | Refused | None:
    """Give the approval that permits the return, None where it needs none, or the refusal.

    An approval that comes is held to all its rules and spent, also where none is needed: nothing that somebody signed
    is ever looked away from, and none is left over for another day.
    """
    ruling = rule(facts, frozenset())
    given = call.details.approval
    match ruling.outcome:
        case RulingOutcome.APPROVAL | RulingOutcome.ELIGIBLE if given is not None:
            return await approved(connection, call, given, stated, facts.refund)
        case RulingOutcome.ELIGIBLE:
            return None
        case _:
            return _refusal(ruling)


async def _cancel(connection: Connection, call: Call) -> Answer:
    await store.lock_order(connection, call)
    return answer(*await store.cancel(connection, call, call.arguments["return_id"]))


def _refusal(ruling: Ruling) -> Refused:
    match ruling:
        case Ruling(RulingOutcome.APPROVAL):
            code = "approval_required"
        case Ruling(reason="already_returned"):
            code = "quantity_gone"
        case _:
            code = "not_eligible"
    return refused(code, {"reason": ruling.reason, "outcome": ruling.outcome.value})


def _ruled(number: str, stated: dict[str, Any], facts: ReturnFacts) -> dict[str, Any]:
    return {
        "return_id": number,
        "reason": facts.reason.value,
        "currency": facts.refund.currency,
        "refund": facts.refund.amount,
        "shipping_refund": facts.shipping_refund.amount,
        "return_fee": facts.return_fee.amount,
        "rule_version": stated["rule_version"],
        "order_version": stated["version"],
        "requested_at": stated["requested_at"],
        "lines": [
            {"line_id": line.line_id, "quantity": line.requested, "refund": line.refund.amount} for line in facts.lines
        ],
    }


HANDLERS: dict[str, Handler] = {
    "create_return": create_return,
    "cancel_return": cancel_return,
    "get_return": get_return,
    "get_return_links": get_return_links,
    "find_return": find_return,
}
