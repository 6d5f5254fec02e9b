"""The cluster that tests use: real, shared by one process, closed to whoever was not let in."""

from __future__ import annotations

import psycopg
import pytest

from tests.support import cluster


def test_a_new_database_is_empty_and_asks_for_a_password() -> None:
    dsn = cluster.create_database()
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT current_setting('fsync')").fetchone() == ("off",)
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(cluster.dsn_of(cluster.database_name(dsn), user="postgres", password="wrong"))
    cluster.drop_database(dsn)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(dsn)


def test_a_copy_of_a_database_holds_what_its_template_held() -> None:
    original = cluster.create_database()
    with psycopg.connect(original) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
    copy = cluster.create_database(template=cluster.database_name(original))
    with psycopg.connect(copy) as connection:
        assert connection.execute("SELECT value FROM kept").fetchone() == (7,)
    cluster.drop_database(copy)
    cluster.drop_database(original)
