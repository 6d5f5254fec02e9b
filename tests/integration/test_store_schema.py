"""The schema as it is migrated, and every named query against it."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import host
from host.domain.workflow import legal_moves
from host.store.migrate import NewerSchemaError, migrate
from host.store.packaged import packaged
from host.store.queries import load_queries
from host.workflows.catalogue import WORKFLOWS
from host.workflows.returns import RETURNS
from tests.support.cluster import create_database, database_name, drop_database, dsn_of
from tests.support.engine import host_database

ROOT = Path(host.__file__).parent
# an auditor's statements on the tool server's database, which test_audit.py prepares there
THEIRS = {"audit_tools", "trial_tools", "sealed_tools"}
FILES = sorted(file for file in (ROOT / "store").glob("*.sql") if file.stem not in THEIRS)
QUERIES = [(file.stem, name) for file in FILES for name in load_queries(str(file))]
# what a crash matrix asks of the tool server's database as its auditor, and an evaluation does there as the owner of
# its own pair; their own runs prepare them
OF_TOOLS = {("crash", name) for name in ("returns", "notices", "messages")}
OF_TOOLS |= {("trial", name) for name in ("addresses", "move_order", "revoke_approver")}
PARAMETER = re.compile(r"%\((\w+)\)s")


def numbered(query: str) -> str:
    """The query with `$n` for each name, as PREPARE wants it."""
    names = list(dict.fromkeys(PARAMETER.findall(query)))
    return PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", query).replace("%%", "%")


@pytest.fixture(scope="module")
def database() -> Any:
    dsn = host_database()
    yield dsn
    drop_database(dsn)


@pytest.mark.parametrize(("file", "name"), [one for one in QUERIES if one not in OF_TOOLS])
def test_every_named_query_prepares_against_the_migrated_schema_under_the_workers_role(database, file, name):
    query = numbered(load_queries(str(ROOT / "store" / f"{file}.sql"))[name])
    with psycopg.connect(database) as connection:
        connection.execute(f"PREPARE it AS {query}".encode())


@pytest.mark.parametrize(("file", "name"), QUERIES)
def test_every_named_query_is_used_by_its_module(file, name):
    module = (ROOT / "store" / f"{file}.py").read_text(encoding="utf-8")
    assert f'["{name}"]' in module


def test_every_parameter_of_a_query_is_given_by_name_and_no_text_is_put_together():
    acts = (ROOT / "store" / "acts.py").read_text(encoding="utf-8")
    for file in FILES:
        module = file.with_suffix(".py").read_text(encoding="utf-8")
        module += acts if "said_by(" in module else ""  # which gives who acts, and why
        for name, query in load_queries(str(file)).items():
            for parameter in PARAMETER.findall(query):
                assert f'"{parameter}"' in module or f"{parameter}=" in module, (name, parameter)


def fresh() -> str:
    return create_database()


def test_an_empty_database_is_brought_to_the_schema_and_a_second_time_changes_nothing():
    dsn = fresh()
    first = migrate(dsn, WORKFLOWS)
    with psycopg.connect(dsn) as connection:
        before = connection.execute("SELECT count(*) FROM legal_transition").fetchone()
        second = migrate(dsn, WORKFLOWS)
        after = connection.execute("SELECT count(*) FROM legal_transition").fetchone()
    assert first == tuple(file.name for file in packaged())
    assert second == ()
    assert before == after
    drop_database(dsn)


def test_the_databases_legal_moves_and_expected_effects_are_the_workflow_files_own(database):
    with psycopg.connect(database) as connection:
        moves = connection.execute(
            "SELECT kind, control_from, control_to, business_from, business_to, event, actor FROM legal_transition"
        ).fetchall()
        effects = connection.execute(
            "SELECT kind, release, success, name FROM expected_effect ORDER BY name"
        ).fetchall()
    assert set(moves) == {(one.kind, *map(str, move)) for one in WORKFLOWS for move in legal_moves(one)}
    assert effects == [("returns", "returns-1", "COMPLETED", name) for name in sorted(RETURNS.effects)]


def test_a_database_of_a_newer_program_is_refused_and_left_as_it_is():
    dsn = fresh()
    migrate(dsn, WORKFLOWS)
    with psycopg.connect(dsn) as connection:
        connection.execute("INSERT INTO schema_version (name, sha256) VALUES ('0099_from_the_future.sql', '-')")
        connection.commit()
        with pytest.raises(NewerSchemaError, match="0099_from_the_future"):
            migrate(dsn, WORKFLOWS)
        assert connection.execute("SELECT count(*) FROM schema_version").fetchone() == (len(packaged()) + 2,)
    drop_database(dsn)


def test_a_migration_that_was_applied_with_another_content_is_refused():
    dsn = fresh()
    migrate(dsn, WORKFLOWS)
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE schema_version SET sha256 = 'x' WHERE name = %s", (packaged()[0].name,))
    with pytest.raises(NewerSchemaError, match=packaged()[0].name) as caught:
        migrate(dsn, WORKFLOWS)
    for mend in ("Run that version", "KESSAI_MIGRATE_DSN", "kessai empty"):
        assert mend in str(caught.value)
    drop_database(dsn)


def test_a_migration_that_fails_leaves_nothing_behind():
    dsn = fresh()
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE outbox (x int)")
    with pytest.raises(psycopg.errors.DuplicateTable):
        migrate(dsn, WORKFLOWS)
    with psycopg.connect(dsn) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == [("outbox",)]
    drop_database(dsn)


def test_two_migrators_at_once_apply_everything_once_between_them():
    dsn = fresh()
    applied: list[tuple[str, ...]] = []
    threads = [threading.Thread(target=lambda: applied.append(migrate(dsn, WORKFLOWS))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(map(len, applied)) == [0, 0, len(packaged())]
    drop_database(dsn)


def test_an_owner_that_is_no_superuser_migrates_where_the_roles_exist():
    dsn = fresh()
    migrate(dsn, WORKFLOWS)  # makes the roles, which belong to the whole cluster
    own = fresh()
    name = database_name(own)
    with psycopg.connect(own, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS test_owner")
        admin.execute("CREATE ROLE test_owner LOGIN PASSWORD 'x' NOSUPERUSER")
        admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO test_owner").format(sql.Identifier(name)))
        admin.execute("GRANT CREATE, USAGE ON SCHEMA public TO test_owner")
    assert migrate(dsn_of(name, user="test_owner", password="x"), WORKFLOWS) == tuple(f.name for f in packaged())
    drop_database(own)
    drop_database(dsn)
    with psycopg.connect(dsn_of("postgres"), autocommit=True) as admin:
        admin.execute("DROP ROLE test_owner")


def test_migrations_are_numbered_from_one_without_a_gap_and_named_by_what_they_do():
    names = [file.name for file in packaged()]
    assert [name[:4] for name in names] == [f"{n:04}" for n in range(1, len(names) + 1)]
    assert all(re.fullmatch(r"\d{4}_[a-z]+_[a-z_]+\.sql", name) for name in names)


def test_every_table_of_the_ledger_that_is_a_history_is_guarded(database):
    """A new table with a `workflow_id` is a history until somebody says otherwise here."""
    with psycopg.connect(database) as connection:
        tables = {
            name
            for (name,) in connection.execute(
                "SELECT table_name FROM information_schema.columns JOIN information_schema.tables "
                "USING (table_schema, table_name) WHERE table_schema = 'public' AND column_name = 'workflow_id' "
                "AND table_type = 'BASE TABLE'"
            )
        }
        guarded = {
            name
            for (name,) in connection.execute(
                "SELECT c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE t.tgname = 'append_only'"
            )
        }
    assert tables - guarded == {"outbox"}  # what was delivered is taken out of it


def test_the_clock_stands_in_one_function_and_nobody_asks_another():
    """now() would be the transaction's, and the process's own clock anybody's guess."""
    for file in packaged():
        text = re.sub(r"--.*", "", file.text)
        text = re.sub(r"CREATE FUNCTION clock_now\(\) [^;]*;", "", text).replace("clock_now()", "")
        assert not re.search(r"\b(?:now\(\)|current_timestamp|clock_timestamp\(\)|localtimestamp)", text), file.name
    for file in FILES:
        assert not re.search(r"\bnow\(\)|current_timestamp", re.sub(r"clock_now\(\)", "", file.read_text("utf-8"))), (
            file
        )
