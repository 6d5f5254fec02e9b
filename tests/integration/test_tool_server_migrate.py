"""Migrations: forward only, once, whole or not at all; and never over a schema that is not ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support import cluster
from tests.support.tool_orders import order, seed
from tests.support.tool_shop import ToolDatabase, new_database
from tool_server.errors import ToolServerError
from tool_server.load import load
from tool_server.store import migrate as module
from tool_server.store.migrate import (
    MIGRATIONS,
    NEWEST,
    AppliedFileChangedError,
    NewerSchemaError,
    NotMigratableError,
    migrate,
)
from tool_server.store.roles import ROLES, RolesError

# a tool server knows calls and effects, and nothing of whose work they are a part
OF_THE_HOSTS_TRADE = (
    "SELECT relnamespace::regnamespace::text, relname FROM pg_class"
    " WHERE relnamespace::regnamespace::text !~ '^pg_' AND relname ~ 'workflow|run|checkpoint|plan|step|session'"
)


@pytest.fixture
def database() -> Iterator[ToolDatabase]:
    made = new_database()
    yield made
    cluster.drop_database(made.admin)


def rows(database: ToolDatabase, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database.admin) as connection:
        return connection.execute(query).fetchall()


def test_an_empty_database_gets_every_file_once_and_a_second_run_changes_nothing(database: ToolDatabase) -> None:
    first = asyncio.run(migrate(database.owner, database.passwords))
    second = asyncio.run(migrate(database.owner, database.passwords))
    assert first.applied == tuple(migration.name for migration in MIGRATIONS)
    assert (second.applied, second.version) == ((), NEWEST)
    assert set(first.roles.passwords_set) == set(ROLES)
    assert len(rows(database, "SELECT 1 FROM schema_version")) == len(MIGRATIONS)
    assert rows(database, OF_THE_HOSTS_TRADE) == []


def test_a_role_that_a_later_release_brought_stands_where_a_new_database_has_it(database: ToolDatabase) -> None:
    asyncio.run(migrate(database.owner, database.passwords))
    rights = "SELECT relacl::text FROM pg_class WHERE oid = 'public.schema_version'::regclass"
    new = rows(database, rights)
    with psycopg.connect(database.admin) as connection:
        connection.execute(f"REVOKE ALL ON public.schema_version FROM {ROLES[0]}")
        connection.execute(f"GRANT SELECT ON public.schema_version TO {ROLES[0]}")
    assert rows(database, rights) != new
    asyncio.run(migrate(database.owner, database.passwords))
    assert rows(database, rights) == new


def test_files_are_numbered_without_a_gap() -> None:
    assert [migration.version for migration in MIGRATIONS] == list(range(1, NEWEST + 1))


def test_two_runs_at_once_wait_for_each_other(database: ToolDatabase) -> None:
    async def both() -> list[int]:
        runs = await asyncio.gather(*(migrate(database.owner, None) for _ in range(2)))
        return sorted(len(run.applied) for run in runs)

    assert asyncio.run(both()) == [0, len(MIGRATIONS)]


def test_a_newer_database_is_left_alone(database: ToolDatabase) -> None:
    asyncio.run(migrate(database.owner, None))
    with psycopg.connect(database.owner) as owner:
        owner.execute("INSERT INTO schema_version (version, name, sha256) VALUES (%s, 'later', 'x')", (NEWEST + 1,))
    with pytest.raises(NewerSchemaError) as caught:
        asyncio.run(migrate(database.owner, database.passwords))
    assert (caught.value.found, caught.value.newest) == (NEWEST + 1, NEWEST)


def test_a_file_that_changed_after_it_was_applied_is_refused(database: ToolDatabase) -> None:
    asyncio.run(migrate(database.owner, None))
    with psycopg.connect(database.owner) as owner:
        owner.execute("UPDATE schema_version SET sha256 = 'other' WHERE version = 3")
    with pytest.raises(AppliedFileChangedError, match=r"0003.*run that version.*KESSAI_TOOLS_MIGRATE_DSN"):
        asyncio.run(migrate(database.owner, None))


def test_a_file_that_fails_leaves_nothing_of_the_run(database: ToolDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = module.Migration(NEWEST + 1, "broken.sql", "CREATE TABLE public.half (x int); SELECT 1 / 0", "x")
    monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, broken))
    with pytest.raises(psycopg.errors.DivisionByZero):
        asyncio.run(migrate(database.owner, None))
    assert rows(database, "SELECT 1 FROM pg_class WHERE relname IN ('half', 'schema_version')") == []


def test_whoever_is_not_the_owner_is_told_so(database: ToolDatabase) -> None:
    asyncio.run(migrate(database.owner, database.passwords))
    with pytest.raises(NotMigratableError, match="owner"):
        asyncio.run(migrate(database.dsn("tools_orders"), None))


def test_an_owner_who_may_not_make_roles_uses_those_that_are_there(database: ToolDatabase) -> None:
    asyncio.run(migrate(database.owner, database.passwords))  # the roles of the cluster exist from here on
    other = new_database()
    with psycopg.connect(cluster.cluster(), autocommit=True) as admin:
        admin.execute("ALTER ROLE tools_owner NOCREATEROLE")
        try:
            done = asyncio.run(migrate(other.owner, other.passwords))
        finally:  # the owner is the cluster's, and so every other test's
            admin.execute("ALTER ROLE tools_owner CREATEROLE")
    assert (done.roles.created, set(done.roles.left)) == ((), set(ROLES))
    cluster.drop_database(other.admin)


@pytest.mark.parametrize("content", ["", " \n", None])
def test_a_password_file_that_holds_none_is_named(database: ToolDatabase, tmp_path: Path, content: str | None) -> None:
    if content is None:
        (tmp_path / "tools_orders").mkdir()
    else:
        (tmp_path / "tools_orders").write_text(content)
    with pytest.raises(RolesError, match="tools_orders"):
        asyncio.run(migrate(database.owner, tmp_path))


def test_a_password_reaches_the_server_only_as_a_verifier(database: ToolDatabase) -> None:
    asyncio.run(migrate(database.owner, database.passwords))
    stored = rows(database, "SELECT rolpassword FROM pg_authid WHERE rolname LIKE 'tools\\_%'")
    assert {str(password).split("$")[0] for (password,) in stored} == {"SCRAM-SHA-256"}
    with psycopg.connect(database.dsn("tools_auditor")) as auditor:
        assert auditor.execute("SELECT max(version) FROM schema_version").fetchone() == (NEWEST,)


def test_a_database_that_others_could_enter_is_closed(database: ToolDatabase) -> None:
    name = cluster.database_name(database.admin)
    with psycopg.connect(cluster.cluster(), autocommit=True) as admin:
        admin.execute(f'GRANT CONNECT, TEMPORARY ON DATABASE "{name}" TO PUBLIC')
        admin.execute("DROP ROLE IF EXISTS stranger")
        admin.execute("CREATE ROLE stranger LOGIN PASSWORD 'x'")
    asyncio.run(migrate(database.owner, None))
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(cluster.dsn_of(name, user="stranger", password="x"))


def test_errors_are_told_to_people_in_one_sentence(database: ToolDatabase) -> None:
    assert issubclass(NotMigratableError, ToolServerError)
    assert "\n" not in str(NewerSchemaError(9, 8))


def test_a_migrated_database_takes_data(database: ToolDatabase) -> None:
    asyncio.run(migrate(database.owner, None))
    assert asyncio.run(load(database.owner, seed(order("A-1")))).orders_new == 1
