"""Which loader a seed file is for, by the member that marks it; a new family's data is one line here.

Invariant: a file that no mark fits is read as the shop's, whose reader says what is wrong with it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import date
from pathlib import Path
from typing import Any

from tool_server import load as shop
from tool_server import load_cases as cases
from tool_server.load_retail import retail_seed
from tool_server.seed_checks import Problem


async def _shop(dsn: str, content: bytes) -> Any:
    return await shop.load(dsn, shop.parse_seed(content))


async def _cases(dsn: str, content: bytes) -> Any:
    return await cases.load(dsn, cases.parse_seed(content))


LOADERS: dict[str, Callable[[str, bytes], Awaitable[Any]]] = {"orders": _shop, "cases": _cases}
RETAIL = "currency"  # one for all its orders, which ours have each


async def load_file(dsn: str, file: Path, delivered_on: date | None = None) -> Any:
    """Load a file as the owner; gives what changed. Raises SeedError, psycopg.OperationalError.

    `delivered_on` is the overlay for data that has no dates.
    """
    content = shop.content_of(file)
    try:
        return await _load(dsn, content, delivered_on)
    except shop.SeedError as error:
        raise shop.SeedError(error.problems, file) from error


async def _load(dsn: str, content: bytes, delivered_on: date | None) -> Any:
    mark = _mark(content)
    if mark == RETAIL:
        return await shop.load(dsn, retail_seed(content, delivered_on))
    if delivered_on is not None:
        raise shop.SeedError([Problem("--delivered-on", "is for a retail shop's file without dates; leave it out")])
    return await LOADERS[mark](dsn, content)


def _mark(content: bytes) -> str:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return "orders"
    return next((mark for mark in (RETAIL, *LOADERS) if isinstance(document, dict) and mark in document), "orders")
