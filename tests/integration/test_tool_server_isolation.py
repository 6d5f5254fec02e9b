"""Beneath the handlers the database holds each role to its family, and each transaction to the rows of its token."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo

from shared_contracts import contract
from shared_contracts.task_token import Use
from shared_contracts.tools import TOOLS
from tests.support.rights import SCHEMAS, Relation, lines, relations
from tests.support.tool_approvals import Person, trusted
from tests.support.tool_orders import line, order, recipient
from tests.support.tool_prepared import GOOD, ORDER, made_return, owner_of, prepared, sent_notice, with_demo
from tests.support.tool_shop import ENTER, Shop, ask, code_of, given, open_shop, shop_over, tool_database, within
from tool_server.call import Answer, Answered
from tool_server.dispatch import Dispatcher
from tool_server.store.roles import ROLES

RIGHTS = Path(__file__).parents[1] / "fixtures" / "tool_rights.txt"
FAMILIES = [f"tools_{family}" for family in contract.FAMILIES]
# What belongs to no tenant: an operator's switches, and the numbers of tokens that have acted.
NOBODYS = {"calls.tool_switch", "calls.revocation", "calls.token_used"}
# The sealed record is of all calls; no family has any right to it.
RECORD = {"calls.act", *(f"calls.seal_{of}" for of in ("chain", "link", "head", "witness", "cut", "restored"))}
# What is a tenant's as a whole, and what is a customer's as a whole.
TENANTS = {
    "policies.versions", "policies.rules", "policies.amounts", "policies.category_rules", "returns.approvers",
    "returns.trusted_approvers", "document.rule_sets", "document.aliases",
}  # fmt: skip
CUSTOMERS = {"notices.recipients"}
EVERYBODYS = {"policies.versions", "policies.rules", "policies.amounts", "policies.category_rules"}
# These work with their owner's rights: each has bounds of its own, or is for nobody who has any.
OWNERS_VIEWS = {"document.held", "notices.audited"}
OWNERS_FUNCTIONS = {
    "returns.count_return", "returns.count_return_line", "returns.count_cancellation", "returns.lock_order",
    "calls.forget_tokens", "notices.due", "calls.seal_batch", "calls.sign_head", "calls.newest_head",
    "calls.witness_head", "calls.sealed_lines", "calls.unsealed_lines", "calls.seal_standing", "calls.note_act",
}  # fmt: skip


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = open_shop(tmp_path, order("A-1", line("L1", quantity=3)), recipients=[recipient("C-1")])
    with_demo(shop)

    async def scene(tools: Dispatcher) -> None:
        await sent_notice(tools, await made_return(tools, key="R-1"), key="N")
        gone = await made_return(tools, key="K")
        given(await ask(tools, "cancel_return", {**ORDER, "return_id": gone}, key="C"))

    shop.run(scene)
    asyncio.run(trusted(shop, Person.named("tanaka")))
    shop.rows("INSERT INTO returns.links SELECT tenant_id, return_id, 'inventory', 'I-1' FROM returns.returns")
    return shop


def test_each_role_is_refused_every_statement_that_it_does_not_need() -> None:
    rights = RIGHTS.read_text().splitlines()
    assert list(lines(tool_database())) == rights
    of_record = {line for line in rights for role in FAMILIES for of in RECORD if line.startswith(f"{role} {of} ")}
    assert {line.split()[2] for line in of_record} == {"-"}


def test_the_catalogue_gives_no_role_a_right_that_no_statement_tries() -> None:
    """Nor does any role own something, or may it act as an owner or as another role."""
    database = tool_database()
    with psycopg.connect(database.admin) as admin:
        odd = admin.execute(
            "SELECT r.rolname, c.oid::regclass FROM pg_class AS c CROSS JOIN pg_roles AS r"
            " WHERE r.rolname = ANY(%s) AND c.relnamespace = ANY(%s::regnamespace[]) AND c.relkind IN ('r', 'v')"
            " AND (has_table_privilege(r.oid, c.oid, 'REFERENCES, TRIGGER')"
            " OR pg_has_role(r.oid, c.relowner, 'MEMBER'))",
            (list(ROLES), list(SCHEMAS)),
        ).fetchall()
    assert odd == []


def test_every_table_has_its_bounds_and_every_view_its_readers_rights() -> None:
    with psycopg.connect(tool_database().admin) as admin:
        rows = admin.execute(
            "SELECT c.oid::regclass::text, c.relkind = 'v' FROM pg_class AS c"
            " WHERE c.relnamespace = ANY(%s::regnamespace[]) AND (c.relkind = 'r' AND NOT c.relrowsecurity"
            " OR c.relkind = 'v' AND NOT 'security_invoker=true' = ANY(coalesce(c.reloptions, '{}')))",
            (list(SCHEMAS),),
        ).fetchall()
        functions = admin.execute(
            "SELECT n.nspname || '.' || p.proname FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace"
            " WHERE p.prosecdef AND n.nspname NOT LIKE 'pg_%%'"
        ).fetchall()
    assert {name for name, is_view in rows if not is_view} == NOBODYS | RECORD
    assert {name for name, is_view in rows if is_view} == OWNERS_VIEWS
    assert {name for (name,) in functions} == OWNERS_FUNCTIONS


@pytest.mark.parametrize("role", FAMILIES)
def test_a_role_sees_the_rows_of_the_token_and_no_others(shop: Shop, role: str) -> None:
    about, owner = (GOOD["case_id"], "P-3002") if role == "tools_document" else ("A-1", "C-1")
    tenant = "anshin-jp" if role == "tools_document" else "acme"
    read = [
        each for each in relations(shop.database.admin, role) if each.granted["select"] and str(each) not in NOBODYS
    ]
    seen = {
        "its own": within(about, tenant, owner, "R-1"),
        "all of the customer": within("*", tenant, owner, "R-1"),
        "another order": within("A-2", tenant, owner, "another"),
        "another customer": within(about, tenant, "C-2", "another"),
        "another tenant": within(about, "beta", owner, "R-1"),
        "nothing said": None,
    }
    with psycopg.connect(shop.database.dsn(role), autocommit=True) as connection:
        found = {who: {str(each) for each in read if _count(connection, each, bounds)} for who, bounds in seen.items()}
    everything = {str(each) for each in read}
    assert len(everything) >= 5
    assert found == {
        "its own": everything - {"calls.key_closed"},
        "all of the customer": everything - {"calls.key_closed"},
        "another order": everything & (TENANTS | CUSTOMERS),
        "another customer": everything & TENANTS,
        "another tenant": everything & EVERYBODYS,
        "nothing said": set(),
    }


def one(connection: psycopg.Connection[Any], query: LiteralString | sql.Composed) -> Any:
    ((value,),) = connection.execute(query).fetchall()
    return value


def _count(connection: psycopg.Connection[Any], relation: Relation, bounds: tuple[str] | None) -> int:
    with connection.transaction():
        if bounds is not None:
            connection.execute(ENTER, bounds)
        name = sql.Identifier(relation.schema, relation.name)
        return int(one(connection, sql.SQL("SELECT count(*) FROM {}").format(name)))


def test_that_a_key_was_closed_is_seen_under_that_key_and_in_its_tenant_alone(shop: Shop) -> None:
    assert given(shop.run(lambda tools: ask(tools, "find_return", ORDER, key="closed")))["closed_through"] == 1
    asked = {
        within("A-1", "acme", "C-1", "closed"): 1,
        within("A-1", "acme", "C-1", "another"): 0,
        within("A-1", "beta", "C-1", "closed"): 0,
    }
    with psycopg.connect(shop.database.dsn("tools_returns"), autocommit=True) as connection:
        for bounds, seen in asked.items():
            with connection.transaction():
                connection.execute(ENTER, bounds)
                assert one(connection, "SELECT count(*) FROM calls.key_closed") == seen, bounds


def test_a_token_that_names_no_order_reads_its_customers_and_nobody_elses(shop: Shop) -> None:
    reads = [tool for tool in TOOLS.values() if not tool.writes]

    async def scene(tools: Dispatcher, customer: str | None) -> list[Answer]:
        given = []
        for tool in reads:
            owner = owner_of(tool) | ({} if customer is None else {"customer": customer})
            arguments = await prepared(tools, tool)
            given += [await ask(tools, tool.name, arguments, use=Use.EXTERNAL, resource=None, key="outside", **owner)]
        return given

    own = shop.run(lambda tools: scene(tools, None))
    assert [answer for answer in own if not isinstance(answer, Answered)] == []
    foreign = shop.run(lambda tools: scene(tools, "C-2"))
    assert {code_of(answer) for answer in foreign} == {"not_found"}


# each of them: rows that all five bound would stay unseen though four were left
LEFT: LiteralString = (
    "SELECT string_agg(current_setting('kessai.' || name, true), '')"
    " FROM unnest(ARRAY['tenant', 'customer', 'reach', 'task', 'key']) AS name"
)


def test_the_bounds_of_a_transaction_end_with_it(shop: Shop) -> None:
    with psycopg.connect(shop.database.dsn("tools_orders"), autocommit=True) as connection:
        asked = "SELECT count(*) FROM orders.orders"
        with connection.transaction():
            connection.execute(ENTER, within(key="K"))
            assert one(connection, asked) == 1
        assert (one(connection, asked), one(connection, LEFT)) == (0, "")
        with pytest.raises(errors.DivisionByZero):
            connection.execute("SELECT 1 / 0 FROM calls.enter(%s::jsonb)", within(key="K"))
        assert (one(connection, asked), one(connection, LEFT)) == (0, "")


PLANS = (
    "-c enable_nestloop=off",
    "-c enable_hashjoin=off -c enable_mergejoin=off -c plan_cache_mode=force_generic_plan",
    "-c enable_indexscan=off -c enable_indexonlyscan=off -c enable_bitmapscan=off -c enable_material=off",
)


@pytest.mark.parametrize("plan", PLANS)
def test_a_call_enters_before_it_asks_whatever_the_plan(shop: Shop, plan: str) -> None:
    dsns = {
        f"{family}_dsn": make_conninfo(shop.database.dsn(f"tools_{family}"), options=plan)
        for family in contract.FAMILIES
    }

    async def scene(tools: Dispatcher) -> list[Answer]:
        given = []
        # to be corrected, a notice is sent; and what is cancelled is told of no more
        last = ("send_correction_notice", "cancel_return", "create_return")
        reads = [tool.name for tool in TOOLS.values() if not tool.writes]
        for tool in (TOOLS[name] for name in (*reads, *last)):
            arguments = await prepared(tools, tool)
            given += [await ask(tools, tool.name, arguments, key=f"plan-{tool.name}", **owner_of(tool))]
        return given

    answers = shop_over(shop.database, shop.maildir.parent, dsns).run(scene)
    assert [answer for answer in answers if not isinstance(answer, Answered)] == []


RETURN: LiteralString = """
    INSERT INTO returns.returns (tenant_id, return_id, order_id, customer_id, status, reason, currency, refund,
                                 shipping_refund, return_fee, rule_version, order_version, requested_at)
    VALUES (%(tenant)s, 'R-raw', %(order)s, %(customer)s, 'created', 'other', 'JPY', 0, 0, 0, 'p', 1, now())"""
NOTICE: LiteralString = """
    INSERT INTO notices.outbox (tenant_id, idempotency_key, customer_id, order_id, return_id, kind, message_id, channel,
                                destination_ref, status, content)
    VALUES (%(tenant)s, 'raw', %(customer)s, %(order)s, 'R-raw', 'return', 'm', 'maildir', 'x://y', 'pending', '')"""
LOG: LiteralString = """
    INSERT INTO calls.log (iss, sub, client_id, kid, jti, use, tenant_id, task_id, tool, outcome, duration_us)
    VALUES ('i', 's', 'c', 'k', 'j', 'call', %(tenant)s, %(task)s, 't', 'ok', 1)"""
KEY: LiteralString = """
    INSERT INTO calls.key (tenant_id, idempotency_key, tool, customer_id, arguments_sha256)
    VALUES (%(tenant)s, 'raw', 't', %(customer)s, 'd')"""
CLOSED: LiteralString = (
    "INSERT INTO calls.key_closed (tenant_id, idempotency_key, through) VALUES (%(tenant)s, 'raw', 1)"
)
WRITES: list[tuple[str, LiteralString, tuple[str, ...]]] = [
    # role, statement, and what of it the bounds hold
    ("tools_returns", RETURN, ("tenant", "customer", "order")),
    ("tools_notices", NOTICE, ("tenant", "customer", "order")),
    ("tools_orders", LOG, ("tenant", "task")),
    ("tools_returns", KEY, ("tenant", "customer")),
    ("tools_notices", CLOSED, ("tenant",)),
]
OWN = {"tenant": "acme", "customer": "C-1", "order": "A-1", "task": "W-1"}
OTHER = {"tenant": "beta", "customer": "C-2", "order": "A-2", "task": "W-2"}


@pytest.mark.parametrize(("role", "statement", "held"), WRITES, ids=["return", "notice", "log", "key", "closed key"])
def test_a_row_of_anothers_is_not_written(
    shop: Shop, role: str, statement: LiteralString, held: tuple[str, ...]
) -> None:
    with psycopg.connect(shop.database.dsn(role)) as connection:
        for member in held:
            connection.execute(ENTER, within(key="raw"))
            with pytest.raises(errors.InsufficientPrivilege, match="row-level security"), connection.transaction():
                connection.execute(statement, {**OWN, member: OTHER[member]})
        connection.execute(statement, OWN)
        connection.execute(ENTER, ("{}",))
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            connection.execute(statement, OWN)


def test_a_return_is_not_made_for_anothers_order_whatever_the_token_names(shop: Shop) -> None:
    """A token that names an order of another customer's sees nothing of it and writes nothing beside it."""
    with psycopg.connect(shop.database.dsn("tools_returns")) as connection:
        connection.execute(ENTER, within(customer="C-2"))
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            connection.execute(RETURN, OWN | {"customer": "C-2"})


def test_an_earlier_claimant_sees_no_version_of_a_case_that_is_another_persons_now(shop: Shop) -> None:
    moved = (
        "INSERT INTO document.cases SELECT tenant_id, case_id, version + 1, 'P-9', rule_name, rule_version"
        " FROM document.current_cases WHERE case_id = %s"
    )
    shop.rows(moved, GOOD["case_id"])
    with psycopg.connect(shop.database.dsn("tools_document")) as connection:
        for claimant, seen in (("P-3002", 0), ("P-9", 2)):
            connection.execute(ENTER, within(GOOD["case_id"], "anshin-jp", claimant))
            assert one(connection, "SELECT count(*) FROM document.cases") == seen
            assert (one(connection, "SELECT count(*) FROM document.documents") > 0) == (seen > 0)


def test_an_order_of_anothers_is_not_locked(shop: Shop) -> None:
    with psycopg.connect(shop.database.dsn("tools_returns")) as mine, psycopg.connect(shop.database.owner) as owner:
        for bounds in (within(tenant="beta"), within("A-2"), ("{}",)):
            mine.execute(ENTER, bounds)
            mine.execute("SELECT returns.lock_order('acme', 'A-1')")
            owner.execute("SELECT FROM returns.line_counters FOR UPDATE NOWAIT")
            owner.rollback()
        mine.execute(ENTER, within())
        mine.execute("SELECT returns.lock_order('acme', 'A-1')")
        with pytest.raises(errors.LockNotAvailable):
            owner.execute("SELECT FROM returns.line_counters FOR UPDATE NOWAIT")
