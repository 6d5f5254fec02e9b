"""A handler that forgets whose rows it asks for still shows and changes nothing that is not its call's own.

All tools at once, with every condition on tenant, customer, order, case, return and document taken out; the same
handlers over the same rows without row-level security do leak, so what is taken out is what would have been missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest
from psycopg import sql

from shared_contracts.contract import FAMILIES, Tool
from shared_contracts.tools import TOOLS
from tests.support import cluster
from tests.support.careless import careless_statements, make_careless
from tests.support.tool_orders import line, order, recipient, seed
from tests.support.tool_prepared import GOOD, made_return, owner_of, sent_notice, with_demo
from tests.support.tool_shop import OWNER, Shop, ask, migrated_database, shop_over
from tool_server.call import Answer, Answered, Refused
from tool_server.dispatch import Dispatcher
from tool_server.load import load
from tool_server.store.roles import ROLES

pytestmark = pytest.mark.xdist_group("careless")  # one set-up serves all
# whose token it is; the last one's is of the same customer, for another order or case
ATTACKERS: dict[str, dict[str, str]] = {"tenant": {"tenant": "beta"}, "customer": {"customer": "C-2"}, "task": {}}
KEYS = {"find_return": "prepared-return", "find_notice": "prepared-notice"}  # the victim's own
OTHERS = {"order_id": "A-2", "case_id": "C-999"}
EVERY_TOOL = [pytest.param(tool, id=tool.name) for tool in TOOLS.values()]
# One row of everything: a question without its conditions is then answered with the victim's, not with an error.
ONE_OF_EACH = """
DELETE FROM document.cases WHERE case_id <> 'C-102';
DELETE FROM document.documents WHERE case_id <> 'C-102' OR (code IS NULL AND document_id <> 'DOC-C102-003');
DELETE FROM calls.key; DELETE FROM calls.token_used"""
UNTOLD = "DELETE FROM notices.outbox"  # a return is told of once


@dataclass(frozen=True)
class World:
    """A victim's order, return, notice and case, and handlers that forget; `known` are numbers that a call names."""

    shop: Shop
    known: dict[str, str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    shop = shop_over(migrated_database(), tmp_path_factory.mktemp("shop"))
    asyncio.run(load(shop.database.owner, seed(order("A-1", line("L1", quantity=4)), recipients=[recipient("C-1")])))
    with_demo(shop)

    async def scene(tools: Dispatcher) -> dict[str, str]:
        number = await made_return(tools)
        return {"return_id": number, "corrects": await sent_notice(tools, number)}

    known = shop.run(scene)
    raw(shop, ONE_OF_EACH)
    assert make_careless(shop.database.owner) > 10
    with careless_statements() as lost:
        assert lost > 10
        yield World(shop, known)


@pytest.fixture(scope="module")
def answers(world: World) -> dict[tuple[str, str], Answer]:
    """What every attacker gets from every tool, of one and the same world, which stays as it was."""

    async def scene(tools: Dispatcher) -> dict[tuple[str, str], Answer]:
        return {
            (name, attacker): await attack(tools, world, tool, attacker)
            for name, tool in TOOLS.items()
            for attacker in ATTACKERS
        }

    before = business(world.shop)
    given = world.shop.run(scene)
    assert business(world.shop) == before
    assert len(world.shop.mails()) == 1
    return given


async def attack(tools: Dispatcher, world: World, tool: Tool, attacker: str) -> Answer:
    arguments: dict[str, Any] = {name: (GOOD | world.known)[name] for name in tool.arguments.model_fields}
    if attacker == "task":
        arguments |= {name: other for name, other in OTHERS.items() if name in arguments}
    token = {**owner_of(tool), **ATTACKERS[attacker]}
    key = KEYS.get(tool.name, f"{tool.name}-{attacker}")
    return await ask(tools, tool.name, arguments, key=key, **token)


def nothing(answer: Answer) -> bool:
    """Whether the answer tells nothing, not even that there is something."""
    match answer:
        case Refused(code="not_found"):
            return answer.details == {}
        case Answered(result):
            return result.get("found") is False and result["record"] is None
        case _:
            return False


def business(shop: Shop) -> list[tuple[str, str]]:
    """Every table of every family, as a digest."""
    tables = shop.rows(
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname = ANY(%s) ORDER BY 1, 2", [*FAMILIES]
    )
    digest = sql.SQL("SELECT coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') FROM {} AS t")
    with psycopg.connect(shop.database.admin) as admin:
        return [
            (f"{schema}.{table}", str(*admin.execute(digest.format(sql.Identifier(schema, table))).fetchone() or ()))
            for schema, table in tables
        ]


def raw(shop: Shop, statements: str) -> None:
    with psycopg.connect(shop.database.admin) as admin:
        admin.execute("SET LOCAL session_replication_role = replica")
        admin.execute(statements.encode())


@pytest.mark.parametrize("attacker", ATTACKERS)
@pytest.mark.parametrize("tool", EVERY_TOOL)
def test_a_tool_that_forgets_its_conditions_gives_and_does_nothing_of_anothers(
    answers: dict[tuple[str, str], Answer], tool: Tool, attacker: str
) -> None:
    assert nothing(answers[tool.name, attacker]), answers[tool.name, attacker]


@pytest.mark.usefixtures("answers")  # the attackers come first, since these leave the world otherwise
def test_whoever_the_rows_are_of_is_served_by_the_same_tools(world: World) -> None:
    shop = copied(world.shop)

    async def scene(tools: Dispatcher) -> dict[str, Answer]:
        given = {}
        for tool in one_after_another(shop):
            arguments = {name: (GOOD | world.known)[name] for name in tool.arguments.model_fields}
            given[tool.name] = await ask(tools, tool.name, arguments, key=tool.name, **owner_of(tool))
        return given

    given = shop.run(scene)
    assert [(name, answer) for name, answer in given.items() if not isinstance(answer, Answered)] == []


@pytest.mark.usefixtures("answers")
def test_without_row_level_security_every_one_of_them_would_have_leaked(world: World) -> None:
    shop = copied(world.shop)
    raw(shop, unprotected(shop))

    async def scene(tools: Dispatcher) -> dict[str, tuple[bool, bool]]:
        found = {}
        for tool in one_after_another(shop):
            before = business(shop)
            given = [await attack(tools, replace(world, shop=shop), tool, attacker) for attacker in ATTACKERS]
            told = any(isinstance(answer, Answered) and not nothing(answer) for answer in given)
            found[tool.name] = told, business(shop) != before
        return found

    assert shop.run(scene) == {tool.name: (True, tool.writes) for tool in TOOLS.values()}


def one_after_another(shop: Shop) -> Iterator[Tool]:
    """Every tool, those first that leave the rows of the next ones as they are."""
    writes = ("send_correction_notice", "send_return_notice", "cancel_return", "create_return")
    assert {tool.name for tool in TOOLS.values() if tool.writes} == set(writes)
    yield from (tool for tool in TOOLS.values() if not tool.writes)
    for name in writes:
        if name == "send_return_notice":
            raw(shop, UNTOLD)
        yield TOOLS[name]


def unprotected(shop: Shop) -> str:
    tables = shop.rows("SELECT oid::regclass::text FROM pg_class WHERE relrowsecurity")
    assert len(tables) > 20
    return "".join(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;" for (table,) in tables)


def copied(shop: Shop) -> Shop:
    """The same rows and functions in a database of their own."""
    admin = cluster.create_database(template=cluster.database_name(shop.database.admin), owner=OWNER)
    name, roles = sql.Identifier(cluster.database_name(admin)), sql.SQL(", ").join(map(sql.Identifier, ROLES))
    with psycopg.connect(admin) as connection:
        connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(name, roles))
    return shop_over(replace(shop.database, admin=admin), shop.maildir.parent)
