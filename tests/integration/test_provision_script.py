"""deploy/provision.sql makes of any server what `host.stack.provision` makes of the embedded one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from host.stack.postgres import Cluster, Server
from host.stack.provision import provision
from host.stack.roles import OWNER, Side, write_passwords
from host.stack.secrets import COMPOSE_ISSUER, write_secrets
from tests.support.embedded import admin, embedded, started
from tests.support.psql import run_script

pytestmark = pytest.mark.xdist_group("provision-script")  # one set-up serves all
DATABASES = """
SELECT datname, datdba::regrole::text, datacl::text, encoding, datcollate, datlocprovider::text, datlocale
FROM pg_database WHERE datname IN ('host', 'tools', 'postgres', 'template1') ORDER BY datname"""
ROLES = """
SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls,
       rolconnlimit, left(rolpassword, 14)
FROM pg_authid WHERE rolname IN ('host_owner', 'tools_owner') ORDER BY rolname"""
SETTINGS = """
SELECT datname, nullif(setrole, 0)::regrole::text, setting
FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase, unnest(setconfig) AS setting
ORDER BY 1, 2, 3"""
SCHEMA = "SELECT nspacl::text FROM pg_namespace WHERE nspname = 'public'"


@dataclass(frozen=True)
class Place:
    cluster: Cluster
    server: Server
    secrets: Path

    def dsn(self, user: str = "postgres", password: str | None = None) -> str:
        given = self.cluster.admin_password() if password is None else password
        return self.server.conninfo("postgres", user, password=given)

    def owner(self, side: Side) -> psycopg.Connection[tuple[object, ...]]:
        passfile = str(self.secrets / f"{OWNER[side]}.pgpass")
        return psycopg.connect(self.server.conninfo(side, OWNER[side], passfile=passfile), autocommit=True)


@contextmanager
def place(root: Path) -> Iterator[Place]:
    with embedded(root / "home") as cluster:
        server = started(cluster)
        write_secrets(root / "secrets", COMPOSE_ISSUER)
        yield Place(cluster, server, root / "secrets")


def catalogue(cluster: Cluster, server: Server) -> list[object]:
    found: list[object] = []
    with admin(cluster, server) as connection:
        found += [connection.execute(query).fetchall() for query in (DATABASES, ROLES, SETTINGS)]
    for side in Side:
        with admin(cluster, server, side) as connection:
            found.append(connection.execute(SCHEMA).fetchall())
    return found


@pytest.fixture(scope="module")
def by_script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place(tmp_path_factory.mktemp("script")) as made:
        done = run_script(made.dsn(), made.secrets)
        assert done.returncode == 0, done.stderr
        yield made


def test_the_script_and_the_embedded_set_up_make_the_same(by_script: Place, tmp_path: Path) -> None:
    with embedded(tmp_path / "home") as cluster:
        server = started(cluster)
        write_passwords(cluster.home)
        asyncio.run(provision(cluster, server))
        assert catalogue(by_script.cluster, by_script.server) == catalogue(cluster, server)


@pytest.mark.parametrize("side", Side)
def test_an_owner_comes_in_with_its_passfile(by_script: Place, side: Side) -> None:
    with by_script.owner(side) as connection:
        connection.execute(f"CREATE ROLE made_by_script_{side} LOGIN")


def test_it_may_be_run_again_and_then_sets_a_new_password(by_script: Place) -> None:
    before = catalogue(by_script.cluster, by_script.server)
    (by_script.secrets / "host_owner").unlink()
    write_secrets(by_script.secrets, COMPOSE_ISSUER)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        by_script.owner(Side.HOST)
    assert run_script(by_script.dsn(), by_script.secrets).returncode == 0
    by_script.owner(Side.HOST).close()
    assert catalogue(by_script.cluster, by_script.server) == before


def test_no_password_reaches_the_servers_log(by_script: Place) -> None:
    with admin(by_script.cluster, by_script.server) as connection:
        connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        connection.execute("ALTER SYSTEM SET log_min_duration_statement = 0")
        connection.execute("SELECT pg_reload_conf()")
        assert run_script(by_script.dsn(), by_script.secrets).returncode == 0
        connection.execute("ALTER SYSTEM RESET ALL")
        connection.execute("SELECT pg_reload_conf()")
    log = by_script.cluster.log.read_text()
    assert "SET log_statement = 'none'" in log  # so the log was on until then
    for role in OWNER.values():
        assert (by_script.secrets / role).read_text() not in log


def test_without_its_passwords_it_makes_nothing(tmp_path: Path) -> None:
    with place(tmp_path) as made:
        (made.secrets / "tools_owner").unlink()
        done = run_script(made.dsn(), made.secrets)
        assert done.returncode == 3
        assert "the password files host_owner and tools_owner are not there, or empty" in done.stderr
        with admin(made.cluster, made.server) as connection:
            assert connection.execute(ROLES).fetchall() == []


def test_a_role_that_may_make_databases_and_roles_is_enough(tmp_path: Path) -> None:
    with place(tmp_path) as made:
        with admin(made.cluster, made.server) as connection:
            connection.execute("CREATE ROLE cloud LOGIN CREATEDB CREATEROLE PASSWORD 'known'")
        for _ in range(2):
            done = run_script(made.dsn("cloud", "known"), made.secrets)
            assert done.returncode == 0, done.stderr
        for side in Side:
            with made.owner(side) as connection:
                connection.execute("CREATE TABLE own (id int)")
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute("CREATE DATABASE third")
