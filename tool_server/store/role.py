"""Whether a connection's role is the one that its family works as: that role, and nothing wider.

Invariant: the role that logged in is judged, whatever it became by SET ROLE, since it can become itself again.
"""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from tool_server.store.queries import queries

ROLE = queries("role")


class WrongRoleError(Exception):
    """The connection string of a family names another role than the family's own, or one that may do more."""

    def __init__(self, family: str, why: str) -> None:
        super().__init__(
            f"KESSAI_TOOLS_{family.upper()}_DSN logs in as {why}; let it name {role_of(family)}, which may do what "
            f"the family {family} needs and no more"
        )
        self.family, self.why = family, why


def role_of(family: str) -> str:
    """Name the role that a family works as."""
    return f"tools_{family}"


async def check_role(connection: AsyncConnection[Any], family: str) -> None:
    """Raise WrongRoleError where the connection may do less than its family, or more."""
    row = await (await connection.execute(ROLE["judge"], {"role": role_of(family)})).fetchone()
    assert row is not None, "whoever is connected has a row"  # noqa: S101 — a bug, no input can cause it
    name, fits, is_owner, mighty, others = row
    if is_owner:
        raise WrongRoleError(family, f"{name}, the owner of what the tools work with")
    if mighty:
        raise WrongRoleError(family, f"{name}, a superuser or one who makes roles, databases or replicas")
    if not fits:
        raise WrongRoleError(family, f"{name}, which is not the family's")
    if others:
        raise WrongRoleError(family, f"{name}, which is {', '.join(others)} as well")
