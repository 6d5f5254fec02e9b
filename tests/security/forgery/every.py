"""All attempts, of every kind."""

from __future__ import annotations

from tests.security.forgery import (
    approvals,
    approvals_spelt,
    bindings,
    claims,
    remembered,
    signatures,
    spellings,
    trust,
    uses,
)
from tests.security.forgery.attempt import Attempt

EVERY: tuple[Attempt, ...] = (
    *signatures.ATTEMPTS, *spellings.ATTEMPTS, *claims.ATTEMPTS, *bindings.ATTEMPTS,
    *uses.ATTEMPTS, *trust.ATTEMPTS, *remembered.ATTEMPTS, *approvals.ATTEMPTS, *approvals_spelt.ATTEMPTS,
)  # fmt: skip
REFUSED = tuple(one for one in EVERY if one.answer is not None)
RIGHT = tuple(one for one in EVERY if one.answer is None)
