"""Every named statement of the tool server is one that its role may run on the migrated schema, and is used."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

import tool_server
from shared_contracts.contract import FAMILIES
from tests.support.tool_shop import tool_database
from tool_server.store.queries import queries

PACKAGE = Path(tool_server.__file__).parent
STORE = PACKAGE / "store"
ROLE = {
    "calls": "tools_returns",
    "orders": "tools_orders",
    "policies": "tools_policies",
    "returns": "tools_returns",
    "approvals": "tools_returns",
    "notices": "tools_notices",
    "claims": "tools_document",
    "claims_seed": "tools_owner",
    "restored": "tools_owner",
    "role": "tools_orders",
    "seals": "tools_sealer",
    "seed": "tools_owner",
    "switches": "tools_owner",
    "trust": "tools_owner",
}
OWNERS = {("seals", "cut")}  # an operator's act among another role's
NAMED = [(concept.stem, name) for concept in sorted(STORE.glob("*.sql")) for name in queries(concept.stem)]
CUSTOMERS = [
    concept for concept, role in ROLE.items() if role != "tools_owner" and concept not in {"calls", "role", "seals"}
]
READ = "|".join(family for family in FAMILIES if family not in {"policies", "returns", "notices"})
# Rows of a customer are only ever reached through these.
BOUND = ("%(tenant)s", "%(customer)s", "%(resource)s")


def numbered(statement: str) -> str:
    """The statement with `$n` for its parameters, as PREPARE wants it."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement)))
    for at, name in enumerate(names, start=1):
        statement = statement.replace(f"%({name})s", f"${at}")
    return statement.replace("%%", "%")


@pytest.mark.parametrize(("concept", "name"), NAMED)
def test_every_statement_is_prepared_by_the_role_that_runs_it(concept: str, name: str) -> None:
    database = tool_database()
    of_owner = ROLE[concept] == "tools_owner" or (concept, name) in OWNERS
    dsn = database.owner if of_owner else database.dsn(ROLE[concept])
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"PREPARE checked AS {numbered(queries(concept)[name])}")


@pytest.mark.parametrize(("concept", "name"), NAMED)
def test_every_statement_is_used(concept: str, name: str) -> None:
    code = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    assert re.search(rf'"{name}"', code), f"{concept}.{name} is run by nobody"


def test_every_file_of_statements_is_known_here() -> None:
    assert {concept for concept, _ in NAMED} == set(ROLE)


@pytest.mark.parametrize("concept", CUSTOMERS)
def test_every_statement_over_a_customers_data_is_bounded_by_tenant_and_customer(concept: str) -> None:
    """A statement either names all bounds, or hands the whole call to a function that does."""
    for name, statement in queries(concept).items():
        over_data = re.search(
            rf"\b(FROM|JOIN) (({READ})\.|returns\.records|notices\.returns_to_tell)|policies\.facts", statement
        )
        if over_data:
            assert all(bound in statement for bound in BOUND), name
        else:
            assert "%(call)s" in statement or "%(tenant)s" in statement or name == "due", name


def test_a_store_module_is_the_only_reader_of_sql_files() -> None:
    readers = [path for path in PACKAGE.rglob("*.py") if ".sql" in path.read_text() and path.parent != STORE]
    assert readers == []
    loader = (STORE / "queries.py").read_text().splitlines()
    assert len(loader) <= 25
