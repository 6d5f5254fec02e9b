"""What code promises about intents, calls and outcomes, raw SQL cannot break, not even as the owner."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from host.engine.drive import drive
from host.store.ledger import commit_steps
from tests.support.engine import asynchronous, engine, owners, rows, take, untouched
from tests.support.engine import parts as parts_over
from tests.support.fake_tools import FakeTools, rejected
from tests.support.raw_sql import Sql, in_doubt, planning, refused

EFFECT = """
INSERT INTO effect (workflow_id, step, attempt, name, tenant_id, idempotency_key, arguments_sha256, units, decision_n,
                    opened_at{more})
SELECT workflow_id, %(step)s, %(attempt)s, 'create_return', tenant_id, %(key)s, %(digest)s, '{{A-1/1}}', %(n)s,
       clock_now(){values}
  FROM workflow WHERE workflow_id = %(id)s
"""


def open_effect(sql: Sql, workflow_id: UUID, n: int, *, more: str = "", values: str = "", **differs: Any) -> None:
    given = {
        "step": 1,
        "attempt": 1,
        "key": f"k-{workflow_id}",
        "digest": "0" * 64,
        "n": n,
        "id": workflow_id,
        **differs,
    }
    sql.execute(EFFECT.format(more=more, values=values), given)


def decide(sql: Sql, workflow_id: UUID, outcome: str = "allow", tool: str = "create_return") -> int:
    row = sql.execute(
        "INSERT INTO decision (workflow_id, n, subject, rule_version, facts, outcome, reason, at) "
        "SELECT %(id)s, coalesce(max(n), 0) + 1, 'authorization', 'a', "
        "jsonb_build_object('tool_name', %(tool)s::text), "
        "%(outcome)s, 'r', clock_now() FROM decision WHERE workflow_id = %(id)s RETURNING n",
        {"id": workflow_id, "outcome": outcome, "tool": tool},
    ).fetchone()
    assert row is not None
    return int(row[0])


@asynchronous
async def test_invariant_1_no_intent_without_an_allow_decision_of_its_own_transaction():
    async with engine(FakeTools()) as parts:
        workflow_id = await planning(parts)
        with owners(parts) as sql:
            with refused(sql, "KS016"):
                open_effect(sql, workflow_id, 99)
            for outcome in ("deny", "halt", "require_approval"):
                with refused(sql, "KS016"):
                    open_effect(sql, workflow_id, decide(sql, workflow_id, outcome))
            with sql.transaction():
                earlier = decide(sql, workflow_id)
            with refused(sql, "KS016"):
                open_effect(sql, workflow_id, earlier)


@asynchronous
async def test_invariant_1_nobody_writes_by_hand_in_which_transaction_a_decision_or_an_intent_was_made():
    async with engine(FakeTools()) as parts:
        workflow_id = await planning(parts)
        with owners(parts) as sql:
            with sql.transaction():
                earlier = decide(sql, workflow_id)
            row = sql.execute("SELECT committed_in::text FROM decision WHERE n = %s", (earlier,)).fetchone()
            assert row is not None
            with refused(sql, "KS016"):
                open_effect(sql, workflow_id, earlier, more=", committed_in", values=f", '{row[0]}'::xid8")
            with refused(sql, "KS013"):
                sql.execute("UPDATE decision SET committed_in = pg_current_xact_id()")


@asynchronous
async def test_invariant_1_a_business_finding_is_no_permission():
    async with engine(FakeTools()) as parts:
        workflow_id = await planning(parts)
        with owners(parts) as sql, refused(sql, "23514"):
            sql.execute(
                "INSERT INTO decision VALUES (%s, 99, 'business', 'p', '{}', 'allow', 'r', clock_now())", (workflow_id,)
            )


@asynchronous
async def test_invariant_1_no_call_leaves_without_a_permission_for_that_tool_from_its_own_transaction():
    attempt = "INSERT INTO attempt VALUES (%s, 1, 9, 'call', %s, %s, clock_now())"
    async with engine(FakeTools()) as parts:
        workflow_id = await planning(parts)
        with owners(parts) as sql:
            with refused(sql, "KS016"):
                sql.execute(attempt, (workflow_id, "get_order", uuid4().hex))
            with sql.transaction():
                decide(sql, workflow_id, tool="get_order")
            with refused(sql, "KS016"):
                sql.execute(attempt, (workflow_id, "get_order", uuid4().hex))
            with refused(sql, "KS016"):
                decide(sql, workflow_id, tool="get_order")
                sql.execute(attempt, (workflow_id, "create_return", uuid4().hex))


@asynchronous
async def test_the_workers_own_statement_without_the_decision_executes_nothing():
    """Authorization taken out of the step: the very statement that the engine sends is refused."""
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        steps: list[Any] = []

        class Keeping(psycopg.AsyncCursor[Any]):
            async def execute(self, query: Any, params: Any = None, **kwargs: Any) -> Any:
                if "commit_steps(" in str(query):
                    steps.append(params["rows"].obj)
                    raise ZeroDivisionError
                return await super().execute(query, params, **kwargs)

        async with await psycopg.AsyncConnection.connect(
            parts.pool.conninfo, autocommit=True, cursor_factory=Keeping
        ) as connection:

            class One:
                def connection(self) -> Any:
                    return nullcontext(connection)

            with pytest.raises(ZeroDivisionError):
                await drive(await parts_over(One(), FakeTools()), workflow_id)
        (step,) = steps
        without = {name: value for name, value in step.items() if name != "decisions"}
        async with parts.pool.connection() as connection:
            with pytest.raises(Exception, match="nothing allows the call"):
                await commit_steps(connection, without)
        assert await rows(parts, "SELECT count(*) FROM attempt") == [(0,)]


@asynchronous
async def test_invariant_2_at_most_one_effect_is_in_flight_and_an_outcome_is_written_once():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await in_doubt(parts, tools)
        with owners(parts) as sql:
            with refused(sql, "23505"):
                open_effect(sql, workflow_id, decide(sql, workflow_id), step=2, key="another")
            sql.execute("UPDATE effect SET outcome = 'rejected', closed_at = clock_now()")
            for change in (
                "outcome = 'absent'", "outcome = 'succeeded', external_id = 'R-9'", "outcome = NULL, closed_at = NULL",
                "external_id = 'R-9'",
            ):  # fmt: skip
                with refused(sql, "KS014", "23514"):
                    sql.execute(f"UPDATE effect SET {change}")  # noqa: S608 - a change from the list above


@asynchronous
async def test_invariant_2_an_attempts_outcome_is_written_once():
    async with engine(FakeTools()) as parts:
        await drive(parts, await take(parts))
        with owners(parts) as sql:
            for change in ("outcome = 'timeout'", "outcome = NULL, ended_at = NULL", "error = '{}'"):
                with refused(sql, "KS014"):
                    sql.execute(f"UPDATE attempt SET {change}")  # noqa: S608 - a change from the list above


@asynchronous
async def test_invariant_3_one_key_is_one_effect_and_never_another_request():
    tools = FakeTools()
    async with engine(tools) as parts:
        done = await take(parts, request_id="done")
        await drive(parts, done)
        other = await planning(parts)
        with owners(parts) as sql:
            row = sql.execute("SELECT idempotency_key FROM effect WHERE name = 'create_return'").fetchone()
            assert row is not None
            with refused(sql, "23505"):
                open_effect(sql, other, decide(sql, other), key=row[0])
            with refused(sql, "KS015", "23505"):
                open_effect(sql, done, decide(sql, done), key=row[0], attempt=2, digest="1" * 64)
    tools = FakeTools(script={"create_return": [rejected("quantity_gone")]})
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        with owners(parts) as sql:
            row = sql.execute("SELECT idempotency_key, step FROM effect").fetchone()
            assert row is not None
            with refused(sql, "KS015"):
                open_effect(
                    sql, workflow_id, decide(sql, workflow_id), key=row[0], step=row[1], attempt=2, digest="1" * 64
                )


@asynchronous
async def test_a_call_id_is_bound_to_one_step_and_a_tokens_id_to_one_attempt():
    async with engine(FakeTools()) as parts:
        workflow_id = await take(parts)
        await drive(parts, workflow_id)
        with owners(parts) as sql:
            with refused(sql, "23505"):
                sql.execute(
                    "INSERT INTO call (workflow_id, step, call_id, tool, contract_version, arguments, fingerprint, "
                    "execution_state, proposed_at) SELECT workflow_id, 99, call_id, tool, contract_version, arguments, "
                    "fingerprint, 'requested', clock_now() FROM call WHERE step = 1"
                )
            with refused(sql, "23505"):
                decide(sql, workflow_id, tool="get_order")
                sql.execute(
                    "INSERT INTO attempt SELECT workflow_id, step, 99, purpose, tool, jti, started_at FROM attempt "
                    "WHERE step = 1"
                )


@asynchronous
async def test_one_request_of_a_tenant_is_one_workflow():
    async with engine(FakeTools()) as parts:
        await take(parts)
        with owners(parts) as sql, refused(sql, "23505"):
            sql.execute(
                "INSERT INTO workflow SELECT (jsonb_populate_record(w, jsonb_build_object('workflow_id', %s::text))).* "
                "FROM workflow w",
                (str(uuid4()),),
            )


@asynchronous
async def test_a_second_outcome_through_the_engines_own_function_is_refused_as_well():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        state = await drive(parts, workflow_id)
        closed = {
            "workflow_id": str(workflow_id), "step": 3, "attempt": 1, "outcome": "absent", "external_id": None,
            "verified": False, "mismatch": None,
        }  # fmt: skip
        rows = {**untouched(state), "effects_closed": [closed]}
        with owners(parts) as sql, refused(sql, "KS014"):
            sql.execute("SELECT * FROM commit_steps(%s)", (Jsonb(rows),))
