"""The policy family: `check_return_policy` states facts and the rules' version, and gives no verdict."""

from __future__ import annotations

from shared_contracts.base import dump, parse
from shared_contracts.policies import CheckReturnPolicy, PolicyFacts
from tool_server.call import Answer, Answered, Call, Refused
from tool_server.store.pool import Pool
from tool_server.store.queries import queries
from tool_server.store.reading import read
from tool_server.tools import Handler
from tool_server.tools.facts import facts_of

POLICIES = queries("policies")


async def check_return_policy(pool: Pool, call: Call) -> Answer:
    """Read the facts of a request, from the same definition that `create_return` uses."""
    asked = parse(CheckReturnPolicy, call.arguments)
    answer = await read(pool, POLICIES["check_return_policy"], call, requested_at=call.details.requested_at)
    match answer:
        case Refused():
            return answer
        case Answered(stated):
            facts = PolicyFacts(
                order_id=asked.order_id,
                rule_version=stated["rule_version"],
                rule_owner=stated["rule_owner"],
                order_version=stated["version"],
                snapshot=stated["snapshot"],
                facts=facts_of(stated, asked.lines, asked.reason),
                evidence_ref=f"policy://{stated['rule_version']}/{asked.order_id}@{stated['version']}",
            )
            return Answered(dump(facts))


HANDLERS: dict[str, Handler] = {"check_return_policy": check_return_policy}
