"""What the database's own bounds cost a read, and what the time of an answer tells of an order that is another's.

The same statement runs as the family's role, which the policies hold, and as the owner, whom they do not: by turns, on
two sessions of one database, so that the difference is theirs alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import Any, LiteralString

import psycopg
from psycopg.rows import TupleRow

from host.stack.roles import Side
from shared_contracts.tools import TOOLS
from tests.bench.cpu import cpu_ms, percentile
from tests.bench.figures import Figure
from tests.bench.shop import TENANT, case
from tests.bench.stand import Stand
from tests.support.tool_shop import caller
from tool_server.call import Call
from tool_server.store.calls import call_text
from tool_server.store.queries import queries
from tool_server.store.reading import bounds

ROUNDS, BATCH = 12, 250
WHOSE = ("its own", "another's", "missing")
LINES = {"lines": [{"line_id": "L1", "quantity": 1}], "reason": "changed_mind"}
READS: dict[str, tuple[str, dict[str, Any]]] = {"get_order": ("orders", {}), "check_return_policy": ("policies", LINES)}
SESSION = "-c enable_seqscan=off"  # as the server's own


@dataclass
class _Measured:
    """One session; `cpu` and `wall` are microseconds per statement, a batch each."""

    connection: psycopg.Connection[TupleRow]
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)


async def measure(made: Stand) -> list[Figure]:
    """Each read as its role and as the owner, then found, another's and missing."""
    return [figure for name in READS for figure in _read(made, name)]


def _read(made: Stand, name: str) -> list[Figure]:
    family, more = READS[name]
    query = queries(family)[name]
    with _session(made, f"tools_{family}") as bound, _session(made, "tools_owner") as free:
        sessions = _Measured(bound), _Measured(free)
        for number in range(ROUNDS):
            for one in sessions:
                _batch(one, query, [_asked(name, more, number * BATCH + at) for at in range(BATCH)])
        held, open_ = (min(one.cpu[1:]) for one in sessions)
        told = _told(bound, query, name, more)
    return [
        Figure(f"{name}: CPU of PostgreSQL", held, "µs"),
        Figure("  without the policies", open_, "µs"),
        Figure("  ratio", held / open_),
        *(Figure(f"  {who}: median wall", median(walls), "µs") for who, walls in told.items()),
        *(Figure(f"  {who}: 95th percentile", percentile(walls, 0.95), "µs") for who, walls in told.items()),
    ]


def _session(made: Stand, role: str) -> psycopg.Connection[TupleRow]:
    dsn = made.role(Side.TOOLS, role)
    return psycopg.connect(dsn, autocommit=True, prepare_threshold=0, options=SESSION)


def _batch(one: _Measured, query: LiteralString, asked: list[dict[str, Any]]) -> None:
    pid = one.connection.info.backend_pid
    spent, began = cpu_ms(pid), time.perf_counter()
    for parameters in asked:
        one.connection.execute(query, parameters).fetchone()
    one.wall.append((time.perf_counter() - began) * 1e6 / len(asked))
    one.cpu.append((cpu_ms(pid) - spent) * 1000 / len(asked))


def _told(
    session: psycopg.Connection[TupleRow], query: LiteralString, name: str, more: dict[str, Any]
) -> dict[str, list[float]]:
    """Ask by turns, and give the wall microseconds of each answer by whose the order is."""
    walls: dict[str, list[float]] = {who: [] for who in WHOSE}
    for number in range(BATCH * 4):
        for who, found in walls.items():
            parameters = _asked(name, more, number, who)
            began = time.perf_counter()
            code, _ = session.execute(query, parameters).fetchone() or ("?", None)
            found.append((time.perf_counter() - began) * 1e6)
            if (code is None) != (who == "its own"):
                raise RuntimeError(f"{name} of what is {who} was answered with {code}")
    return walls


def _asked(name: str, more: dict[str, Any], number: int, who: str = "its own") -> dict[str, Any]:
    """Name an order of the shop, of its customer, of somebody else's, or none."""
    bought = case(number % 5_000)
    order = f"{bought['order_id']}-none" if who == "missing" else bought["order_id"]
    customer = "C-nobody" if who == "another's" else bought["customer_id"]
    arguments = {"order_id": order, **more}
    who_calls = caller(name, arguments, tenant=TENANT, customer=customer)
    details = who_calls.claims.authorization_details[0]
    call = Call(who_calls, details, TOOLS[name], arguments, "0" * 64, time.perf_counter())
    return {"call": call_text(call), **bounds(call), "requested_at": details.requested_at}
