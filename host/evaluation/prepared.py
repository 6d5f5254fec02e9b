"""A case that is about to be run: its request as its kind reads it, who asks and decides, and beside what it may run.

Invariant: what keeps a case from others is read off the case alone, before anything is started.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from host.domain.principals import Principal
from host.evaluation.people import Verdict
from shared_contracts.evaluation import OUTAGES, EvaluationCase, FaultKind


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case whose request was read as its kind has it, and who asks."""

    case: EvaluationCase
    request: BaseModel
    principal: Principal

    @property
    def by_clock(self) -> bool:
        """Tell whether its end is a time that passes."""
        decision, kind = self.case.decision, None if self.case.fault is None else self.case.fault.kind
        nobody = decision is not None and decision.verdict == "nobody"
        unanswered = decision is not None and decision.again is None and kind is FaultKind.ORDER_CHANGED
        return nobody or unanswered or kind is FaultKind.APPROVAL_EXPIRY

    @property
    def spends_a_key(self) -> bool:
        """Tell whether somebody decides nothing more once it has been run."""
        return self.case.fault is not None and self.case.fault.kind is FaultKind.APPROVER_REVOKED

    @property
    def late(self) -> bool:
        """Tell whether the yes that it waits for is given when no worker acts on it before its time is over."""
        fault = self.case.fault
        return fault is not None and fault.kind is FaultKind.APPROVAL_EXPIRY and self.verdicts != ()

    @property
    def undisturbed(self) -> bool:
        """Tell whether it may run beside any other."""
        return not (self.by_clock or self.spends_a_key) and self.outage is None

    @property
    def verdicts(self) -> tuple[tuple[str, Verdict], ...]:
        """Say who decides what, one request after the other."""
        decision = self.case.decision
        if decision is None or decision.by is None or decision.verdict == "nobody":
            return ()
        first = (decision.by, decision.verdict)
        return (first,) if decision.again is None else (first, (decision.by, decision.again))

    @property
    def outage(self) -> FaultKind | None:
        """Name what is done to it that hurts every other case too; none where nothing is."""
        fault = self.case.fault
        return fault.kind if fault is not None and fault.kind in OUTAGES else None
