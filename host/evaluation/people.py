"""The approvers of an evaluation: keys of its own for the people of the authorization set, and their yes or no.

Invariant: a decision goes the way of everybody's: signed, verified, written down and moved by it in one commit. The
keys live in this process alone, and are trusted on both sides of the evaluation's own pair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from host.engine.approve import Desk, decision_on, take_decision, waiting
from host.stack import assembly
from host.stack.assembly import StackParts
from host.stack.files import write_secret
from host.stack.processes import run_to_end
from host.store import approvals
from host.store.pool import Pool
from shared_contracts.approval import Approver, Name, TrustedApprover, jwk_of, sign
from shared_contracts.base import dump
from shared_contracts.digest import canonical_json

BY = "evaluation"
TRUST_SECONDS_MAX = 60.0
Verdict = Literal["approve", "deny"]
_REASON = "as the case of the evaluation says"


@dataclass(frozen=True, slots=True)
class People:
    """Whose decisions count here, with their keys."""

    keys: Mapping[str, tuple[Ed25519PrivateKey, str]]

    async def decide(self, desk: Desk, workflow_id: UUID, by: Name, verdict: Verdict) -> None:
        """Take a person's decision on a case that waits for one; raises ApprovalRefusedError."""
        key, kid = self.keys[by]
        event = decision_on(*await waiting(desk, workflow_id), by, verdict, _REASON)
        await take_decision(desk, sign(event, key, kid), 0.0)


async def trusted_people(parts: StackParts, owner: Pool, approvers: Collection[Approver]) -> People:
    """Make a key for each, and let it count at the host and, by the tool server's own program, there."""
    keys = {approver.name: Ed25519PrivateKey.generate() for approver in approvers}
    trusted = [TrustedApprover(approver=one, key=jwk_of(keys[one.name].public_key())) for one in approvers]
    async with owner.connection() as connection:
        for one in trusted:
            await approvals.trust(connection, one, BY)
    await asyncio.gather(*(_tell_tools(parts, one) for one in trusted))
    return People({one.approver.name: (keys[one.approver.name], one.key.kid) for one in trusted})


async def _tell_tools(parts: StackParts, trusted: TrustedApprover) -> None:
    file = parts.home.run / f"approver-{trusted.key.kid}.json"
    write_secret(file, canonical_json(dump(trusted)).decode() + "\n")
    try:
        await run_to_end(parts.home, assembly.trust_approver(parts, file), TRUST_SECONDS_MAX)
    finally:
        file.unlink()
