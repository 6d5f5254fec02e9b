"""What a tool contract is: one frozen row, and what follows from it for everybody.

Invariant: an update tool with any blank is offered to nobody (`blanks`); the row's text (summary, owner) is
read by people and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from pydantic import BaseModel

from shared_contracts.base import wire_schema
from shared_contracts.digest import digest

CONTRACT_META: Final = "dev.kessai/contract"  # in `_meta` of a listed tool, and of a call that means this contract
FROM_TOKEN: Final = "token"  # the key travels in the token; no schema has it
AUDIT_ITEMS: Final = ("sub", "arguments_sha256", "outcome", "duration_us", "version", "jti", "task_id", "at")


class Scope(StrEnum):
    """`family:verb`. One family is one credential at the database."""

    ORDERS_READ = "orders:read"
    POLICIES_READ = "policies:read"
    RETURNS_READ = "returns:read"
    RETURNS_WRITE = "returns:write"
    NOTICES_READ = "notices:read"
    NOTICES_WRITE = "notices:write"
    DOCUMENT_READ = "document:read"
    DOCUMENT_RESOLVE = "document:resolve"


# What changes anything is under the verb `write` and nothing else is: tools are held to that by a test.
READING: Final = frozenset(scope for scope in Scope if not scope.value.endswith(":write"))
FAMILIES: Final = tuple(dict.fromkeys(scope.value.partition(":")[0] for scope in Scope))


class Risk(StrEnum):
    """How bad a call can be; decides recovery, tests and who is offered the tool."""

    READ = "read_only"
    REVERSIBLE_WRITE = "reversible_write"
    IRREVERSIBLE_WRITE = "irreversible_write"


class ExecutesAt(StrEnum):
    """Where the tool runs. Only `tool_server` is executed; the others are registered and offered to nobody."""

    TOOL_SERVER = "tool_server"
    LOCAL = "local"
    PROVIDER = "provider"


class Ambiguous(StrEnum):
    """What follows a write whose answer was lost."""

    RECONCILE_THEN_STOP = "reconcile_then_stop"
    RECONCILE_THEN_RESEND_ONCE = "reconcile_then_resend_once"


class Verification(StrEnum):
    """What makes a call's completion believable: any well-formed answer, one of success, or a read of the effect."""

    NONE = "none"
    RESPONSE = "response"
    READ_BACK = "read_back"


class ContractSuite(StrEnum):
    """`light` keeps the input schema and the error classes; `full` adds the tests of effects."""

    FULL = "full"
    LIGHT = "light"


@dataclass(frozen=True, slots=True)
class Equals:
    """A success predicate that can be printed: `field == "value"` of the result."""

    field: str
    value: str

    def holds(self, result: Mapping[str, Any]) -> bool:
        """Tell whether the result meets the predicate."""
        return bool(result.get(self.field) == self.value)

    def __str__(self) -> str:
        return f'{self.field} == "{self.value}"'


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Read the effect again with `tool` and compare the named fields of request, answer and read.

    An effect that is seen late gets its first look after `delay_seconds`, and the next after `poll_seconds`, then
    twice that …; `looks` bounds them, under the workflow kind's own bound.
    """

    tool: str
    matches: tuple[str, ...]
    delay_seconds: float = 0.0
    poll_seconds: float = 1.0
    looks: int = 3


@dataclass(frozen=True)
class Tool:
    """One tool. Fields that an update tool must not leave blank have no other default than blank."""

    name: str
    version: str
    summary: str
    arguments: type[BaseModel]
    result: type[BaseModel]
    scope: Scope
    risk: Risk
    targets: str
    resource_argument: str  # the one that names the object; it has to be the run's own
    timeout_seconds: int
    attempts_max: int
    evidence: tuple[str, ...]
    owner: str
    business_owner: str
    proposed_arguments: tuple[str, ...] = ()  # every other argument is bound to the run's own resource
    after: tuple[str, ...] = ()  # what must have been answered before it is proposed; empty: it may come first
    preconditions: tuple[str, ...] = ()  # what the server makes sure of before it acts
    side_effect: str = ""
    idempotency_key: str = ""
    idempotency_retention_days: int = 0
    looks_up: bool = False
    reconcile_with: str = ""
    ambiguous_failure: Ambiguous | None = None
    success_when: Equals | None = None
    pending_values: tuple[str, ...] = ()  # accepted, not done: asked again until it is
    doubtful_values: tuple[str, ...] = ()  # nobody can tell: never sent again by itself
    external_id: str = ""
    verification: Verification = Verification.RESPONSE
    verify: ReadBack | None = None
    compensate_with: str = ""
    compensate_within_hours: int = 0
    approval_required_when: str = ""  # a condition that workflow kinds know by name; one that they don't always holds
    forbidden_when: tuple[str, ...] = ()
    executes_at: ExecutesAt = ExecutesAt.TOOL_SERVER
    audit_items: tuple[str, ...] = AUDIT_ITEMS

    @property
    def writes(self) -> bool:
        """Tell whether a call may change anything outside."""
        return self.risk is not Risk.READ

    @property
    def family(self) -> str:
        """Name the tool's family: the part of the scope that one database role serves."""
        return self.scope.value.split(":", 1)[0]

    @property
    def contract_suite(self) -> ContractSuite:
        """Tell which contract tests are a condition of release: for a write, all six."""
        return ContractSuite.FULL if self.writes else ContractSuite.LIGHT

    @property
    def retryable(self) -> bool:
        """Tell whether the same intention may ever be sent again; a write only where its effect can be looked up."""
        if not self.writes:
            return self.attempts_max > 1
        resend = self.ambiguous_failure is Ambiguous.RECONCILE_THEN_RESEND_ONCE
        return self.reconcile_with != "" and (self.attempts_max > 1 or resend)

    @property
    def read_back(self) -> ReadBack | None:
        """Give the read that completion waits for, where it does."""
        return self.verify if self.verification is Verification.READ_BACK else None

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The wire schema of the arguments; the model's and every outside host's view."""
        return wire_schema(self.arguments)

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """The wire schema of the result."""
        return wire_schema(self.result)

    @property
    def mark(self) -> dict[str, str]:
        """Tell this contract from another of the same name."""
        return {"version": self.version, "schema_digest": self.schema_digest}

    @cached_property
    def schema_digest(self) -> str:
        """What host and server compare at readiness: version and both schemas."""
        return digest({"version": self.version, "input": self.input_schema, "output": self.output_schema})

    def succeeded(self, result: Mapping[str, Any]) -> bool:
        """Tell whether a well-formed answer is a success; an accepted request is not."""
        unasked = self.verification is Verification.NONE or self.success_when is None
        return unasked or (self.success_when is not None and self.success_when.holds(result))

    def pending(self, result: Mapping[str, Any]) -> bool:
        """Tell whether the request was accepted and is not done."""
        return self.success_when is not None and result.get(self.success_when.field) in self.pending_values

    def doubtful(self, result: Mapping[str, Any]) -> bool:
        """Tell whether the answer itself says that nobody knows."""
        return self.success_when is not None and result.get(self.success_when.field) in self.doubtful_values


_NEEDED_BY_WRITES = (
    "version", "targets", "after", "preconditions", "timeout_seconds", "attempts_max", "owner", "business_owner",
    "side_effect", "idempotency_key", "idempotency_retention_days", "reconcile_with", "ambiguous_failure",
    "success_when", "external_id", "compensate_with", "compensate_within_hours", "forbidden_when", "evidence",
    "audit_items",
)  # fmt: skip
_NEEDED_BY_READS = (
    "version", "targets", "preconditions", "timeout_seconds", "attempts_max", "owner", "evidence", "audit_items",
)  # fmt: skip


def blanks(tool: Tool) -> tuple[str, ...]:
    """Name the fields that are missing for the tool to be offered: a success, a data owner, a way back …"""
    needed = _NEEDED_BY_WRITES if tool.writes else _NEEDED_BY_READS
    return (*(name for name in needed if not getattr(tool, name)), *_unverifiable(tool))


def _unverifiable(tool: Tool) -> tuple[str, ...]:
    """Name what its verification lacks: of a write that nothing is asked of, nobody would ever know that it is done."""
    if tool.verification is Verification.READ_BACK:
        return ("verify",) if tool.verify is None else ()
    return ("verification",) if tool.writes and tool.verification is Verification.NONE else ()


def offerable(tool: Tool) -> bool:
    """Tell whether a planner may be shown the tool at all: complete, and run by a tool server."""
    return tool.executes_at is ExecutesAt.TOOL_SERVER and not blanks(tool)
