"""What each role of the database may do, and what a missing row means."""

from __future__ import annotations

import psycopg
import pytest

from host.engine.drive import drive
from tests.support.engine import asynchronous, engine, owners, take
from tests.support.fake_tools import FakeTools
from tests.support.raw_sql import refused


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
    "UPDATE compensation SET state = 'done', ended_at = now()", "DELETE FROM compensation",
    "UPDATE compensation SET released_by = 'sato', released_at = now()", "INSERT INTO compensation (n) VALUES (1)",
    "UPDATE workflow SET review_closed_at = now()", "UPDATE workflow SET review_since = NULL",
    "DELETE FROM stop_log", "SELECT lift_stop('sato', 'why', 1, '{}')", "SELECT check_undone()",
    "SELECT * FROM seal_batch(1)", "TABLE seal_link", "TABLE seal_head", "SELECT trust_approver('k', 'n', 'x', 'n')",
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
async def test_the_workers_role_makes_no_table_that_could_stand_before_one_of_ours():
    async with engine(FakeTools()) as parts:
        for statement in ("CREATE TEMP TABLE workflow (x int)", "CREATE TABLE public.x (x int)", "CREATE SCHEMA own"):
            async with parts.pool.connection() as connection:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    await connection.execute(statement)
        with owners(parts) as sql:
            unset = sql.execute(
                "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef"
                " AND proname !~ '^procrastinate' AND NOT proconfig::text ~ 'search_path=public'"
            ).fetchall()
        assert unset == []


@asynchronous
async def test_what_was_told_or_issued_is_never_changed_and_no_row_goes_back():
    async with engine(FakeTools()) as parts:
        await drive(parts, await take(parts))
        with owners(parts) as sql:
            for statement in (
                "UPDATE outbox SET topic = 'x'", "DELETE FROM expected_effect",
                "UPDATE expected_effect SET name = 'x'", "TRUNCATE external_task",
            ):  # fmt: skip
                with refused(sql, "KS013"):
                    sql.execute(statement)
            for statement in ("UPDATE workflow SET version = 1", "UPDATE workflow SET fence = 0"):
                with refused(sql, "KS011"):
                    sql.execute(statement)


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
                "SELECT commit_steps('{}')",
            ):  # fmt: skip
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    sql.execute(statement)
