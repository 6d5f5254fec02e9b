"""A driver that dies at a chosen commit: right before it is sent, or right after it has committed.

What dies is told to nobody, as with SIGKILL: no handler writes, the lease stays, the answer is lost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool

from host.engine.parts import Parts


class DiedError(BaseException):
    """This driver is no more."""


@dataclass
class Fate:
    """Dies at commit number `at` (from 1), before or after it; `seen` counts those that were sent."""

    at: int
    before: bool
    seen: int = 0

    def cursor(self) -> type[psycopg.AsyncCursor[Any]]:
        fate = self

        class Dying(psycopg.AsyncCursor[Any]):
            async def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
                if "commit_steps(" not in str(query):
                    return await super().execute(query, *args, **kwargs)
                fate.seen += 1
                if fate.seen == fate.at and fate.before:
                    raise DiedError
                done = await super().execute(query, *args, **kwargs)
                if fate.seen == fate.at:
                    raise DiedError
                return done

        return Dying


@asynccontextmanager
async def doomed(parts: Parts, fate: Fate, owner: str = "doomed") -> AsyncIterator[Parts]:
    """The same engine in the hands of a driver with a fate."""
    kwargs = {"autocommit": True, "cursor_factory": fate.cursor()}
    async with AsyncConnectionPool(parts.pool.conninfo, min_size=1, max_size=2, open=False, kwargs=kwargs) as pool:
        yield replace(parts, pool=pool, owner=owner)
