"""Which loader a seed file is for, by the member that marks it; a new family's data is one line here.

Invariant: a file that no mark fits is read as the shop's, whose reader says what is wrong with it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tool_server import load as shop
from tool_server import load_cases as cases


async def _shop(dsn: str, file: Path) -> Any:
    return await shop.load(dsn, shop.read_seed(file))


async def _cases(dsn: str, file: Path) -> Any:
    return await cases.load(dsn, cases.read_seed(file))


LOADERS: dict[str, Callable[[str, Path], Awaitable[Any]]] = {"orders": _shop, "cases": _cases}


async def load_file(dsn: str, file: Path) -> Any:
    """Load a file as the owner; gives what changed. Raises SeedError, psycopg.OperationalError."""
    return await LOADERS[_mark(file)](dsn, file)


def _mark(file: Path) -> str:
    try:
        document = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return "orders"
    return next((mark for mark in LOADERS if isinstance(document, dict) and mark in document), "orders")
