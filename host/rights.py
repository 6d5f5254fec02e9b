"""Reads what stands before anybody may do anything: the authorization set's file, the kinds' registered moves, the
data versions of the day.
"""

from __future__ import annotations

import hashlib
from itertools import islice
from pathlib import Path

from pydantic import ValidationError

from host.database import NotReadyError
from host.domain.principals import AuthorizationSet
from host.engine.accept import Pins
from host.engine.parts import Kind
from host.settings import Settings
from host.store import ledger
from host.store.pool import Pool
from host.workflows.catalogue import WORKFLOWS
from shared_contracts.named_file import Unread, read_file
from shared_contracts.told import complaints

AUTHORIZATION_BYTES_MAX = 4 * 2**20  # of some ten thousand principals
_SHOWN_MAX = 10


def read_authorization(file: Path) -> AuthorizationSet:
    """Read the authorization set; raises NotReadyError."""
    return read_with_digest(file)[0]


def read_with_digest(file: Path) -> tuple[AuthorizationSet, str]:
    """Read the authorization set, and the SHA-256 of what was read (`sha256:` and 64 hex digits)."""
    content = read_file(file, AUTHORIZATION_BYTES_MAX, decides=True)
    if isinstance(content, Unread):
        raise NotReadyError(f"the authorization set {file} cannot be read: {content.why}\nSee KESSAI_AUTHZ_FILE.")
    try:
        known = AuthorizationSet.model_validate_json(content)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        said = complaints(islice(problems, _SHOWN_MAX), "the file")
        more = [f"… and {len(problems) - _SHOWN_MAX} more"] if len(problems) > _SHOWN_MAX else []
        lines = [f"the authorization set {file} cannot be used; host/data/authz-v7.json is one that can", *said, *more]
        raise NotReadyError("\n".join(lines)) from error
    named = {
        "a principal": [principal.name for principal in known.principals],
        "an approver": [approver.name for approver in known.approvers],  # a key is bound to the name alone
        "an operator": [one.name for one in known.operators],
    }
    for what, names in named.items():
        if len(set(names)) != len(names):
            raise NotReadyError(f"the authorization set {file} names {what} twice")
    return known, f"sha256:{hashlib.sha256(content).hexdigest()}"


async def kinds(pool: Pool) -> dict[tuple[str, str], Kind]:
    """Read every release's registered moves."""
    async with pool.connection() as connection:
        return {
            (workflow.kind, workflow.release): Kind(
                workflow, await ledger.moves(connection, workflow.kind, workflow.release)
            )
            for workflow in WORKFLOWS
        }


def pins(settings: Settings, authorization: AuthorizationSet) -> Pins:
    """Name the data versions that new workflows are pinned to."""
    return Pins(settings.order_snapshot, settings.policy_version, authorization.version)
