"""The rows of both sides that are held against each other by id, as they stand in the databases, without judgement.

Invariant: nothing personal is among them: ids, names of tools, keys and outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stands(StrEnum):
    """What a business row says was done: it was, nothing was and nothing will be, or its end is still open."""

    DONE = "done"
    NOTHING = "nothing"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Logged:
    """A row of the tool server's log: one call, answered or refused."""

    jti: str
    use: str
    task_id: str
    tenant_id: str
    tool: str
    idempotency_key: str | None
    outcome: str


@dataclass(frozen=True, slots=True)
class Made:
    """A return, a cancellation or a notice. `tool` makes such a row; `about` is equal for two of the same thing.

    `idempotency_key` is null in a row that no call can have made.
    """

    tool: str
    tenant_id: str
    idempotency_key: str | None
    id: str
    stands: Stands
    about: str


@dataclass(frozen=True, slots=True)
class Attempted:
    """A request that left the host, or was about to. `outcome` is null while it is under way."""

    jti: str
    workflow_id: str
    tool: str
    outcome: str | None


@dataclass(frozen=True, slots=True)
class Intended:
    """A row of the effect ledger. `outcome` is null while nobody knows."""

    workflow_id: str
    tenant_id: str
    name: str
    idempotency_key: str
    outcome: str | None
    external_id: str | None


@dataclass(frozen=True, slots=True)
class Issued:
    """What a token outside of any workflow was issued for; `tool` and key of a write alone."""

    jti: str
    task_id: str
    tenant_id: str
    tool: str | None
    idempotency_key: str | None


@dataclass(frozen=True, slots=True)
class Served:
    """The tool server's side, of one instant."""

    log: tuple[Logged, ...]
    made: tuple[Made, ...]


@dataclass(frozen=True, slots=True)
class Ledger:
    """The host's side, of one instant."""

    attempts: tuple[Attempted, ...]
    effects: tuple[Intended, ...]
    issued: tuple[Issued, ...]
