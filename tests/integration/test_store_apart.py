"""Host and tool server hold nothing of each other's: not by their passwords, and not where they got in all the same."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass

import psycopg
import pytest

from host.store.migrate import make_roles
from tests.support.cluster import database_name, dsn_of
from tests.support.engine import PASSWORD, ROLE, host_database
from tests.support.rights import SCHEMAS, relations, statements, works
from tests.support.tool_shop import tool_database
from tool_server.store.migrate import migrate
from tool_server.store.roles import ROLES


@dataclass(frozen=True)
class Place:
    """A database: the superuser's connection string, its schemas, and the other side's roles with their passwords."""

    dsn: str
    schemas: tuple[str, ...]
    strangers: dict[str, str]


@pytest.fixture(scope="module")
def places() -> dict[str, Place]:
    tools = tool_database()
    host = dsn_of(database_name(host_database()))
    for dsn in (host, tools.admin):
        opened(dsn)
    make_roles(host)  # each program closes its own
    asyncio.run(migrate(tools.owner, tools.passwords))
    passwords = {role: (tools.passwords / role).read_text() for role in ROLES}
    return {
        "host": Place(host, ("public",), passwords),
        "tools": Place(tools.admin, (*SCHEMAS, "public"), {ROLE: PASSWORD, **auditor(host)}),
    }


def opened(dsn: str) -> None:
    """Let everybody in, as PostgreSQL does by itself: that nobody is must be the programs' own doing."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(f"GRANT CONNECT, TEMPORARY ON DATABASE {database_name(dsn)} TO PUBLIC".encode())


def auditor(dsn: str) -> dict[str, str]:
    role, password = "host_auditor", secrets.token_hex(8)
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(f"ALTER ROLE {role} PASSWORD '{password}'".encode())
    return {role: password}


@pytest.mark.parametrize("side", ["host", "tools"])
def test_no_role_of_the_other_side_is_let_into_a_database(places: dict[str, Place], side: str) -> None:
    name = database_name(places[side].dsn)
    for role, password in places[side].strangers.items():
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(dsn_of(name, user=role, password=password))


@pytest.mark.parametrize("side", ["host", "tools"])
def test_no_role_of_the_other_side_may_run_any_statement_there(places: dict[str, Place], side: str) -> None:
    place = places[side]
    for role in place.strangers:
        known = relations(place.dsn, role, place.schemas)
        assert len(known) > 20
        with psycopg.connect(place.dsn, autocommit=True) as connection:
            connection.execute(f"SET ROLE {role}".encode())
            done = [(str(each), name) for each in known for name, text in statements(each) if works(connection, text)]
            functions = connection.execute(
                "SELECT p.oid::regprocedure::text FROM pg_proc AS p WHERE p.pronamespace = ANY("
                " SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = ANY(%s))"
                " AND has_function_privilege(p.oid, 'EXECUTE') AND has_schema_privilege(p.pronamespace, 'USAGE')",
                (list(place.schemas),),
            ).fetchall()
        assert (done, functions) == ([], []), role
