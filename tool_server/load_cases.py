"""Loads a seed file of cases, their documents and the rules that govern them: all of it or nothing.

Invariant: a version never changes, nor what it comes with: a rule set's titles, a case's documents. A file that gives
a known version another content is refused, with its place named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
import psycopg
from psycopg import AsyncConnection
from pydantic import AwareDatetime, Field, ValidationError

from shared_contracts.base import Contract, Identifier, Line, dump
from shared_contracts.claims import DOCUMENTS_MAX, Codes, DocumentCode, DocumentVersion, RuleVersion
from tool_server.load import SeedError, content_of, misread
from tool_server.seed_checks import Problem
from tool_server.store.queries import queries

SEED = queries("claims_seed")
_STATEMENTS = {
    "rule_sets": ("put_rule_sets", "changed_rule_sets"),
    "aliases": ("put_aliases", "changed_aliases"),
    "cases": ("put_cases", "changed_cases"),
    "documents": ("put_documents", "changed_documents"),
}
_GROWN = {"aliases": "grown_rule_sets", "documents": "grown_cases"}


class SeedAlias(Contract):
    """A title that a rule set also knows a document by."""

    title: Line
    canonical_code: DocumentCode
    owner: Line
    effective_from: AwareDatetime
    effective_until: AwareDatetime | None


class SeedRuleSet(Contract):
    """One version of the rules; a change is a new version."""

    tenant_id: Identifier
    name: RuleVersion
    version: RuleVersion
    owner: Line
    effective_from: AwareDatetime
    effective_until: AwareDatetime | None
    required_document_codes: Annotated[Codes, Field(min_length=1)]
    aliases: tuple[SeedAlias, ...]


class SeedDocument(Contract):
    """One document; without a code nobody has classified it."""

    document_id: Identifier
    version: DocumentVersion
    title: Line
    code: DocumentCode | None


class SeedCase(Contract):
    """One version of a case, bound to one version of the rules."""

    tenant_id: Identifier
    case_id: Identifier
    version: DocumentVersion
    claimant_id: Identifier
    rule_name: RuleVersion
    rule_version: RuleVersion
    documents: Annotated[tuple[SeedDocument, ...], Field(max_length=DOCUMENTS_MAX)]


class SeedCases(Contract):
    """A whole file."""

    rule_sets: tuple[SeedRuleSet, ...]
    cases: tuple[SeedCase, ...]


@dataclass(frozen=True, slots=True)
class LoadedCases:
    """What a load added, in rows."""

    rule_sets: int
    aliases: int
    cases: int
    documents: int

    def __str__(self) -> str:
        return (
            f"rule sets: {self.rule_sets} new; aliases: {self.aliases} new; "
            f"cases: {self.cases} new; documents: {self.documents} new"
        )


def read_seed(path: Path) -> SeedCases:
    """Read a file; raises SeedError."""
    return parse_seed(content_of(path))


def parse_seed(content: bytes) -> SeedCases:
    """Check a file's content; raises SeedError."""
    try:
        return SeedCases.model_validate_json(content)
    except ValidationError as error:
        raise misread(error) from None


async def load(dsn: str, seed: SeedCases) -> LoadedCases:
    """Load a file as the owner; raises SeedError, psycopg.OperationalError."""
    tables = _tables(seed)
    async with await AsyncConnection.connect(dsn, autocommit=False) as connection:
        for name, grown in _GROWN.items():  # before anything is put: what this very file brings is not known yet
            await _refuse_known(connection, grown, tables[name])
        try:
            added = {name: await _put(connection, name, rows) for name, rows in tables.items()}
        except psycopg.errors.IntegrityError as error:
            raise SeedError([Problem("the file", str(error.diag.message_detail))]) from error
    return LoadedCases(**added)


async def _put(connection: AsyncConnection, name: str, rows: list[dict[str, Any]]) -> int:
    put, differing = _STATEMENTS[name]
    added = (await connection.execute(SEED[put], _given(rows))).rowcount
    await _refuse_known(connection, differing, rows)
    return added


async def _refuse_known(connection: AsyncConnection, differing: str, rows: list[dict[str, Any]]) -> None:
    changed = await (await connection.execute(SEED[differing], _given(rows))).fetchall()
    if changed:
        raise SeedError(
            [Problem(place, "is known with another content; give it a new version") for (place,) in changed]
        )


def _given(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {"rows": orjson.dumps(rows).decode()}


def _tables(seed: SeedCases) -> dict[str, list[dict[str, Any]]]:
    """Give each table's rows, those that others refer to first."""
    return {
        "rule_sets": [_without(one, "aliases") for one in seed.rule_sets],
        "aliases": list(_aliases(seed)),
        "cases": [_without(one, "documents") for one in seed.cases],
        "documents": [
            {**dump(document), "tenant_id": case.tenant_id, "case_id": case.case_id, "case_version": case.version}
            for case in seed.cases
            for document in case.documents
        ],
    }


def _aliases(seed: SeedCases) -> Iterator[dict[str, Any]]:
    for rules in seed.rule_sets:
        for alias in rules.aliases:
            yield {"tenant_id": rules.tenant_id, "name": rules.name, "version": rules.version, **dump(alias)}


def _without(model: Contract, member: str) -> dict[str, Any]:
    return {name: value for name, value in dump(model).items() if name != member}
