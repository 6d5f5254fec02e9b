"""Handlers that forget whose the rows are that they ask for: every condition on tenant, customer, order, case, return
and document is taken out of the statements and of the database's own functions. Keys stay: they tell effects apart.

with careless_statements(): ...                  # in this process
make_careless(dsn)                               # the functions of a database, for good
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString, cast

import psycopg

from tool_server.store import approvals, calls, notices, returns
from tool_server.tools import claims, orders, policies

STATEMENTS = {
    "approvals": approvals.APPROVALS,
    "calls": calls.CALLS,
    "claims": claims.CLAIMS,
    "notices": notices.NOTICES,
    "orders": orders.ORDERS,
    "policies": policies.POLICIES,
    "returns": returns.RETURNS,
}
CONDITION = re.compile(
    r"(?:\b\w+\.)?\b(?:tenant|customer|claimant|order|case|return|document)_id = (?P<given>[^,;\s]+(?: ->> '\w+')?)"
)
GIVEN = re.compile(r"%\(\w+\)s|call|within|tenant|customer|the_order|the_return")
OWNED = "CREATE OR REPLACE FUNCTION calls.owned(call jsonb) RETURNS boolean LANGUAGE sql STABLE RETURN true"
# Those that work with their owner's rights have the bounds within themselves, and lose none of them here.
FUNCTIONS = """
SELECT pg_get_functiondef(p.oid) FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname IN ('calls', 'orders', 'policies', 'returns', 'notices', 'document') AND NOT p.prosecdef
  AND p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')"""


def forgetful(statement: str) -> str:
    """The statement without the conditions that compare a row with something of the call; joins stay."""
    return CONDITION.sub(_forget, statement)


def _forget(found: re.Match[str]) -> str:
    given = found["given"]
    if GIVEN.match(given) is None:
        return found[0]
    return "true" + ")" * (given.count(")") - given.count("("))


@contextmanager
def careless_statements() -> Iterator[int]:
    """Give how many statements have lost something."""
    kept = {concept: dict(known) for concept, known in STATEMENTS.items()}
    lost = 0
    try:
        for known in STATEMENTS.values():
            for name, text in known.items():
                known[name] = cast("LiteralString", forgetful(text))
                lost += known[name] != text
        yield lost
    finally:
        for concept, known in STATEMENTS.items():
            known.update(kept[concept])


def make_careless(dsn: str) -> int:
    """Have the database's own functions forget too, and take every order for the caller's; gives how many lost one."""
    with psycopg.connect(dsn) as owner:
        functions = [text for (text,) in owner.execute(FUNCTIONS).fetchall()]
        changed = [forgetful(text) for text in functions if forgetful(text) != text]
        for text in [*changed, OWNED]:
            owner.execute(cast("LiteralString", text))
    return len(changed)
