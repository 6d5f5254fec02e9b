"""Take a case in: read it against its kind's closed model, and make one workflow of one request.

The same request again gives the same workflow and calls nothing; another body under the same request is a conflict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ValidationError

from host.domain.principals import Principal
from host.domain.workflow import Workflow
from host.engine.parts import Kind, new_id
from host.engine.wake import Wake
from host.store import ledger, releases
from host.store.errors import ReleaseMovedError
from host.store.pool import Pool
from shared_contracts.base import dump, parse
from shared_contracts.digest import NotCanonicalError, canonical_json, digest
from shared_contracts.told import complaints

CASE_BYTES_MAX = 64 * 1024  # fifteen times the longest message that a case may carry
ANEW = "reapply."  # begins the request id of a case that was asked for anew; what is submitted has none such


class CaseError(Exception):
    """The case cannot be taken in; the message says what is wrong, where, and what to do."""


class RequestConflictError(Exception):
    """The request id is taken by a case with another body."""

    def __init__(self, request_id: str, workflow_id: UUID) -> None:
        """Name the workflow that holds the request id."""
        super().__init__(
            f"request {request_id} belongs to workflow {workflow_id}, whose case is another; use a new request_id"
        )
        self.request_id, self.workflow_id = request_id, workflow_id


@dataclass(frozen=True, slots=True)
class Taken:
    """The workflow of a case, and whether it was new."""

    workflow_id: UUID
    created: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asks, as of when where that is not the case's own time, and in place of which case that has ended."""

    principal: Principal
    as_of: datetime | None = None
    supersedes: UUID | None = None


@dataclass(frozen=True, slots=True)
class Pins:
    """The data versions that a workflow is pinned to when it begins."""

    order_snapshot: str
    policy: str
    authz: str


def read_document(raw: bytes) -> dict[str, Any]:
    """Decode a case file; raises CaseError with what, where and what to do."""
    if len(raw) > CASE_BYTES_MAX:
        raise CaseError(f"the case has {len(raw)} bytes; at most {CASE_BYTES_MAX} are taken in")
    try:
        document = json.loads(raw.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
        canonical_json(document)
    except UnicodeDecodeError as error:
        raise CaseError(f"the case is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except json.JSONDecodeError as error:
        raise CaseError(f"the case is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise CaseError("the case is nested too deeply; a case is a flat object with a list of lines") from error
    except NotCanonicalError as error:
        raise CaseError(f"the case holds a value that cannot be kept: {error}") from error
    except ValueError as error:  # a number with thousands of digits
        raise CaseError("the case holds a number that is too long; quantities are small integers") from error
    if not isinstance(document, dict):
        raise CaseError("the case is not a JSON object")
    if str(document.get("request_id")).startswith(ANEW):
        raise CaseError(f"request_id begins with {ANEW!r}, which kessai reapply alone gives; use another one")
    return document


def _no_constant(name: str) -> None:
    raise CaseError(f"{name} is no JSON number; amounts and quantities are integers")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CaseError(f"the member {twice!r} stands twice; keep one")
    return dict(pairs)


def read_case(document: Mapping[str, Any], workflows: Mapping[str, Workflow]) -> tuple[Workflow, BaseModel]:
    """Read a document into its kind's model; raises CaseError."""
    kind = document.get("kind")
    workflow = workflows.get(kind) if isinstance(kind, str) else None
    if workflow is None:
        wrong = f"{kind!r} is unknown" if "kind" in document else "is missing"
        raise CaseError(f"kind {wrong}; the kinds are: {', '.join(sorted(workflows))}")
    try:
        return workflow, parse(workflow.case, document)
    except ValidationError as error:
        raise CaseError(_explained(error)) from error


def _explained(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False)
    # a list whose only item is wrong is also counted as empty, which is not true of what was written
    wrong_inside = {problem["loc"][:depth] for problem in problems for depth in range(1, len(problem["loc"]))}
    true = (one for one in problems if one["type"] != "too_short" or one["loc"] not in wrong_inside)
    return "the case does not fit its kind: " + "; ".join(complaints(islice(true, 10), "the case"))


async def beginning(
    pool: Pool, kinds: Mapping[tuple[str, str], Kind], workflow: Workflow, case: BaseModel
) -> tuple[Kind, BaseModel]:
    """Give the release that a new case begins under, and the case as that one reads it.

    Where none is recorded that is `workflow`, the newest that the program carries. Raises CaseError and
    ReleaseMovedError.
    """
    async with pool.connection() as connection:
        recorded = await releases.begins_under(connection, workflow.kind)
    release = workflow.release if recorded is None else recorded
    kind = kinds.get((workflow.kind, release))
    if kind is None:
        raise ReleaseMovedError(
            f"new cases of {workflow.kind} begin under {release}, which this program does not carry"
        )
    if kind.workflow.case is type(case):
        return kind, case
    return kind, read_case({**dump(case), "kind": workflow.kind}, {workflow.kind: kind.workflow})[1]


async def accept(
    pool: Pool,
    kind: Kind,
    case: BaseModel,
    origin: Origin,
    pins: Pins,
    wake: Wake,
) -> Taken:
    """Take a case in, with the wake-up that brings it to a worker, in one transaction.

    Raises RequestConflictError, StoppedError, NotAdmittedError, and ReleaseMovedError where the kind's new cases begin
    under another release than `kind`; `beginning` gives the one that they begin under.
    """
    row = _row(kind.workflow, case, origin, pins)
    async with pool.connection() as connection, connection.transaction():
        accepted = await ledger.accept_case(connection, row)
        if accepted.created:
            await wake(connection, accepted.workflow_id)
    if accepted.body_sha256 != row["body_sha256"]:
        raise RequestConflictError(row["request_id"], accepted.workflow_id)
    return Taken(accepted.workflow_id, accepted.created)


def _row(workflow: Workflow, case: BaseModel, origin: Origin, pins: Pins) -> dict[str, Any]:
    body = dump(case)
    request_id = body.pop("request_id", None)
    body_sha256 = digest(body)
    principal = origin.principal
    requested_at = origin.as_of if origin.as_of is not None else getattr(case, "requested_at", None)
    return {
        "workflow_id": str(new_id()),
        "tenant_id": principal.tenant_id,
        "kind": workflow.kind,
        "release": workflow.release,
        "request_id": body_sha256 if request_id is None else request_id,
        "body_sha256": body_sha256,
        "principal": principal.name,
        "audience": principal.audience.value,
        "customer": workflow.customer(body),
        "resource": workflow.resource(body),
        "case_body": body,
        "requested_at": None if requested_at is None else requested_at.isoformat(),
        "supersedes": None if origin.supersedes is None else str(origin.supersedes),
        **asdict(pins),
    }
