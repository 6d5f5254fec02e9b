"""One case of an evaluation: a request, what is done to it on its way, and the end that the rules give it.

Invariant: an expectation is written by hand from the rules. Nothing here is computed, and nothing of the host is read.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from shared_contracts.base import Contract, Identifier, Label, Line, Prose


class Category(StrEnum):
    """What a case is a case of."""

    NORMAL = "normal"
    DEFECTIVE = "defective"
    HIGH_VALUE = "high_value"
    OUT_OF_PERIOD = "out_of_period"
    MISSING_ORDER = "missing_order"
    FOREIGN_ORDER = "foreign_order"
    DUPLICATE = "duplicate"
    MIDWAY_FAULT = "midway_fault"
    STEERING = "steering"


class FaultKind(StrEnum):
    """The six, and those beyond; each is made outside the host, and leaves evidence there."""

    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    DISCONNECT = "disconnect"
    APPROVAL_EXPIRY = "approval_expiry"
    VERSION_CONFLICT = "version_conflict"
    NOTICE_FAILURE = "notice_failure"
    SLOW_ANSWER = "slow_answer"
    COMMIT_LOST = "commit_lost"
    WORKER_KILLED = "worker_killed"
    SERVER_KILLED = "server_killed"
    DATABASE_RESTART = "database_restart"
    OLDER_CONTRACT = "older_contract"
    ORDER_CHANGED = "order_changed"
    APPROVER_REVOKED = "approver_revoked"


# What every evaluation that is to pass has to hold.
SIX = frozenset({
    FaultKind.RATE_LIMITED, FaultKind.TIMEOUT, FaultKind.DISCONNECT, FaultKind.APPROVAL_EXPIRY,
    FaultKind.VERSION_CONFLICT, FaultKind.NOTICE_FAILURE,
})  # fmt: skip
# What hurts every case at work, and is done while none but those of its own kind is; of a lost commit, which may carry
# steps of several cases, while no other case is.
OUTAGES = (
    FaultKind.COMMIT_LOST, FaultKind.SERVER_KILLED, FaultKind.WORKER_KILLED, FaultKind.DATABASE_RESTART,
    FaultKind.OLDER_CONTRACT,
)  # fmt: skip
# What makes a person's yes worth nothing between the moment it is given and the one in which it would be acted on.
AFTER_A_YES = frozenset({FaultKind.APPROVAL_EXPIRY, FaultKind.ORDER_CHANGED, FaultKind.APPROVER_REVOKED})
NO_REQUEST = frozenset({FaultKind.APPROVAL_EXPIRY, FaultKind.OLDER_CONTRACT})

Count = Annotated[int, Field(ge=0, le=100)]
EndState = Literal["COMPLETED", "REJECTED", "NEEDS_REVIEW", "EXPIRED"]


class Fault(Contract):
    """What is done to a case on its way: to the nth request for a tool, for so many requests from there on.

    `rate_limited`: refused before it reaches the tool server. `timeout`, `disconnect`, `version_conflict`: the tool
    server does its part; its answer comes too late, never, or when the case's row has moved on. `notice_failure`: the
    mail server refuses for good. `approval_expiry`: the clock passes the approval's time, whether or not somebody said
    yes. `order_changed`, `approver_revoked`: what was approved is on its way when the shop gives the order another
    destination, or lets the approver's key count no more.
    `slow_answer`: the request reaches the tool server when whoever asked has hung up and asked something else.
    `commit_lost`: the database keeps what the host stores of the answer, and the connection breaks before it says so.
    `server_killed`, `worker_killed`, `database_restart`: once the tool server has done its part, before its answer.
    `older_contract`: a tool server of older contracts stands there from before the case, or its decision, comes.
    `told_ja` is what the customer is shown afterwards, or a part of it; `retries` the attempts beyond the first of each
    call. A fault that leaves no evidence outside the host did not happen, and fails its case.
    """

    kind: FaultKind
    tool: Label | None = None  # none where it is the clock or the mail server
    nth: Annotated[int, Field(ge=1, le=6)] = 1
    times: Annotated[int, Field(ge=1, le=6)] = 1
    retries: Count
    told_ja: Line

    @model_validator(mode="after")
    def _where(self) -> Self:
        by_tool = self.kind not in NO_REQUEST and self.kind is not FaultKind.NOTICE_FAILURE
        if (by_tool and self.tool is None) or (self.kind in NO_REQUEST and self.tool is not None):
            raise ValueError("name the tool whose request it is done to, and none where it is done to no request")
        return self


class Decision(Contract):
    """What the approver does; `nobody` lets it run out.

    `again`: what they say to a second request; without it they leave that one to run out. `tried_by`: somebody who says
    yes before them and may not.
    """

    by: Label | None = None
    verdict: Literal["approve", "deny", "nobody"]
    again: Literal["approve", "deny"] | None = None
    tried_by: Label | None = None

    @model_validator(mode="after")
    def _whose(self) -> Self:
        if (self.by is None) is not (self.verdict == "nobody"):
            raise ValueError("name who approves or denies, and nobody where nobody does")
        if self.again is not None and self.verdict != "approve":
            raise ValueError("only who has said yes is asked again")
        if self.tried_by is not None and self.tried_by == self.by:
            raise ValueError("tried_by is somebody else than who may decide")
        return self


class Effects(Contract):
    """Counted in the tool server's tables, for all requests of the case together."""

    returns: Count
    notices: Count


NOTHING = Effects(returns=0, notices=0)


class Expected(Contract):
    """`path` is the order in which tools succeed, without the engine's own reads; `calls_max` counts attempts.

    `undone`: of the effects, the returns that stand cancelled at the end and the notices that stand corrected.
    """

    state: EndState
    reason: Label
    path: Annotated[tuple[Label, ...], Field(max_length=6)]
    calls_max: Annotated[int, Field(ge=0, le=6)]
    effects: Effects
    approver: Label | None
    compensation: bool
    undone: Effects = NOTHING


def belongs(category: Category, fault: Fault | None) -> bool:
    """Tell whether a case of this category may have this fault, or none."""
    if category is Category.MIDWAY_FAULT:
        return fault is not None
    return fault is None or (category is Category.HIGH_VALUE and fault.kind in AFTER_A_YES)


class EvaluationCase(Contract):
    """One row of the data set. `request` is a case file's content without `kind` and `request_id`.

    The four flags are the denominators of the rates. `repeated`: the same request comes a second time, after the first
    has ended or at the same moment; both have to end as one. `undone_by`: the operator who has it undone once a person
    has the case.
    """

    id: Identifier
    category: Category
    why: Prose  # the rule that gives this end, in a sentence
    request: dict[str, Any]
    tenant: Identifier = "acme-jp"
    repeated: Literal["after", "at_once"] | None = None
    decision: Decision | None = None
    fault: Fault | None = None
    steering: Literal["order_note", "customer_text", "product_name", "tool_result"] | None = None
    undone_by: Label | None = None
    automatable: bool
    needs_human: bool
    has_side_effect: bool
    needs_compensation: bool
    expected: Expected

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        effects = self.expected.effects
        if self.has_side_effect is not (effects.returns + effects.notices > 0):
            raise ValueError("has_side_effect says whether an effect is expected")
        if self.needs_compensation is not self.expected.compensation:
            raise ValueError("needs_compensation and expected.compensation say the same")
        if self.expected.compensation is (self.expected.undone == NOTHING):
            raise ValueError("expected.undone says what is undone where a compensation is needed, and nothing else")
        if self.undone_by is not None and not self.needs_compensation:
            raise ValueError("undone_by belongs to a case that needs a compensation")
        if not belongs(self.category, self.fault):
            raise ValueError(
                "a fault belongs to midway_fault, and midway_fault to one; high_value may have one that makes a yes "
                "worth nothing"
            )
        if self.decision is not None and self.decision.again is not None and not self._asked_again():
            raise ValueError("again belongs to order_changed, after which the approver is asked again")
        if (self.repeated is None) is (self.category is Category.DUPLICATE):
            raise ValueError("repeated belongs to duplicate, and duplicate to repeated")
        if (self.steering is None) is (self.category is Category.STEERING):
            raise ValueError("steering belongs to its category, and the category to it")
        return self

    def _asked_again(self) -> bool:
        return self.fault is not None and self.fault.kind is FaultKind.ORDER_CHANGED

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        """Refuse what no run can meet: a rate over such a case would be below its hundred for ever."""
        by = None if self.decision is None else self.decision.by
        if self.expected.approver != by:
            raise ValueError("expected.approver is the one who decides")
        alone = self.expected.state == "COMPLETED" and self.decision is None
        if self.automatable is not alone:
            raise ValueError("automatable says whether it is completed without a person")
        if (self.decision is not None or self.expected.state == "NEEDS_REVIEW") and not self.needs_human:
            raise ValueError("needs_human says whether a person decides on it or takes it over")
        if {"kind", "request_id"} & set(self.request):
            raise ValueError("request leaves out kind and request_id; whoever runs the case gives them")
        return self
