"""The policy family on the wire: a rule set's version, the facts it yields, their evidence; no verdict."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shared_contracts.base import Contract, Identifier, Label, Reference
from shared_contracts.returns import ReturnFacts, ReturnLines, ReturnReason


class CheckReturnPolicy(Contract):
    """Arguments of `check_return_policy`."""

    order_id: Identifier
    lines: ReturnLines
    reason: ReturnReason


class PolicyFacts(Contract):
    """Result of `check_return_policy`: what a ruling is made from, and by which rules."""

    order_id: Identifier
    rule_version: Label
    rule_owner: Label
    order_version: Annotated[int, Field(ge=1)]
    snapshot: Label
    facts: ReturnFacts
    evidence_ref: Reference
