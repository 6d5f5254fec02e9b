"""Who may ask for what: the versioned authorization set, as data. No permission in it has a default."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from shared_contracts.approval import Approver, Name
from shared_contracts.base import Contract, Identifier, Line
from shared_contracts.contract import Scope


class Audience(StrEnum):
    """Whose requests a requester hands in, by how early a rollout lets them in."""

    INTERNAL = "internal"
    COOPERATING = "cooperating"
    ORDINARY = "ordinary"


class Principal(Contract):
    """A requester: one tenant, and exactly these scopes and tools; an empty list is no permission at all.

    `asks_for` names the kinds whose cases are taken in under this name where nobody is named; it permits nothing. Who
    is said to be of no `audience` is of the one that is let in last.
    """

    name: Name
    tenant_id: Identifier
    roles: tuple[Line, ...]
    scopes: frozenset[Scope]
    tools: frozenset[Identifier]
    asks_for: frozenset[Identifier] = frozenset()
    audience: Audience = Audience.ORDINARY


class Act(StrEnum):
    """What an operator may be let do, each by itself."""

    STOP = "stop"
    RESUME = "resume"
    REVIEW = "review"
    COMPENSATE = "compensate"
    RELEASE = "release"
    ROLLOUT = "rollout"
    CHECK = "check"


_OF_THE_WHOLE_SYSTEM = frozenset({Act.STOP, Act.RESUME, Act.RELEASE, Act.ROLLOUT})
EVERY_TENANT = "*"


class Operator(Contract):
    """A person who may act on others' cases: on one tenant's or on everybody's, and by exactly these acts."""

    name: Annotated[Name, Field(max_length=80)]  # as much as a history keeps of who did it
    tenant_id: Identifier | Literal["*"]
    may: frozenset[Act]

    @model_validator(mode="after")
    def _within_reach(self) -> Self:
        if self.tenant_id != EVERY_TENANT and self.may & _OF_THE_WHOLE_SYSTEM:
            raise ValueError(
                "who may stop, resume, release or roll out does it for every tenant; write * as the tenant_id"
            )
        return self

    def covers(self, tenant_id: str) -> bool:
        """Tell whether this tenant's cases are this person's to act on."""
        return self.tenant_id in {EVERY_TENANT, tenant_id}


class AuthorizationSet(Contract):
    """One version of the whole set; names are unique."""

    version: Identifier
    principals: tuple[Principal, ...]
    approvers: tuple[Approver, ...]
    operators: tuple[Operator, ...]

    def by_name(self) -> Mapping[str, Principal]:
        """Index the principals; a name that stands twice is refused when the set is loaded."""
        return {principal.name: principal for principal in self.principals}

    def asking_for(self, kind: str) -> str | None:
        """Name who asks for cases of the kind where nobody is named; None where that is nobody, or several."""
        names = [principal.name for principal in self.principals if kind in principal.asks_for]
        return names[0] if len(names) == 1 else None
