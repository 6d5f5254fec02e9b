"""How a family's database stands: asked through the family's own pool, and past it where the pool has nothing to give.

Invariant: an answer comes within ANSWER_SECONDS and is about the family that was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import psycopg
from psycopg import errors

from tool_server.look import Look
from tool_server.store import calls
from tool_server.store.pool import BusyError, Pool, UnavailableError
from tool_server.store.role import WrongRoleError

ANSWER_SECONDS = 1.6  # below what /readyz takes in all
_POOL_SECONDS = 0.5  # an idle connection is there at once


@dataclass(frozen=True, slots=True)
class Works:
    """`schema` is the number of its newest migration; 0 where there is none."""

    schema: int


@dataclass(frozen=True, slots=True)
class Away:
    """No connection can be made; `why` is what PostgreSQL or the network says, for the log alone."""

    why: str


@dataclass(frozen=True, slots=True)
class Slow:
    """It takes connections, and not enough of them in time, or it does not answer."""


@dataclass(frozen=True, slots=True)
class WrongRole:
    """The role is not the family's, or may do more."""

    error: WrongRoleError


Health: TypeAlias = Works | Away | Slow | WrongRole


class Lookout:
    """Looks after one family's database."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._looks = pool, Look[Health](self._look, ANSWER_SECONDS)

    async def health(self) -> Health:
        """Tell it, whoever else asks."""
        found = await self._looks.found()
        return Slow() if found is None else found

    async def _look(self) -> Health:
        try:
            await self._pool.check_role(_POOL_SECONDS)
            return Works(await calls.schema_state(self._pool))
        except (errors.UndefinedTable, errors.InsufficientPrivilege):  # before the first migration
            return Works(0)
        except WrongRoleError as error:
            return WrongRole(error)
        except (UnavailableError, BusyError, psycopg.Error):
            return await self._knock()

    async def _knock(self) -> Health:
        """Connect by itself: a pool tries again and again without saying why."""
        try:
            await self._pool.knock()
        except WrongRoleError as error:
            return WrongRole(error)
        except psycopg.errors.ConnectionTimeout:
            return Slow()
        except psycopg.Error as error:
            return Away(" ".join(str(error).split()))
        return Slow()

    async def close(self) -> None:
        """Let a look end by itself."""
        await self._looks.close()
