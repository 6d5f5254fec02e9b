"""Judge a case by its kind's baseline: reads through the tool server's own door, and nothing else.

Invariant: a read is made only as the requester may make it, about the case's own resource, while reads go on, and
stands in the record under its token's id before it leaves. An update is refused whatever the kind asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from host.domain.baseline import Judged, Read
from host.domain.outcome import CallError, Rejected, Success, Unknown
from host.domain.principals import Principal
from host.domain.workflow import Seen, Workflow
from host.engine.parts import Parts, Request, new_id, new_jti
from host.store import external
from shared_contracts.contract import Tool, offerable
from shared_contracts.errors import Category
from shared_contracts.task_token import LIFETIME_SECONDS_MAX, Use


class NoBaselineError(Exception):
    """The case cannot be judged so; the message says why."""


@dataclass(frozen=True, slots=True)
class Question:
    """A case of a kind, who asks, and as of when; None is now, by the database's clock."""

    workflow: Workflow
    case: Mapping[str, Any]
    principal: Principal
    requested_at: datetime | None


async def baseline(parts: Parts, question: Question) -> Judged:
    """Read what the kind asks for and give its judgement. Raises NoBaselineError, StoppedError."""
    judge = question.workflow.baseline
    if judge is None:
        raise NoBaselineError(f"the kind {question.workflow.kind} has no baseline")
    task_id, asked_at, seen = new_id(), await _asked_at(parts, question), tuple[Seen, ...]()
    for _ in range(question.workflow.limits.calls):
        match judge(question.case, seen):
            case Judged() as judged:
                return judged
            case Read() as wanted:
                seen = (*seen, await _read(parts, question, wanted, (task_id, asked_at)))
    raise NoBaselineError(f"the kind asks for more than {question.workflow.limits.calls} reads")


async def _asked_at(parts: Parts, question: Question) -> datetime:
    if question.requested_at is not None:
        return question.requested_at
    async with parts.pool.connection() as connection:
        return await external.now(connection)


async def _read(parts: Parts, question: Question, wanted: Read, asked: tuple[UUID, datetime]) -> Seen:
    tool = _allowed(parts, question, wanted)
    request = _request(question, tool, wanted.arguments, *asked)
    await _register(parts, request)
    await parts.tools.turn(request.tenant_id, request.subject)
    match await parts.tools.call(request):
        case Success(result):
            return Seen(tool.name, result, None)
        case Rejected(error) if error.category is Category.BUSINESS:
            return Seen(tool.name, None, error.code)
        case Rejected(error) | Unknown(error):
            raise NoBaselineError(_failed(tool, error))


def _failed(tool: Tool, error: CallError) -> str:
    return f"{tool.name} gave no answer: {error.code}, {error.message}"


def _allowed(parts: Parts, question: Question, wanted: Read) -> Tool:
    """Give the tool where it is a read that the requester may make about this very case."""
    tool, principal = parts.registry.get(wanted.tool), question.principal
    if tool is None or tool.writes or not offerable(tool):
        raise NoBaselineError(f"{wanted.tool} is no read")
    if tool.name not in principal.tools or tool.scope not in principal.scopes:
        raise NoBaselineError(f"{principal.name} may not call {tool.name}; name another principal")
    if tool.name not in parts.tools.available():
        raise NoBaselineError(f"{tool.name} is not offered now")
    if wanted.arguments.get(tool.resource_argument) != question.workflow.resource(question.case):
        raise NoBaselineError(f"{tool.name} is about another object than the case")
    return tool


def _request(
    question: Question, tool: Tool, arguments: Mapping[str, Any], task_id: UUID, asked_at: datetime
) -> Request:
    return Request(
        tool=tool,
        arguments=arguments,
        jti=new_jti(),
        workflow_id=task_id,
        tenant_id=question.principal.tenant_id,
        subject=question.principal.name,
        customer=question.workflow.customer(question.case),
        resource=question.workflow.resource(question.case),
        idempotency_key=None,
        attempt=1,
        requested_at=asked_at,
        timeout_seconds=min(float(tool.timeout_seconds), question.workflow.limits.call_ceiling_seconds),
        correlation={},
        approval=None,
        approved_version=None,
    )


async def _register(parts: Parts, request: Request) -> None:
    """Write the read down before its token exists, as one of its scope: a tool is named of a write alone.

    Its token never leaves this process, and its task says so by its name.
    """
    task = {
        "jti": request.jti, "task_id": f"{external.OWN_TASK}{request.workflow_id}", "tenant_id": request.tenant_id,
        "principal": request.subject, "customer": request.customer, "scopes": [request.tool.scope.value],
        "tool": None, "resource": request.resource, "idempotency_key": None,
        "issued_by": request.subject, "seconds": LIFETIME_SECONDS_MAX[Use.CALL],
    }  # fmt: skip
    async with parts.pool.connection() as connection, connection.transaction():
        await external.register(connection, task)
