"""What code promises about histories and effects, raw SQL cannot break: as the worker's role, or as the owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from host.domain.proposals import PlannerFault
from host.engine.drive import drive
from host.engine.parts import Parts
from host.store.ledger import commit_step
from tests.support.engine import advance_clock, asynchronous, engage, engine, owners, rows, take
from tests.support.engine import parts as parts_over
from tests.support.fake_tools import FakeTools, rejected, unknown
from tests.support.scripted_planner import ScriptedPlanner

Sql = psycopg.Connection[Any]


@contextmanager
def refused(connection: Sql, *states: str) -> Iterator[None]:
    """The statements, or their commit at the latest, are refused, and nothing of them stays."""
    with pytest.raises(psycopg.Error) as caught, connection.transaction():
        yield
    assert caught.value.sqlstate in states, caught.value


def move_of(connection: Sql, event: str, source: str, control: str | None = None) -> int:
    row = connection.execute(
        "SELECT move_id FROM legal_transition WHERE event = %s AND business_from = %s "
        "AND (%s::text IS NULL OR control_from = %s) ORDER BY move_id LIMIT 1",
        (event, source, control, control),
    ).fetchone()
    assert row is not None
    return int(row[0])


def advance(connection: Sql, state: str, control: str, *, by: int = 1) -> None:
    connection.execute(
        "UPDATE workflow SET seq = seq + %s, version = version + 1, state = %s, control_state = %s",
        (by, state, control),
    )


def append(connection: Sql, move: int, *, ahead: int = 0) -> None:
    connection.execute(
        "INSERT INTO checkpoint SELECT workflow_id, seq + %s, %s, 'raw', '{}', clock_now() FROM workflow", (ahead, move)
    )


async def planning(parts: Parts) -> UUID:
    """A case that was read and waits for the end of a stop: control `planning`, state ELIGIBLE."""
    engage(parts, "updates")
    workflow_id = await take(parts)
    await drive(parts, workflow_id)
    engage(parts, "updates", engaged=False)
    return workflow_id


async def in_doubt(parts: Parts, tools: FakeTools) -> UUID:
    """A case whose effect has no outcome."""
    tools.script = {"create_return": [tools.then(unknown())], "find_return": [rejected("no_answer")] * 9}
    workflow_id = await take(parts)
    for _ in range(5):
        await drive(parts, workflow_id)
        advance_clock(parts, 31)
    return workflow_id


@asynchronous
async def test_invariant_7_no_checkpoint_names_a_move_that_is_not_legal():
    async with engine(FakeTools()) as parts:
        await planning(parts)
        with owners(parts) as sql, refused(sql, "23503"):
            advance(sql, "COMPLETED", "completed")
            append(sql, 999_999)


@asynchronous
async def test_invariant_7_a_legal_move_from_another_place_does_not_continue_a_history():
    async with engine(FakeTools()) as parts:
        await planning(parts)
        with owners(parts) as sql:
            for event, source, state, control in (
                ("notice_verified", "RETURN_CREATED", "COMPLETED", "completed"),
                ("return_verified", "ELIGIBLE", "RETURN_CREATED", "planning"),
                ("authorized", "ELIGIBLE", "ELIGIBLE", "tool_authorized"),
                ("dispatched", "ELIGIBLE", "ELIGIBLE", "tool_running"),
                ("approved", "WAITING_APPROVAL", "APPROVED", "tool_proposed"),
                ("due", "RETRY_WAIT", "ELIGIBLE", "tool_proposed"),
                ("received", "", "RECEIVED", "created"),
            ):
                with refused(sql, "KS010"):
                    advance(sql, state, control)
                    append(sql, move_of(sql, event, source))


@asynchronous
async def test_invariant_7_a_history_has_no_gap_no_double_and_no_end_beyond_its_row():
    async with engine(FakeTools()) as parts:
        await planning(parts)
        with owners(parts) as sql:
            proposed = move_of(sql, "proposed", "ELIGIBLE")
            with refused(sql, "KS010"):
                advance(sql, "ELIGIBLE", "tool_proposed", by=2)
                append(sql, proposed)
            with refused(sql, "23505"):
                append(sql, proposed)
            with refused(sql, "KS010"):
                append(sql, proposed, ahead=1)


@asynchronous
async def test_invariant_7_a_row_stands_where_its_history_ends():
    async with engine(FakeTools()) as parts:
        await planning(parts)
        with owners(parts) as sql:
            for change in (
                "state = 'COMPLETED'", "control_state = 'completed'", "seq = seq + 1", "seq = seq - 1",
                "resume_state = 'ELIGIBLE'", "state = 'RETRY_WAIT', resume_state = 'ELIGIBLE'",
                "state = 'APPROVED', control_state = 'tool_proposed'",
            ):  # fmt: skip
                with refused(sql, "KS011"):
                    sql.execute(f"UPDATE workflow SET {change}")  # noqa: S608 - a change from the list above


@asynchronous
async def test_invariant_7_a_retry_goes_back_to_the_very_state_that_it_left():
    async with engine(FakeTools(script={"create_return": [rejected("rate_limited")]})) as parts:
        await drive(parts, await take(parts))
        with owners(parts) as sql:
            with refused(sql, "KS011"):
                sql.execute("UPDATE workflow SET resume_state = 'RETURN_CREATED'")
            with refused(sql, "23514", "KS011"):
                sql.execute("UPDATE workflow SET resume_state = NULL")
            other = sql.execute(
                "SELECT move_id FROM legal_transition WHERE event = 'due' AND business_to = 'RETURN_CREATED'"
            ).fetchone()
            assert other is not None
            with refused(sql, "KS010"):
                advance(sql, "RETURN_CREATED", "tool_proposed")
                append(sql, other[0])


@asynchronous
async def test_invariant_7_an_approvals_clock_ends_a_retry_only_of_what_was_approved():
    async with engine(FakeTools(script={"create_return": [rejected("rate_limited")]})) as parts:
        await drive(parts, await take(parts))
        with owners(parts) as sql, refused(sql, "KS010"):
            advance(sql, "EXPIRED", "stopped")
            append(sql, move_of(sql, "approval_expired", "RETRY_WAIT", "tool_proposed"))


@asynchronous
async def test_invariant_7_no_clock_approver_or_operator_moves_a_row_whose_effect_has_no_outcome():
    tools = FakeTools()
    async with engine(tools) as parts:
        await in_doubt(parts, tools)
        with owners(parts) as sql:
            for event in ("compensation_ordered", "effect_adopted", "reopened"):
                row = sql.execute(
                    "SELECT move_id, business_to FROM legal_transition "
                    "WHERE event = %s AND control_from = 'needs_human'",
                    (event,),
                ).fetchone()
                assert row is not None
                with refused(sql, "KS010"):
                    advance(sql, row[1], "planning")
                    append(sql, row[0])


@asynchronous
async def test_invariant_9_a_case_is_not_done_while_an_effect_is_not_verified():
    """Every way into COMPLETED by legal checkpoints alone: refused, with the effects missing, open or unread."""
    tools = FakeTools()
    async with engine(tools) as parts:
        tools.script = {"get_return": [rejected("no_answer")] * 9}
        workflow_id = await take(parts)
        for _ in range(4):
            await drive(parts, workflow_id)
            advance_clock(parts, 31)
        with owners(parts) as sql:
            reopened = move_of(sql, "reopened", "NEEDS_REVIEW", "needs_human")
            adopted = sql.execute(
                "SELECT move_id FROM legal_transition WHERE event = 'effect_adopted' AND business_to = 'COMPLETED'"
            ).fetchone()
            assert adopted is not None
            with refused(sql, "KS012"):
                advance(sql, "NEEDS_REVIEW", "planning")
                append(sql, reopened)
                advance(sql, "COMPLETED", "completed")
                append(sql, adopted[0])


@asynchronous
async def test_invariant_9_what_was_verified_cannot_be_unverified_and_what_was_not_cannot_be_without_its_outcome():
    tools = FakeTools()
    async with engine(tools) as parts:
        await drive(parts, await take(parts))
        with owners(parts) as sql, refused(sql, "KS014"):
            sql.execute("UPDATE effect SET verified_at = NULL")
    async with engine(tools) as parts:
        await in_doubt(parts, tools)
        with owners(parts) as sql, refused(sql, "23514"):
            sql.execute("UPDATE effect SET verified_at = clock_now()")


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
            with refused(sql, "23503"):
                open_effect(sql, workflow_id, 99)
            for outcome in ("deny", "halt", "require_approval"):
                with refused(sql, "23503"):
                    open_effect(sql, workflow_id, decide(sql, workflow_id, outcome))
            with sql.transaction():
                earlier = decide(sql, workflow_id)
            with refused(sql, "23503"):
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
            with refused(sql, "23503"):
                open_effect(sql, workflow_id, earlier, more=", committed_in", values=f", '{row[0]}'::xid8")
            with refused(sql, "KS013"):
                sql.execute("UPDATE decision SET committed_in = pg_current_xact_id()")
            with refused(sql, "23503", "23514"):
                open_effect(
                    sql, workflow_id, decide(sql, workflow_id, "deny"), more=", decision_outcome", values=", 'deny'"
                )


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
                if "commit_step(" in str(query):
                    steps.append(params["step"].obj)
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
                await commit_step(connection, workflow_id, 1, 0, without)
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
async def test_invariant_6_without_its_row_a_stop_reads_as_engaged():
    async with engine(FakeTools()) as parts:
        with owners(parts) as sql:
            assert sql.execute("SELECT stopped('updates'), stopped('reads'), stopped('nothing')").fetchone() == (
                False,
                False,
                True,
            )
            sql.execute("DELETE FROM stop")
            assert (
                sql.execute("SELECT stopped('updates'), stopped('reads'), stopped('new_work')").fetchone()
                == (True,) * 3
            )


HISTORY = ("checkpoint", "decision", "refusal", "audit", "call", "attempt", "effect", "workflow", "legal_transition")


@asynchronous
async def test_no_history_is_deleted_emptied_or_rewritten_by_its_owner():
    async with engine(FakeTools(), ScriptedPlanner([PlannerFault("no_call", "-")])) as parts:
        await drive(parts, await take(parts))
        with owners(parts) as sql:
            for table in HISTORY:
                with refused(sql, "KS013", "23503"):
                    sql.execute(f"DELETE FROM {table}")  # noqa: S608 - a name from the list above
                with refused(sql, "KS013"):
                    sql.execute(f"TRUNCATE {table} CASCADE")
            for table, change in (
                ("checkpoint", "reason = 'x'"), ("decision", "outcome = 'allow'"), ("refusal", "code = 'x'"),
                ("audit", "result = 'x'"), ("legal_transition", "actor = 'operator'"), ("call", "arguments = '{}'"),
                ("call", "call_id = 'x'"), ("attempt", "jti = 'x'"), ("effect", "idempotency_key = 'x'"),
                ("effect", "arguments_sha256 = 'x'"), ("effect", "units = '{}'"), ("workflow", "case_body = '{}'"),
                ("workflow", "resource = 'A-2'"), ("workflow", "customer = 'C-2'"), ("workflow", "tenant_id = 't'"),
                ("workflow", "policy = 'policy-v13'"), ("workflow", "principal = 'root'"),
            ):  # fmt: skip
                with refused(sql, "KS013"):
                    sql.execute(f"UPDATE {table} SET {change}")  # noqa: S608 - a change from the list above


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


WRITES = (
    "UPDATE workflow SET state = 'COMPLETED'", "UPDATE workflow SET version = 99", "DELETE FROM workflow",
    "UPDATE stop SET engaged = false", "DELETE FROM stop", "INSERT INTO stop VALUES ('x', false, 'x', 'x', now())",
    "UPDATE effect SET outcome = 'absent'", "UPDATE call SET execution_state = 'verified'", "DELETE FROM audit",
    "INSERT INTO audit (actor, action, resource, result, details, at) VALUES ('x', 'x', 'x', 'x', '{}', now())",
    "INSERT INTO decision VALUES (gen_random_uuid(), 1, 'authorization', 'v', '{}', 'allow', 'r', now())",
    "INSERT INTO legal_transition (kind) VALUES ('returns')",
    "DELETE FROM expected_effect", "TRUNCATE checkpoint", "CREATE TABLE mine (x int)", "CREATE TEMP TABLE mine (x int)",
    "DROP TRIGGER append_only ON audit", "ALTER TABLE effect DISABLE TRIGGER ALL",
    "SET session_replication_role = replica", "INSERT INTO external_task (jti) VALUES ('x')",
    "SELECT stop_lock_key()", "SELECT refuse_change()",
    "CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'",
)  # fmt: skip


@asynchronous
async def test_the_workers_role_writes_nothing_by_hand():
    async with engine(FakeTools()) as parts:
        await drive(parts, await take(parts))
        for statement in WRITES:
            async with parts.pool.connection() as connection:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    await connection.execute(statement)


@asynchronous
async def test_the_auditor_reads_what_it_compares_and_no_words_of_customers():
    async with engine(FakeTools()) as parts:
        await drive(parts, await take(parts))
        with owners(parts) as sql:
            sql.execute("SET ROLE host_auditor")
            assert sql.execute("SELECT count(*) FROM effect JOIN call USING (workflow_id, step)").fetchone() == (2,)
            for statement in (
                "SELECT case_body FROM workflow", "SELECT customer FROM workflow", "SELECT * FROM workflow",
                "UPDATE effect SET outcome = 'absent'", "SELECT * FROM procrastinate_jobs",
                "SELECT commit_step(gen_random_uuid(), 1, 1, '{}')",
            ):  # fmt: skip
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    sql.execute(statement)


@asynchronous
async def test_a_second_outcome_through_the_engines_own_function_is_refused_as_well():
    tools = FakeTools()
    async with engine(tools) as parts:
        workflow_id = await take(parts)
        state = await drive(parts, workflow_id)
        closed = {
            "step": 3,
            "attempt": 1,
            "outcome": "absent",
            "external_id": None,
            "verified": False,
            "mismatch": None,
        }
        row = {
            "state": "COMPLETED", "control_state": "completed", "resume_state": None, "reason": "x",
            "refusals_in_a_row": 0, "recoveries": 0, "release": True, "owner": "x", "lease_seconds": 1,
            "wake_reason": None, "wake_after": None,
        }  # fmt: skip
        payload = {"row": row, "moves": [], "effect_closed": closed}
        with owners(parts) as sql, refused(sql, "KS014"):
            sql.execute(
                "SELECT * FROM commit_step(%s, %s, %s, %s)",
                (
                    workflow_id,
                    state.trace.version,
                    state.trace.fence,
                    Jsonb(payload),
                ),
            )
