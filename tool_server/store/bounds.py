"""What a call may touch: its token's tenant and customer, the order or case that the token names, its key and task.

Invariant: nothing here comes from a call's arguments. The database holds every row to it, beneath all statements.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from shared_contracts.task_token import CallDetails, TaskClaims

WHOLE = "*"  # no identifier: the reach of a token that names no order and no case, over its customer's


@dataclass(frozen=True, slots=True)
class Bounds:
    """What rows the database shows and takes; where a member is empty, none that it bounds."""

    tenant: str
    customer: str
    reach: str
    task_id: str
    key: str

    def text(self) -> str:
        """Give their JSON, as `calls.enter` reads it."""
        return orjson.dumps(self).decode()


def bounds_of(claims: TaskClaims, details: CallDetails | None) -> Bounds:
    """Give the bounds of a verified token; one without details reaches no customer's row."""
    if details is None:
        return Bounds(claims.tenant_id, "", "", claims.task_id, "")
    reach = WHOLE if details.resource is None else details.resource
    key = "" if details.idempotency_key is None else details.idempotency_key
    return Bounds(claims.tenant_id, details.customer, reach, claims.task_id, key)
