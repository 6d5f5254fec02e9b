"""What a driver works with. Built in `host.wiring`; nothing here opens anything."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, Protocol
from uuid import UUID

from host.domain.outcome import Outcome
from host.domain.principals import AuthorizationSet
from host.domain.proposals import Planner
from host.domain.suitability import Failing, failing
from host.domain.uttered import Offer, offer
from host.domain.workflow import Move, Workflow
from host.planner.context import definition
from host.store.commits import Commits
from host.store.pool import Pool
from shared_contracts.contract import Tool


@dataclass(frozen=True, slots=True)
class Request:
    """One call as it leaves the engine: its arguments, and all that its token says and a planner must not fill."""

    tool: Tool
    arguments: Mapping[str, Any]
    jti: str
    workflow_id: UUID
    tenant_id: str
    subject: str
    customer: str
    resource: str
    idempotency_key: str | None
    attempt: int
    requested_at: datetime
    timeout_seconds: float
    correlation: Mapping[str, str]
    approval: str | None  # the signed event, and the version that it is for
    approved_version: int | None


class Tools(Protocol):
    """The only way out: mints the call's token, sends it over MCP, and classifies the answer."""

    async def call(self, request: Request) -> Outcome:
        """Make one call; never raises for anything that the wire does."""

    async def turn(self, tenant_id: str, principal: str) -> None:
        """Wait until a call of this principal may leave; before it, so that a lease is looked at after it."""

    def available(self) -> frozenset[str]:
        """Name the tools that the server's newest listing has."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A workflow kind's release with the database's ids of its legal moves."""

    workflow: Workflow
    moves: Mapping[Move, int]


@dataclass(frozen=True)
class Parts:
    """Everything a driver needs."""

    pool: Pool
    tools: Tools
    planner: Planner
    kinds: Mapping[tuple[str, str], Kind]
    registry: Mapping[str, Tool]
    authorization: AuthorizationSet
    owner: str
    lease_seconds: float
    daily_cost_micros: int | None = None
    call_limit_stops: Literal["system", "case"] = "system"
    jitter: random.Random = field(default_factory=random.SystemRandom)

    @cached_property
    def unfit(self) -> Mapping[tuple[str, str], tuple[Failing, ...]]:
        """Why each kind only reads and drafts; empty for one that may act."""
        return {key: failing(kind.workflow, self.registry, self.authorization) for key, kind in self.kinds.items()}

    def offer(self, names: frozenset[str]) -> Offer:
        """Give the definitions that a planner is shown under these names, with their digest; made once a process."""
        if names not in self._offers:
            self._offers[names] = offer(tuple(definition(self.registry[name]) for name in sorted(names)))
        return self._offers[names]

    @cached_property
    def _offers(self) -> dict[frozenset[str], Offer]:
        return {}

    @cached_property
    def commits(self) -> Commits:
        """Where all drivers of this process commit."""
        return Commits(self.pool)


def new_id() -> UUID:
    """Make a UUIDv7 (RFC 9562): sorts by time, and its 74 random bits make it safe to show."""
    milliseconds = time.time_ns() // 1_000_000
    random_bits = int.from_bytes(os.urandom(10))
    high = (milliseconds << 16) | 0x7000 | (random_bits >> 68)
    low = (0b10 << 62) | (random_bits & ((1 << 62) - 1))
    return UUID(int=(high << 64) | low)


def new_jti() -> str:
    """Make a token's id: 128 random bits."""
    return os.urandom(16).hex()
