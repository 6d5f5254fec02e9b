"""Each family works as its own role and no wider one, and what keeps it from working is told with the family."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from shared_contracts.contract import FAMILIES
from tests.support import cluster
from tests.support.tool_orders import order
from tests.support.tool_prepared import ORDER
from tests.support.tool_shop import Shop, ask, code_of, open_shop
from tests.support.tool_wire import gate
from tool_server.dispatch import Dispatcher, RoleError
from tool_server.readiness import _ANSWER_SECONDS
from tool_server.settings import Settings
from tool_server.store.health import ANSWER_SECONDS


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return open_shop(tmp_path, order("A-1"))


def changed(shop: Shop, **dsns: str) -> Settings:
    return Settings(**{**dict(shop.settings), **dsns})


def refused(settings: Settings) -> str:
    async def scene() -> None:
        async with Dispatcher(settings):
            pass

    with pytest.raises(RoleError) as caught:
        asyncio.run(scene())
    return str(caught.value)


@pytest.fixture
def roles(shop: Shop) -> Iterator[Any]:
    """Make roles of this test's own, which are gone after it."""
    made: list[str] = []

    def make(name: str, rights: LiteralString, *groups: str) -> str:
        with psycopg.connect(shop.database.admin, autocommit=True) as admin:
            role = sql.Identifier(name)
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'p' " + rights).format(role))
            made.append(name)
            for group in groups:
                admin.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(group), role))
        return cluster.dsn_of(cluster.database_name(shop.database.admin), user=name, password="p")

    yield make
    with psycopg.connect(shop.database.admin, autocommit=True) as admin:
        for name in made:
            admin.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
            admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


@pytest.mark.parametrize("family", FAMILIES)
def test_another_familys_role_keeps_the_server_from_starting_and_the_setting_is_named(shop: Shop, family: str) -> None:
    other = next(one for one in FAMILIES if one != family)
    said = refused(changed(shop, **{f"{family}_dsn": shop.database.dsn(f"tools_{other}")}))
    assert said.startswith(f"KESSAI_TOOLS_{family.upper()}_DSN logs in as tools_{other}, which is not the family's")
    assert f"let it name tools_{family}" in said


def test_every_family_with_a_wrong_role_is_named_at_once(shop: Shop) -> None:
    dsn = shop.database.dsn("tools_auditor")
    assert len(refused(changed(shop, orders_dsn=dsn, notices_dsn=dsn)).splitlines()) == 2


@pytest.mark.parametrize(
    ("who", "told"), [("owner", "tools_owner, the owner"), ("admin", "postgres, a superuser or one who")]
)
def test_the_owner_and_a_superuser_are_too_much_for_any_family(shop: Shop, who: str, told: str) -> None:
    said = refused(changed(shop, returns_dsn=getattr(shop.database, who)))
    assert said.startswith(f"KESSAI_TOOLS_RETURNS_DSN logs in as {told}")


def test_an_owner_without_any_other_right_is_too_much(shop: Shop, roles: Any) -> None:
    dsn = roles("t_owns", "", "tools_orders")
    with psycopg.connect(shop.database.admin, autocommit=True) as admin:
        admin.execute("ALTER SCHEMA policies OWNER TO t_owns")
    try:
        assert "t_owns, the owner of what the tools work with" in refused(changed(shop, orders_dsn=dsn))
    finally:
        with psycopg.connect(shop.database.admin, autocommit=True) as admin:
            admin.execute("ALTER SCHEMA policies OWNER TO tools_owner")


@pytest.mark.parametrize(
    ("rights", "groups", "told"),
    [
        ("CREATEDB", ("tools_orders",), "makes roles, databases"),
        ("", ("tools_orders", "tools_notices"), "which is tools_notices as well"),
        ("", ("tools_orders", "pg_read_all_data"), "which is pg_read_all_data as well"),
    ],
)
def test_a_role_that_may_do_more_than_its_family_is_refused(
    shop: Shop, roles: Any, rights: LiteralString, groups: tuple[str, ...], told: str
) -> None:
    assert told in refused(changed(shop, orders_dsn=roles("t_login", rights, *groups)))


def test_a_superuser_that_puts_on_the_familys_role_is_still_a_superuser(shop: Shop) -> None:
    dressed = make_conninfo(shop.database.admin, options="-c role=tools_orders")
    assert "superuser" in refused(changed(shop, orders_dsn=dressed))


def test_a_login_role_that_is_the_familys_and_nothing_else_works(shop: Shop, roles: Any) -> None:
    async def scene() -> str | None:
        async with Dispatcher(changed(shop, orders_dsn=roles("t_login", "", "tools_orders"))) as tools:
            return await tools.ready()

    assert asyncio.run(scene()) is None


def test_a_role_that_becomes_wider_while_the_server_runs_is_told_by_readiness(shop: Shop, roles: Any) -> None:
    async def scene() -> tuple[str | None, str | None]:
        async with Dispatcher(changed(shop, orders_dsn=roles("t_login", "", "tools_orders"))) as tools:
            before = await tools.ready()
            shop.rows("GRANT tools_returns TO t_login")
            return before, await tools.ready()

    assert asyncio.run(scene()) == (None, "wrong_role: orders")


def test_a_wrong_role_that_was_away_at_the_start_serves_no_call_when_it_is_back(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """The start cannot see it, so each connection is looked at before anybody gets it."""
    wrong = changed(shop, orders_dsn=shop.database.dsn("tools_returns"))

    async def scene() -> tuple[str | None, str | None, str]:
        async with gate(shop, wrong) as (gated, away):
            away.close()
            async with Dispatcher(gated) as tools:
                before = await tools.ready()
                away.open()
                return before, await tools.ready(), code_of(await ask(tools, "get_order", ORDER))

    before, after, code = asyncio.run(scene())
    assert before == "database_unavailable: orders"
    assert (after, code) == ("wrong_role: orders", "unavailable")
    assert "tools_returns, which is not the family" in capsys.readouterr().out


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_refused_connection_is_told_as_that_with_its_family_in_time_and_the_log_says_why(
    shop: Shop, closed_port: int, family: str, capsys: pytest.CaptureFixture[str]
) -> None:
    dsn = make_conninfo(shop.database.dsn(f"tools_{family}"), host="127.0.0.1", port=closed_port)

    async def scene() -> list[str | None]:
        async with Dispatcher(changed(shop, **{f"{family}_dsn": dsn})) as tools:
            told = capsys.readouterr().out  # at the start already, whether or not anybody ever asks
            assert "database_unavailable" in told
            assert family in told
            assert f"port {closed_port} failed: Connection refused" in told
            began = monotonic()
            reasons = [await tools.ready(), await tools.ready()]
            assert monotonic() - began < 2 * ANSWER_SECONDS
            return reasons

    assert asyncio.run(scene()) == [f"database_unavailable: {family}"] * 2


def test_a_refused_password_is_told_with_its_family_and_never_written_down(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    dsn = make_conninfo(shop.database.dsn("tools_notices"), password="s3cr3t-of-nobody")

    async def scene() -> str | None:
        async with Dispatcher(changed(shop, notices_dsn=dsn)) as tools:
            return await tools.ready()

    assert asyncio.run(scene()) == "database_unavailable: notices"
    out, err = capsys.readouterr()
    assert "password authentication failed" in out
    assert "s3cr3t" not in out + err


def test_a_database_that_takes_connections_and_says_nothing_is_slow_with_its_family(shop: Shop) -> None:
    async def scene() -> str | None:
        quiet: list[asyncio.StreamWriter] = []
        server = await asyncio.start_server(lambda _, writer: quiet.append(writer), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        dsn = make_conninfo(shop.database.dsn("tools_policies"), host="127.0.0.1", port=port, connect_timeout=2)
        async with server:
            async with Dispatcher(changed(shop, policies_dsn=dsn)) as tools:
                reason = await tools.ready()
            for writer in quiet:
                writer.close()
            return reason

    assert asyncio.run(scene()) == "database_slow: policies"


def test_a_probe_gets_the_stores_answer_before_it_gives_up() -> None:
    assert ANSWER_SECONDS < _ANSWER_SECONDS
