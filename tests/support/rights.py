"""What each role of the tool server's database may do to each table and view, by trying it.

lines(database)             # role, relation, and of select insert update delete truncate what was not refused
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors, sql

from shared_contracts.contract import FAMILIES
from tests.support.tool_shop import ToolDatabase
from tool_server.store.roles import ROLES

SCHEMAS = ("calls", *FAMILIES)
RELATIONS = """
SELECT n.nspname, c.relname, c.relkind = 'v',
       array_agg(a.attname::text ORDER BY a.attnum),
       array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE has_column_privilege(%(role)s, c.oid, a.attnum, 'SELECT')),
       array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE has_column_privilege(%(role)s, c.oid, a.attnum, 'INSERT')),
       array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE has_column_privilege(%(role)s, c.oid, a.attnum, 'UPDATE'))
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE n.nspname = ANY(%(schemas)s) AND c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped
GROUP BY n.nspname, c.relname, c.relkind ORDER BY n.nspname, c.relname"""  # noqa: E501
# A view that cannot be written at all refuses everybody before it asks who it is.
REFUSED = (errors.InsufficientPrivilege, errors.WrongObjectType, errors.ObjectNotInPrerequisiteState)
DONE = (errors.IntegrityError, errors.FeatureNotSupported)  # refused, but not for want of a right


@dataclass(frozen=True)
class Relation:
    """A table or view, and the columns that the catalogue says one role may select, insert and update."""

    schema: str
    name: str
    is_view: bool
    columns: list[str]
    granted: dict[str, list[str]]

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


def relations(dsn: str, role: str, schemas: Sequence[str] = SCHEMAS) -> list[Relation]:
    """Every table and view of a superuser's database, as one role has it."""
    with psycopg.connect(dsn) as admin:
        rows = admin.execute(RELATIONS.encode(), {"role": role, "schemas": list(schemas)}).fetchall()
    return [
        Relation(schema, name, view, columns, {"select": read or [], "insert": put or [], "update": change or []})
        for schema, name, view, columns, read, put, change in rows
    ]


def lines(database: ToolDatabase) -> Iterator[str]:
    """Try all five statements of all roles on all relations; a command on some columns alone names them."""
    for role in ROLES:
        with psycopg.connect(database.dsn(role), autocommit=True) as connection:
            for relation in relations(database.admin, role):
                done = [_shown(relation, name) for name, text in statements(relation) if works(connection, text)]
                yield " ".join([role, str(relation), *(done or ["-"])])


def statements(relation: Relation) -> Iterator[tuple[str, sql.Composed]]:
    """One statement of each kind that touches no row."""
    name = sql.Identifier(relation.schema, relation.name)
    last = 0 if relation.is_view else -1  # what a view computes is written by nobody, whoever he is
    put, change = (sql.Identifier((relation.granted[kind] or relation.columns)[last]) for kind in ("insert", "update"))
    yield "select", sql.SQL("SELECT FROM {} WHERE false").format(name)
    yield "insert", sql.SQL("INSERT INTO {} ({}) SELECT NULL WHERE false").format(name, put)
    yield "update", sql.SQL("UPDATE {} SET {} = DEFAULT WHERE false").format(name, change)
    yield "delete", sql.SQL("DELETE FROM {} WHERE false").format(name)
    yield "truncate", sql.SQL("TRUNCATE {}").format(name)


def works(connection: psycopg.Connection[Any], statement: sql.Composed) -> bool:
    """Whether it is not refused; nothing of it stays."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement)
    except REFUSED:
        return False
    except DONE:
        return True
    return True


def _shown(relation: Relation, command: str) -> str:
    some = relation.granted.get(command, relation.columns)
    return command if some == relation.columns else f"{command}({','.join(some)})"
