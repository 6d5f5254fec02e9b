"""The statements of `host.store.sealed` for the tool server's database, where its auditor reads its sealed log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

from host.store.queries import load_queries

_SQL = load_queries(__file__)


@dataclass(frozen=True, slots=True)
class Statements:
    """What is read of a sealed record."""

    chain: LiteralString
    heads: LiteralString
    witnesses: LiteralString
    restored: LiteralString
    unsealed: LiteralString
    lines: LiteralString


STATEMENTS = Statements(
    chain=_SQL["chain"],
    heads=_SQL["heads"],
    witnesses=_SQL["witnesses"],
    restored=_SQL["restored"],
    unsealed=_SQL["unsealed"],
    lines=_SQL["lines"],
)
