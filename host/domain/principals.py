"""Who may ask for what: the versioned authorization set, as data. Nothing in it has a default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from shared_contracts.base import Contract, Identifier, Line, Money
from shared_contracts.contract import Scope

Name = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[a-z0-9][a-z0-9._@-]*$")]


class Principal(Contract):
    """A requester: one tenant, and exactly these scopes and tools; an empty list is no permission at all."""

    name: Name
    tenant_id: Identifier
    roles: tuple[Line, ...]
    scopes: frozenset[Scope]
    tools: frozenset[Identifier]


class Approver(Contract):
    """A person who may say yes, up to an amount; substitutes stand in by name."""

    name: Name
    tenant_id: Identifier
    limit: Money
    substitutes: tuple[Name, ...]


class AuthorizationSet(Contract):
    """One version of the whole set; names are unique."""

    version: Identifier
    principals: tuple[Principal, ...]
    approvers: tuple[Approver, ...]

    def by_name(self) -> Mapping[str, Principal]:
        """Index the principals; a name that stands twice is refused when the set is loaded."""
        return {principal.name: principal for principal in self.principals}
