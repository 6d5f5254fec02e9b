"""What the database itself refuses: to each role what is another's, and to everybody what breaks a bound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg import errors, sql

from shared_contracts.contract import FAMILIES
from tests.support.tool_orders import line, order
from tests.support.tool_prepared import ORDER, made_return, sent_notice
from tests.support.tool_shop import ENTER, Shop, open_shop, within
from tool_server.dispatch import Dispatcher
from tool_server.store.roles import ROLES

# What a family may read of another: columns that are not personal, and nothing else; who is not here reads nothing.
SOLD, RETURNED = {"orders.orders", "orders.lines"}, {"returns.returns", "returns.return_lines", "returns.cancellations"}
COUNTED = {"returns.order_counters", "returns.line_counters"}
LENT: dict[str, set[str]] = {
    "tools_orders": {"returns.returned_units", "returns.refunded_amount", *COUNTED},
    "tools_policies": SOLD | RETURNED | COUNTED,
    "tools_returns": {
        "orders.owned", *SOLD, "policies.order_lines", "policies.category_rules", "policies.versions",
        "policies.amounts", "policies.rules",
    },
    "tools_notices": {"orders.owned"} | SOLD | RETURNED,
    "tools_auditor": {
        "returns.returns", "returns.return_lines", "returns.cancellations", "returns.links", "notices.audited",
        "returns.loaded", "returns.approvers", "returns.approvals_used",
    },
}  # fmt: skip
APPEND_ONLY = (
    "calls.log", "calls.key", "calls.key_closed", "calls.token_used", "calls.tool_switch", "calls.revocation",
    "returns.returns", "returns.return_lines", "returns.cancellations", "returns.links", "policies.versions",
    "policies.rules", "policies.amounts", "returns.approvers", "returns.approvals_used",
    "document.rule_sets", "document.aliases", "document.cases", "document.documents",
)  # fmt: skip
# A destination's reference is none of them: it tells neither an account nor an address.
PERSONAL = ("email", "name", "note", "content", "language")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = open_shop(tmp_path, order("A-1", line("L1", quantity=2), shipping_fee=550), order("A-2", line("L1")))

    async def scene(tools: Dispatcher) -> None:
        await sent_notice(tools, await made_return(tools, key="R"), key="N")

    shop.run(scene)
    return shop


def relations(shop: Shop) -> Iterator[tuple[str, str, list[str]]]:
    """Every table and view of ours, with what a role may do to it."""
    for role in ROLES:
        rows = shop.rows(
            "SELECT n.nspname || '.' || c.relname, array_remove(ARRAY["
            " CASE WHEN has_any_column_privilege(%s, c.oid, 'SELECT') THEN 'SELECT' END,"
            " CASE WHEN has_any_column_privilege(%s, c.oid, 'INSERT') THEN 'INSERT' END,"
            " CASE WHEN has_any_column_privilege(%s, c.oid, 'UPDATE') THEN 'UPDATE' END,"
            " CASE WHEN has_table_privilege(%s, c.oid, 'DELETE') THEN 'DELETE' END,"
            " CASE WHEN has_table_privilege(%s, c.oid, 'TRUNCATE') THEN 'TRUNCATE' END], NULL)"
            " FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
            " WHERE n.nspname = ANY(%s)"
            " AND c.relkind IN ('r', 'v')",
            *[role] * 5,
            ["calls", *FAMILIES],
        )
        for relation, rights in rows:
            yield role, relation, rights


def test_a_role_touches_its_own_family_and_what_was_lent_to_it(shop: Shop) -> None:
    for role, relation, rights in relations(shop):
        schema = relation.split(".")[0]
        if schema in FAMILIES and f"tools_{schema}" != role and rights:
            assert (relation in LENT.get(role, set()), rights) == (True, ["SELECT"]), (role, relation)


def test_what_is_lent_of_another_family_has_no_personal_column(shop: Shop) -> None:
    columns = [
        (role, *row)
        for role, lent in LENT.items()
        for row in shop.rows(
            "SELECT n.nspname || '.' || c.relname, a.attname"
            " FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
            " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
            " WHERE a.attnum > 0 AND n.nspname || '.' || c.relname = ANY(%s)"
            " AND has_column_privilege(%s, c.oid, a.attnum, 'SELECT')",
            sorted(lent),
            role,
        )
    ]
    assert {(role, relation) for role, relation, _ in columns} == {
        (role, relation) for role, lent in LENT.items() for relation in lent
    }
    # a mail names what it is about
    assert [row for row in columns if row[2] in PERSONAL] == [("tools_notices", "orders.lines", "name")]


def test_no_role_changes_or_removes_what_is_append_only(shop: Shop) -> None:
    rights = {(role, relation): rights for role, relation, rights in relations(shop)}
    assert {relation for _, relation in rights} >= set(APPEND_ONLY)
    for role in ROLES:
        for relation in APPEND_ONLY:
            assert not {"UPDATE", "DELETE", "TRUNCATE"} & set(rights[role, relation]), (role, relation)
        assert "DELETE" not in rights[role, "notices.outbox"]


def test_the_auditor_writes_nothing_and_reads_no_address(shop: Shop) -> None:
    writes = [
        relation
        for role, relation, rights in relations(shop)
        if role == "tools_auditor" and rights not in ([], ["SELECT"])
    ]
    assert writes == []
    with psycopg.connect(shop.database.dsn("tools_auditor"), autocommit=True) as auditor:
        for readable in ("TABLE calls.log", "TABLE returns.returns", "TABLE notices.audited"):
            assert auditor.execute(readable).fetchall() != []
        for closed in ("TABLE notices.outbox", "TABLE notices.recipients", "TABLE orders.orders"):
            with pytest.raises(errors.InsufficientPrivilege):
                auditor.execute(closed)


FOREIGN: list[tuple[str, LiteralString]] = [
    ("orders", "UPDATE orders.orders SET status = 'refunded'"),
    ("orders", "SELECT * FROM returns.returns"),
    ("orders", "SELECT * FROM notices.recipients"),
    ("policies", "SELECT note FROM orders.orders"),
    ("policies", "INSERT INTO policies.rules SELECT * FROM policies.rules"),
    ("returns", "SELECT note FROM orders.orders"),
    ("returns", "UPDATE returns.line_counters SET returned = 0"),
    ("returns", "DELETE FROM returns.returns"),
    ("returns", "INSERT INTO returns.links VALUES ('acme', 'R', 'label_used', 'x')"),
    ("returns", "SELECT * FROM notices.outbox"),
    ("notices", "SELECT * FROM returns.returns"),
    ("notices", "SELECT * FROM orders.lines"),
    ("notices", "DELETE FROM notices.outbox"),
    ("notices", "UPDATE notices.outbox SET message_id = 'other'"),
    ("notices", "INSERT INTO notices.recipients VALUES ('acme', 'C-1', 'x@example.com', 'x', 'ja')"),
    ("returns", "INSERT INTO calls.tool_switch (tool, enabled, actor) VALUES ('create_return', true, 'me')"),
    ("returns", "SELECT * FROM calls.log"),
    ("orders", "CREATE TABLE public.mine (x int)"),
    ("orders", "CREATE TEMPORARY TABLE mine (x int)"),
    ("returns", "CREATE OR REPLACE FUNCTION public.clock_now() RETURNS timestamptz LANGUAGE sql RETURN now()"),
]


@pytest.mark.parametrize(("family", "statement"), FOREIGN)
def test_a_role_is_refused_what_is_not_its_own(shop: Shop, family: str, statement: LiteralString) -> None:
    with (
        psycopg.connect(shop.database.dsn(f"tools_{family}")) as connection,
        pytest.raises(errors.InsufficientPrivilege),
    ):
        connection.execute(statement)


HISTORY = [
    "calls.log", "calls.tool_switch", "calls.revocation", "calls.key", "calls.key_closed", "calls.token_used",
    "returns.returns", "returns.return_lines", "returns.cancellations",
]  # fmt: skip


COLUMN = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND attidentity = '' LIMIT 1"


@pytest.mark.parametrize("table", HISTORY)
def test_what_happened_stays_for_the_owner_of_the_tables_too(shop: Shop, table: str) -> None:
    name = sql.SQL(".").join(map(sql.Identifier, table.split(".")))
    with psycopg.connect(shop.database.owner) as owner:
        switched = "INSERT INTO calls.tool_switch (tool, enabled, actor) VALUES ('none', true, 'me')"
        revoked = "INSERT INTO calls.revocation (kind, value, actor) VALUES ('jti', 'none', 'me')"
        used = "INSERT INTO calls.token_used (iss, jti) VALUES ('none', 'none')"
        for prepare in (switched, revoked, used):
            owner.execute(prepare)
        (column,) = owner.execute(COLUMN, (table,)).fetchone() or ("?",)
        changes = (
            sql.SQL("UPDATE {} SET {} = {}").format(name, sql.Identifier(column), sql.Identifier(column)),
            sql.SQL("DELETE FROM {}").format(name),
            sql.SQL("TRUNCATE {} CASCADE").format(name),
        )
        for change in changes:
            with pytest.raises(errors.CheckViolation, match="is append-only"), owner.transaction():
                owner.execute(change)


def test_no_role_is_more_than_a_login(shop: Shop) -> None:
    rows = shop.rows(
        "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s) AND NOT (rolsuper OR rolcreatedb OR rolcreaterole"
        " OR rolinherit OR rolreplication OR rolbypassrls)",
        list(ROLES),
    )
    assert {name for (name,) in rows} == set(ROLES)
    assert {f"tools_{family}" for family in FAMILIES} | {"tools_sealer", "tools_auditor"} == set(ROLES)


RETURN: LiteralString = """
    INSERT INTO returns.returns (tenant_id, return_id, order_id, customer_id, idempotency_key, status, reason,
                                 currency, refund, shipping_refund, return_fee, rule_version, order_version,
                                 requested_at)
    VALUES ('acme', 'R-raw', 'A-1', 'C-1', %s, 'created', 'other', 'JPY', %s, %s, 0, 'p', 1, now())"""
LINE: LiteralString = "INSERT INTO returns.return_lines VALUES ('acme', 'A-1', 'R-raw', 'L1', %s, %s)"
BROKEN_RETURNS = [
    # constraint                    key   refund shipping  units refund of the line
    ("one_return_per_key",          ("R", 0, 0),           (1, 0)),
    ("refunded_within_captured",    (None, 6_000, 0),      (1, 0)),
    ("shipping_refunded_once",      (None, 0, 551),        (1, 0)),
    ("minor_check",                 (None, -1, 0),         (1, 0)),
    ("returned_within_delivered",   (None, 0, 0),          (2, 0)),
    ("refunded_within_paid",        (None, 0, 0),          (1, 3_001)),
    ("return_lines_quantity_check", (None, 0, 0),          (0, 0)),
]  # fmt: skip
BROKEN_NOTICES: list[tuple[str, LiteralString]] = [
    ("legal_move", "UPDATE notices.outbox SET status = 'pending', content = '', sent_at = NULL"),
    ("sent_has_its_time", "UPDATE notices.outbox SET sent_at = NULL"),
    ("one_notice_per_key", "INSERT INTO notices.outbox TABLE notices.outbox"),
]


def broken(connection: psycopg.Connection, statements: list[tuple[LiteralString, tuple[object, ...]]]) -> str | None:
    """The constraint that refuses one of the statements."""
    try:
        for statement, values in statements:
            connection.execute(statement, values)
    except errors.IntegrityError as error:
        return error.diag.constraint_name
    return None


@pytest.mark.parametrize(("constraint", "made", "line"), BROKEN_RETURNS, ids=[row[0] for row in BROKEN_RETURNS])
def test_a_bound_of_returns_holds_against_raw_sql_of_their_own_family(
    shop: Shop, constraint: str, made: tuple[object, ...], line: tuple[object, ...]
) -> None:
    with psycopg.connect(shop.database.dsn("tools_returns")) as connection:
        connection.execute(ENTER, within())
        assert broken(connection, [(RETURN, made), (LINE, line)]) == constraint


@pytest.mark.parametrize(("constraint", "statement"), BROKEN_NOTICES, ids=[row[0] for row in BROKEN_NOTICES])
def test_a_bound_of_notices_holds_against_raw_sql_of_their_own_family(
    shop: Shop, constraint: str, statement: LiteralString
) -> None:
    with psycopg.connect(shop.database.dsn("tools_notices")) as connection:
        connection.execute(ENTER, within())
        assert broken(connection, [(statement, ())]) == constraint


def test_a_notice_that_was_sent_keeps_no_copy_of_the_mail(shop: Shop) -> None:
    assert shop.rows("SELECT status, content FROM notices.outbox") == [("sent", None)]


def test_the_log_keeps_digests_and_never_what_was_asked(shop: Shop) -> None:
    rows = shop.rows(
        "SELECT to_jsonb(l)::text, arguments_sha256, duration_us FROM calls.log AS l WHERE tool = 'create_return'"
    )
    ((text, sha256, duration),) = rows
    assert len(sha256) == 64
    assert duration > 0
    assert "changed_mind" not in text
    assert ORDER["order_id"] in text
