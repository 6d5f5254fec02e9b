"""No program may change or remove a line of any history: asked of both databases' own catalogues, and not of a list."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.cluster import database_name, dsn_of
from tests.support.engine import host_database
from tests.support.tool_shop import migrated_database

# Every table whose rows a trigger keeps, with whoever may change it all the same: any role but the owner's and
# superusers. To be a member of the owner's role is to have its rights.
CHANGEABLE = """
    WITH history AS (
        SELECT DISTINCT c.oid, c.oid::regclass::text AS name, c.relowner
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE NOT t.tgisinternal AND t.tgname = 'append_only')
    SELECT name, rolname, held
    FROM history CROSS JOIN pg_roles r CROSS JOIN unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) AS held
    WHERE r.oid <> relowner AND NOT rolsuper AND rolname !~ '^pg_'
      AND (has_table_privilege(r.oid, history.oid, held) OR pg_has_role(r.oid, relowner, 'MEMBER'))
    UNION ALL
    SELECT name, 'PUBLIC', a.privilege_type
    FROM history JOIN pg_class USING (oid) CROSS JOIN aclexplode(relacl) a
    WHERE a.grantee = 0 AND a.privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE')
    ORDER BY 1, 2, 3
"""
LOGS = "SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger WHERE tgname = 'append_only'"
RUNTIME = "SELECT count(*) FROM pg_roles WHERE rolcanlogin AND NOT rolsuper AND rolname ~ %s"


@pytest.fixture(scope="module")
def databases() -> dict[str, str]:
    """Both, migrated; as superuser."""
    return {"host": dsn_of(database_name(host_database())), "tools": migrated_database().admin}


@pytest.mark.parametrize(
    ("side", "known"),
    [
        ("host", {"audit", "checkpoint", "decision", "approval", "stop_log", "seal_link", "seal_head", "seal_witness"}),
        ("tools", {"calls.log", "calls.key", "calls.revocation", "calls.seal_link", "calls.seal_head"}),
    ],
)
def test_no_role_of_a_program_may_change_or_remove_or_empty_a_history(databases, side: str, known: set[str]):
    with psycopg.connect(databases[side]) as admin:
        assert known <= {name for (name,) in admin.execute(LOGS).fetchall()}
        assert admin.execute(RUNTIME, [f"^{side}_"]).fetchone() >= (2,)
        assert admin.execute(CHANGEABLE).fetchall() == []


@pytest.mark.parametrize(
    ("side", "grant", "found"),
    [
        ("host", "GRANT DELETE ON audit TO host_rt", ("audit", "host_rt", "DELETE")),
        ("host", "GRANT TRUNCATE ON decision TO PUBLIC", ("decision", "PUBLIC", "TRUNCATE")),
        ("tools", "GRANT UPDATE ON calls.log TO tools_orders", ("calls.log", "tools_orders", "UPDATE")),
    ],
)
def test_a_right_that_somebody_grants_is_found(databases, side: str, grant: str, found: tuple[str, str, str]):
    with psycopg.connect(databases[side]) as admin:
        admin.execute(grant.encode())
        assert found in admin.execute(CHANGEABLE).fetchall()
        admin.rollback()
