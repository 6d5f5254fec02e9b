"""Two databases that know nothing of one another, and owners that can do no more than their task."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from host.stack.postgres import Cluster, Server
from host.stack.provision import provision
from host.stack.roles import LIMITED, OWNER, Side, dsn, write_passwords
from tests.support.embedded import admin, embedded, one, started

pytestmark = pytest.mark.xdist_group("stack-provision")


@pytest.fixture(scope="module")
def provisioned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Server]]:
    with embedded(tmp_path_factory.mktemp("provision") / "home") as cluster:
        server = started(cluster)
        write_passwords(cluster.home)
        asyncio.run(provision(cluster, server))
        yield cluster, server


def owner(provisioned: tuple[Cluster, Server], side: Side) -> psycopg.Connection[tuple[object, ...]]:
    cluster, server = provisioned
    return psycopg.connect(dsn(cluster.home, server, side, OWNER[side]), autocommit=True)


@pytest.mark.parametrize("side", Side)
def test_an_owner_reaches_its_own_database_and_no_other(provisioned: tuple[Cluster, Server], side: Side) -> None:
    cluster, server = provisioned
    with owner(provisioned, side) as connection:
        assert one(connection, "SELECT current_database()") == side
    for other in {*Side, "postgres", "template1"} - {side}:
        target = server.conninfo(other, OWNER[side], passfile=str(cluster.home.passfiles / OWNER[side]))
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(target)


@pytest.mark.parametrize("side", Side)
def test_an_owner_makes_roles_and_tables_but_nothing_of_a_superuser(
    provisioned: tuple[Cluster, Server], side: Side
) -> None:
    with owner(provisioned, side) as connection:
        connection.execute("CREATE TABLE own (id int)")
        connection.execute(f"CREATE ROLE made_by_{side} LOGIN NOINHERIT CONNECTION LIMIT 20")
        for forbidden in (
            "CREATE DATABASE third",
            f"CREATE ROLE strong_{side} SUPERUSER",
            f"CREATE ROLE strong_{side} BYPASSRLS",
            f"CREATE ROLE strong_{side} REPLICATION",
            "COPY (SELECT 1) TO PROGRAM 'true'",
            "SELECT pg_read_file('postgresql.conf')",
            f"ALTER ROLE {OWNER[next(other for other in Side if other is not side)]} PASSWORD 'stolen'",
            "ALTER SYSTEM SET fsync = off",
            "SELECT rolpassword FROM pg_authid",
        ):
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.CantChangeRuntimeParam)):
                connection.execute(forbidden)


def test_who_provisions_at_once_waits_for_the_other(provisioned: tuple[Cluster, Server]) -> None:
    async def at_once() -> None:
        await asyncio.gather(*(provision(*provisioned) for _ in range(6)))

    asyncio.run(at_once())


@pytest.mark.parametrize("side", Side)
def test_a_role_that_was_granted_nothing_can_do_nothing(provisioned: tuple[Cluster, Server], side: Side) -> None:
    cluster, server = provisioned
    with admin(cluster, server, side) as connection:
        connection.execute(f"CREATE ROLE stranger_{side} LOGIN PASSWORD 'known'")
    target = server.conninfo(side, f"stranger_{side}", password="known")
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(target)
    with owner(provisioned, side) as connection:
        connection.execute(f"GRANT CONNECT ON DATABASE {side} TO stranger_{side}")
    with psycopg.connect(target, autocommit=True) as connection:
        for forbidden in ("CREATE TABLE public.mine (id int)", "CREATE TEMPORARY TABLE mine (id int)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(forbidden)


def test_whoever_connects_is_bounded_and_migrations_may_take_longer(provisioned: tuple[Cluster, Server]) -> None:
    cluster, server = provisioned
    with admin(cluster, server, Side.HOST) as connection:
        assert one(connection, "SHOW statement_timeout") == "5s"
        assert one(connection, "SHOW lock_timeout") == "2s"
        assert one(connection, "SHOW idle_in_transaction_session_timeout") == "10s"
        assert one(connection, "SHOW transaction_timeout") == "15s"
    with owner(provisioned, Side.HOST) as connection:
        assert one(connection, "SHOW statement_timeout") == "5min"


def test_it_may_be_done_again(provisioned: tuple[Cluster, Server]) -> None:
    cluster, server = provisioned
    write_passwords(cluster.home)
    asyncio.run(provision(cluster, server))
    with owner(provisioned, Side.TOOLS) as connection:
        assert one(connection, "SELECT 1") == 1


def test_a_lost_owners_password_is_made_anew(provisioned: tuple[Cluster, Server]) -> None:
    cluster, server = provisioned
    (cluster.home.passwords / "owner" / OWNER[Side.HOST]).unlink()
    write_passwords(cluster.home)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        owner(provisioned, Side.HOST)
    asyncio.run(provision(cluster, server))
    owner(provisioned, Side.HOST).close()


def test_each_side_is_given_its_own_passwords_and_no_connection_string_holds_one(
    provisioned: tuple[Cluster, Server],
) -> None:
    cluster, server = provisioned
    for side in Side:
        assert {path.name for path in (cluster.home.passwords / side).iterdir()} == set(LIMITED[side])
        for role in (*LIMITED[side], OWNER[side]):
            parts = conninfo_to_dict(dsn(cluster.home, server, side, role))
            assert "password" not in parts
            line = Path(str(parts["passfile"])).read_text()
            assert line.startswith(f"*:*:*:{role}:")
            assert line.count("\n") == 1


def test_no_password_reaches_the_servers_log_not_even_with_a_statement_that_fails(
    provisioned: tuple[Cluster, Server],
) -> None:
    cluster, server = provisioned
    with admin(cluster, server) as connection:
        connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        connection.execute("SELECT pg_reload_conf()")
        asyncio.run(provision(cluster, server))
        connection.execute("ALTER SYSTEM RESET log_statement")
        connection.execute("SELECT pg_reload_conf()")
    log = cluster.log.read_text()
    assert "SCRAM-SHA-256$" in log
    for file in (cluster.home.passwords / "owner").iterdir():
        assert file.read_text() not in log
