"""One call as the server works on it, and the only two ways in which it can be answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared_contracts.approval import ApprovalEvent
from shared_contracts.contract import Tool
from shared_contracts.errors import ERRORS
from shared_contracts.task_token import CallDetails, TaskClaims


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose token was verified; `kid` names the key that signed it. Nothing here is a claim left unchecked."""

    claims: TaskClaims
    kid: str
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose tool, schema and token binding hold; handlers see nothing else.

    `started` is the process's performance counter when the call came in, in seconds.
    """

    caller: Caller
    details: CallDetails
    tool: Tool
    arguments: dict[str, Any]
    arguments_sha256: str
    started: float


@dataclass(frozen=True, slots=True)
class Answered:
    """A result that fits the tool's output schema."""

    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """A row of `shared_contracts.errors` with its sentence; never a traceback, never prose alone.

    `approval` is the event that was refused though its signature held; the log keeps it, the wire never has it.
    """

    code: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)
    approval: ApprovalEvent | None = None


Answer = Answered | Refused


def refused(code: str, details: Mapping[str, Any] | None = None, approval: ApprovalEvent | None = None) -> Refused:
    """Refuse in the words of the code's own row."""
    return Refused(code, ERRORS[code].meaning, {} if details is None else dict(details), approval)
