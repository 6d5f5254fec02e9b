"""What is another's and what does not exist: one answer to the byte, from the same statements in the same order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import psycopg
import pytest
from psycopg import sql

from shared_contracts.contract import Tool
from shared_contracts.digest import digest
from shared_contracts.errors import ERROR_META
from shared_contracts.tools import TOOLS
from tests.support import cluster
from tests.support.server import Server, message_of, running
from tests.support.tool_orders import ASKED_AT, line, order, recipient
from tests.support.tool_prepared import GOOD, owner_of, with_demo
from tests.support.tool_shop import Shop, ask, given, open_shop
from tool_server.dispatch import Dispatcher
from tool_server.store.roles import ROLES

pytestmark = pytest.mark.xdist_group("alike")  # one set-up serves all
# By the argument that names it: nobody's, then another customer's and another tenant's.
OBJECTS = {"order_id": ("no-such", "B-1", "T-1"), "case_id": ("C-999", "C-101", "C-201")}
# Of an object of one's own: a part that nobody has, then one of another customer's object.
PARTS = {"return_id": "R-NONE", "document_id": "DOC-NONE"}
STATEMENT = re.compile(
    r"^\d{4}-\S+ \S+ \w+ \[\d+\] LOG:  (?:statement|execute [^:]*): (.*?)(?=^\d{4}-)", re.MULTILINE | re.DOTALL
)
# What is asked without a call: the relay's rounds, the readiness, a new connection's role.
BESIDE = ("notices.due(", "calls.forget_tokens()", "FROM pg_roles AS me", "public.schema_version")


@dataclass(frozen=True)
class Place:
    """A server over a shop whose database writes every statement down; `theirs` are parts of others' objects."""

    server: Server
    shop: Shop
    theirs: dict[str, str]

    def asked(self, tool: Tool, **arguments: str) -> tuple[httpx2.Response, list[str]]:
        """The answer to its owner's good token for these arguments, and the statements that led to it."""
        known = {name: GOOD[name] for name in tool.arguments.model_fields} | arguments
        owner = owner_of(tool)
        bound = {
            "tool": tool.name, "resource": known[tool.resource_argument], "arguments_sha256": digest(known),
            "customer": owner["customer"], "requested_at": ASKED_AT.isoformat(), "idempotency_key": "K", "attempt": 1,
        }  # fmt: skip
        token = self.server.issuer.token(tenant_id=owner["tenant"], scope=tool.scope.value, details=bound)
        since = cluster.server_log().stat().st_size
        response = self.server.call(tool.name, known, token=token)
        self.shop.rows("SELECT 1")  # whoever connects is no statement, and the last line before it is whole
        text = cluster.server_log().read_bytes()[since:].decode() + "0000-"
        said = [statement.strip() for statement in STATEMENT.findall(text)]
        return response, [one for one in said if not any(beside in one for beside in BESIDE)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("alike")
    mine = order("A-1", line("L1", quantity=4)), order("B-1", customer_id="C-2"), order("T-1", tenant_id="other")
    shop = open_shop(directory, *mine, recipients=[recipient("C-1"), recipient("C-2")])
    with_demo(shop)

    async def scene(tools: Dispatcher) -> str:
        asked = {"order_id": "B-1", "lines": GOOD["lines"], "reason": GOOD["reason"]}
        return str(given(await ask(tools, "create_return", asked, customer="C-2", key="theirs"))["return_id"])

    theirs = {"return_id": shop.run(scene), "document_id": "DOC-C101-001"}
    _say("ALTER ROLE {} SET log_statement = 'all'")
    try:
        with running(Dispatcher(shop.settings), directory / "keys") as server:
            yield Place(server, shop, theirs)
    finally:
        _say("ALTER ROLE {} RESET log_statement")


def _say(statement: str) -> None:
    with psycopg.connect(cluster.cluster(), autocommit=True) as admin:
        for role in ROLES:
            admin.execute(sql.SQL(statement).format(sql.Identifier(role)))  # type: ignore[arg-type]


def alike(answers: list[tuple[httpx2.Response, list[str]]]) -> None:
    (first, said), *others = answers
    assert code_of(first) == "not_found"
    assert said != []
    for response, statements in others:
        assert response.content == first.content
        assert (response.status_code, _lasting(response)) == (first.status_code, _lasting(first))
        assert statements == said


def code_of(response: httpx2.Response) -> Any:
    result = message_of(response)["result"]
    return result["_meta"][ERROR_META]["code"] if result.get("isError") else None


def _lasting(response: httpx2.Response) -> list[tuple[str, str]]:
    return sorted((name, value) for name, value in response.headers.items() if name != "date")


@pytest.mark.parametrize("tool", [pytest.param(tool, id=tool.name) for tool in TOOLS.values()])
def test_what_is_anothers_and_what_is_not_there_are_one_to_the_caller_and_to_the_database(
    place: Place, tool: Tool
) -> None:
    name = tool.resource_argument
    alike([place.asked(tool, **{name: one}) for one in OBJECTS[name] for _ in range(2)][1:])


@pytest.mark.parametrize(
    ("tool", "part"),
    [
        pytest.param(tool, part, id=f"{tool.name}-{part}")
        for tool in TOOLS.values()
        for part in PARTS
        if part in tool.arguments.model_fields
    ],
)
def test_a_part_of_anothers_object_is_told_like_one_that_is_not_there(place: Place, tool: Tool, part: str) -> None:
    alike([place.asked(tool, **{part: one}) for one in (PARTS[part], PARTS[part], place.theirs[part])][1:])


def test_what_is_there_is_told_to_whose_it_is(place: Place) -> None:
    response, said = place.asked(TOOLS["get_order"])
    assert code_of(response) is None
    assert len(said) == 1
