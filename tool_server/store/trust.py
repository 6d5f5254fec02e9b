"""Whom an operator trusts to approve, as the owner: rows are added and ended, with who did it and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg import AsyncConnection

from shared_contracts.approval import Approver, TrustedApprover
from shared_contracts.base import Money
from tool_server.store.queries import queries

TRUST = queries("trust")


@dataclass(frozen=True, slots=True)
class KnownApprover:
    """A key with the terms on which it is or was trusted; `ended_how` is None while it stands."""

    kid: str
    approver: Approver
    trusted_at: datetime
    trusted_by: str
    ended_at: datetime | None
    ended_by: str | None
    ended_how: Literal["revoked", "replaced"] | None


async def lock(connection: AsyncConnection) -> None:
    """Let nobody else trust or revoke until the transaction ends; calls go on."""
    await connection.execute(TRUST["lock_approvers"])


async def speaking(connection: AsyncConnection, kid: str, approver: Approver) -> list[KnownApprover]:
    """Give every row of the key, and the active row of the person, oldest first."""
    parameters = {"kid": kid, "tenant": approver.tenant_id, "approver": approver.name}
    return _known(await (await connection.execute(TRUST["speaking"], parameters)).fetchall())


async def listed(connection: AsyncConnection) -> list[KnownApprover]:
    """Give the active and the revoked keys, each once."""
    return _known(await (await connection.execute(TRUST["listed"])).fetchall())


async def add(connection: AsyncConnection, trusted: TrustedApprover, actor: str) -> None:
    """Trust a key on these terms."""
    approver = trusted.approver
    parameters = {
        "kid": trusted.key.kid,
        "public_key": trusted.key.x,
        "tenant": approver.tenant_id,
        "approver": approver.name,
        "amount": approver.limit.amount,
        "currency": approver.limit.currency,
        "substitutes": list(approver.substitutes),
        "after": approver.substitutes_after_seconds,
        "actor": actor,
    }
    await connection.execute(TRUST["insert_approver"], parameters)


async def end(connection: AsyncConnection, kid: str, actor: str, how: Literal["revoked", "replaced"]) -> None:
    """End the key's active row."""
    await connection.execute(TRUST["end_row"], {"kid": kid, "actor": actor, "how": how})


def _known(rows: list[tuple[Any, ...]]) -> list[KnownApprover]:
    return [
        KnownApprover(
            kid,
            Approver(
                name=name,
                tenant_id=tenant,
                limit=Money(amount=amount, currency=currency),
                substitutes=tuple(substitutes),
                substitutes_after_seconds=after,
            ),
            *ends,
        )
        for kid, tenant, name, amount, currency, substitutes, after, *ends in rows
    ]
