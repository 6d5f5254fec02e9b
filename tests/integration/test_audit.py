"""What the auditors read: by statements that their roles may run, of one instant, and no other role is let in."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from host.database import NotReadyError
from host.domain.books import Logged, Made, Stands
from host.evaluation.audit import Auditors, reconciled
from host.store import audit, audit_tools, sealed, sealed_tools, trial_tools
from host.store.queries import load_queries
from tests.integration.test_store_schema import numbered
from tests.support.cluster import database_name, drop_database, dsn_of
from tests.support.engine import host_database
from tests.support.tool_orders import line, order
from tests.support.tool_prepared import made_return, sent_notice
from tests.support.tool_shop import Shop, open_shop, tool_database
from tool_server.dispatch import Dispatcher

PASSWORD = "the-auditors-own"
# a row without a key, made as many seconds after it was asked for
AGAIN = (
    "INSERT INTO returns.returns SELECT tenant_id, %s, order_id, customer_id, NULL, status, reason, currency, 0, 0, 0,"
    " rule_version, order_version, created_at, created_at"
    " FROM returns.returns WHERE idempotency_key = 'R'"
)


def host_auditor() -> str:
    dsn = host_database()
    with psycopg.connect(dsn_of(database_name(dsn))) as admin:
        admin.execute(f"ALTER ROLE host_auditor PASSWORD '{PASSWORD}'")
        admin.execute(
            sql.SQL("GRANT CONNECT ON DATABASE {} TO host_auditor").format(sql.Identifier(database_name(dsn)))
        )
    return dsn_of(database_name(dsn), user="host_auditor", password=PASSWORD)


@pytest.fixture
def ours() -> Any:
    dsn = host_auditor()
    yield dsn
    drop_database(dsn)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return open_shop(tmp_path, order("A-1", line("L1", quantity=2), shipping_fee=550))


async def _read(dsn: str) -> tuple[tuple[Logged, ...], tuple[Made, ...]]:
    async with audit.snapshot(dsn) as connection:
        return await audit_tools.log(connection), await audit_tools.made(connection)


@pytest.mark.parametrize("module", [audit, sealed, audit_tools, trial_tools, sealed_tools])
def test_every_statement_is_prepared_by_the_role_that_runs_it(module: Any, ours: str) -> None:
    dsn = ours if module in {audit, sealed} else tool_database().dsn("tools_auditor")
    with psycopg.connect(dsn) as connection:
        for name, query in load_queries(module.__file__).items():
            connection.execute(f"PREPARE {name} AS {numbered(query)}".encode())


@pytest.mark.parametrize("module", [audit_tools, trial_tools])
def test_every_statement_on_the_tool_servers_database_is_used(module: Any) -> None:
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert all(f'_SQL["{name}"]' in text for name in load_queries(module.__file__))


def test_a_sealed_record_is_read_by_the_same_statements_on_both_sides() -> None:
    assert load_queries(sealed_tools.__file__).keys() == load_queries(sealed.__file__).keys()


def test_what_calls_made_is_read_with_its_key_and_what_was_loaded_is_not(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> None:
        await sent_notice(tools, await made_return(tools, key="R"), key="N")

    shop.run(scene)
    with psycopg.connect(shop.database.admin, autocommit=True) as admin:
        for number in ("R-LOADED", "R-STRAY"):  # whose times say the same
            admin.execute(AGAIN, (number,))
        admin.execute("INSERT INTO returns.loaded (tenant_id, return_id) VALUES ('acme', 'R-LOADED')")
    log, made = asyncio.run(_read(shop.database.dsn("tools_auditor")))
    by_id = {row.id: row for row in made}
    assert "R-LOADED" not in by_id
    assert by_id["R-STRAY"].idempotency_key is None
    (notice,) = [row for row in made if row.tool == "send_return_notice"]
    (kept,) = [row for row in made if row.idempotency_key == "R"]
    assert (kept.tool, kept.stands, kept.about) == ("create_return", Stands.DONE, "A-1: L1 1")
    assert (notice.idempotency_key, notice.stands, notice.about) == ("N", Stands.DONE, kept.id)
    assert {(row.tool, row.outcome) for row in log} >= {("create_return", "ok"), ("send_return_notice", "begun")}


def test_some_rows_are_read_by_their_tokens_and_keys(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> None:
        await sent_notice(tools, await made_return(tools, key="R"), key="N")

    shop.run(scene)

    async def some() -> tuple[tuple[Logged, ...], tuple[Made, ...]]:
        async with audit.snapshot(shop.database.dsn("tools_auditor")) as connection:
            whole = await audit_tools.log(connection)
            return await audit_tools.log(connection, [whole[0].jti]), await audit_tools.made(connection, ["N", "none"])

    log, made = asyncio.run(some())
    assert len({row.jti for row in log}) == 1
    assert [row.idempotency_key for row in made] == ["N"]


def test_a_snapshot_does_not_see_what_is_written_after_it_was_taken(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> None:
        async with audit.snapshot(shop.database.dsn("tools_auditor")) as connection:
            assert await audit_tools.made(connection) == ()
            await made_return(tools, key="R")
            assert await audit_tools.made(connection) == ()

    shop.run(scene)


def test_a_role_that_can_write_compares_nothing(shop: Shop, ours: str) -> None:
    theirs = shop.database.dsn("tools_auditor")
    for host, tools, named in (
        (dsn_of(database_name(ours)), theirs, "KESSAI_AUDIT_HOST_DSN"),
        (ours, shop.database.dsn("tools_returns"), "KESSAI_AUDIT_TOOLS_DSN"),
        (ours, shop.database.owner, "KESSAI_AUDIT_TOOLS_DSN"),
    ):
        with pytest.raises(NotReadyError, match=f"{named}: the role .* can write"):
            asyncio.run(reconciled(Auditors(host, tools)))


def test_what_keeps_an_auditor_from_reading_is_told_by_its_setting_and_without_the_password(
    shop: Shop, ours: str, tmp_path: Path
) -> None:
    theirs = shop.database.dsn("tools_auditor")
    for host, tools, told in (
        (make_conninfo(host=str(tmp_path), port=1, password="kx7q"), theirs, "KESSAI_AUDIT_HOST_DSN"),
        (ours, "kx7q", "KESSAI_AUDIT_TOOLS_DSN is no connection string"),
        (ours, make_conninfo(theirs, password="kx7q"), "KESSAI_AUDIT_TOOLS_DSN"),
        (ours, ours, "KESSAI_AUDIT_TOOLS_DSN: this is no database of this release"),
        (theirs, theirs, "KESSAI_AUDIT_HOST_DSN: this is no database of this release"),
    ):
        with pytest.raises(NotReadyError, match=told) as caught:
            asyncio.run(reconciled(Auditors(host, tools)))
        assert "kx7q" not in str(caught.value)
