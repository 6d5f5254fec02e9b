"""Gives the rows of a query as dataclasses; a column more or less than the class has fields raises."""

from __future__ import annotations

from typing import Any, LiteralString, TypeVar

from psycopg import AsyncConnection
from psycopg.rows import class_row

T = TypeVar("T")


async def all_of(connection: AsyncConnection[Any], kind: type[T], query: LiteralString, /, **named: object) -> list[T]:
    """Give every row."""
    cursor = connection.cursor(row_factory=class_row(kind))
    await cursor.execute(query, named)  # also where there are none: a % is doubled in every query alike
    return await cursor.fetchall()


async def first_of(
    connection: AsyncConnection[Any], kind: type[T], query: LiteralString, /, **named: object
) -> T | None:
    """Give the first row; None where there is none."""
    return next(iter(await all_of(connection, kind, query, **named)), None)


async def only_of(connection: AsyncConnection[Any], kind: type[T], query: LiteralString, /, **named: object) -> T:
    """Give the row of what always gives one, or raises: a count, a function, an insert."""
    (row,) = await all_of(connection, kind, query, **named)
    return row
