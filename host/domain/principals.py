"""Who may ask for what: the versioned authorization set, as data. Nothing in it has a default."""

from __future__ import annotations

from collections.abc import Mapping

from shared_contracts.approval import Approver, Name
from shared_contracts.base import Contract, Identifier, Line
from shared_contracts.contract import Scope


class Principal(Contract):
    """A requester: one tenant, and exactly these scopes and tools; an empty list is no permission at all."""

    name: Name
    tenant_id: Identifier
    roles: tuple[Line, ...]
    scopes: frozenset[Scope]
    tools: frozenset[Identifier]


class AuthorizationSet(Contract):
    """One version of the whole set; names are unique."""

    version: Identifier
    principals: tuple[Principal, ...]
    approvers: tuple[Approver, ...]

    def by_name(self) -> Mapping[str, Principal]:
        """Index the principals; a name that stands twice is refused when the set is loaded."""
        return {principal.name: principal for principal in self.principals}
