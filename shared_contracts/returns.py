"""The return family on the wire, and the decision table: one pure function from facts to a ruling.

The host decides with `rule()`; `create_return` applies it again to its own tables inside its own transaction.
Rows are tried in order over the whole request; the first that matches any line decides; the last always does.
A refund is what was paid for these very units after discounts, so that partial returns add up to the total.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, AwareDatetime, Field, model_validator

from shared_contracts.base import Contract, Identifier, Label, Money, Quantity, Reference
from shared_contracts.orders import OrderStatus


class ReturnReason(StrEnum):
    """Why the customer returns."""

    CHANGED_MIND = "changed_mind"
    DEFECTIVE = "defective"
    WRONG_ITEM = "wrong_item"
    DAMAGED = "damaged"
    OTHER = "other"


class Ask(StrEnum):
    """What the customer asks for beyond a return; each is outside the first version and needs a person."""

    REFUND = "refund"
    COLLECT = "collect"
    EXCEPTION = "exception"


# The seller may owe more than the window grants: out of period, these claim an exception.
SELLER_FAULT = frozenset({ReturnReason.DEFECTIVE, ReturnReason.WRONG_ITEM, ReturnReason.DAMAGED})


class ReturnLine(Contract):
    """One line of a request, in units."""

    line_id: Identifier
    quantity: Quantity


def _distinct(lines: tuple[ReturnLine, ...]) -> tuple[ReturnLine, ...]:
    if len({line.line_id for line in lines}) != len(lines):
        raise ValueError("a line stands twice; name each line once, with its whole quantity")
    return lines


ReturnLines = Annotated[tuple[ReturnLine, ...], Field(min_length=1, max_length=100), AfterValidator(_distinct)]


class LineFacts(Contract):
    """What the rules need to know of one requested line. `known` is false for a line the order has not."""

    line_id: Identifier
    requested: Quantity
    known: bool
    left: Annotated[int, Field(ge=0, le=10_000)]
    delivered: Annotated[int, Field(ge=0, le=10_000)]
    delivered_at: AwareDatetime | None
    window_ends_at: AwareDatetime | None
    category_known: bool
    rules_conflict: bool
    dangerous: bool
    final_sale: bool
    refund: Money


class ReturnFacts(Contract):
    """The facts of one request.

    `other_returns` is the net refund of the order's other uncancelled returns, `earlier_returns` the numbers of
    those that hold units of the requested lines.
    """

    order_status: OrderStatus
    reason: ReturnReason
    requested_at: AwareDatetime
    lines: Annotated[tuple[LineFacts, ...], Field(min_length=1, max_length=100)]
    return_fee: Money
    shipping_refund: Money
    refund: Money
    other_returns: Money
    earlier_returns: Annotated[tuple[Identifier, ...], Field(max_length=100)]
    approval_threshold: Money | None

    @model_validator(mode="after")
    def _one_currency(self) -> Self:
        """Refuse facts in two currencies: a number of one is never compared with a limit in another."""
        amounts = [self.return_fee, self.shipping_refund, self.refund, self.other_returns]
        amounts += [line.refund for line in self.lines]
        amounts += [] if self.approval_threshold is None else [self.approval_threshold]
        if len({amount.currency for amount in amounts}) > 1:
            raise ValueError("the amounts are not all in the currency of the order")
        return self


class RulingOutcome(StrEnum):
    """Where a ruling leads."""

    ELIGIBLE = "eligible"
    APPROVAL = "approval"
    REJECTED = "rejected"
    NEEDS_REVIEW = "needs_review"


@dataclass(frozen=True, slots=True)
class Ruling:
    """An outcome and the row that gave it."""

    outcome: RulingOutcome
    reason: str


_Test = Callable[[ReturnFacts, frozenset[Ask]], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the decision table."""

    reason: str
    outcome: RulingOutcome
    when: _Test


def _any(test: Callable[[LineFacts], bool]) -> _Test:
    return lambda facts, _asks: any(test(line) for line in facts.lines)


_DATES_FROM = datetime(2000, 1, 1, tzinfo=UTC)  # year 1 and 1970 are what systems write where they have no date


def usable_date(delivered_at: datetime | None, requested_at: datetime) -> bool:
    """Tell whether a delivery can be placed in its window: a date, and none that lies after the request."""
    return delivered_at is not None and _DATES_FROM <= delivered_at <= requested_at


def _date_unusable(facts: ReturnFacts) -> bool:
    return any(
        not usable_date(line.delivered_at, facts.requested_at)
        for line in facts.lines
        if line.known and line.delivered > 0
    )


def _undecidable(facts: ReturnFacts, _asks: frozenset[Ask]) -> bool:
    unclear = any(line.known and (not line.category_known or line.rules_conflict) for line in facts.lines)
    return unclear or facts.approval_threshold is None or _date_unusable(facts)


def _not_returnable(facts: ReturnFacts, _asks: frozenset[Ask]) -> bool:
    closed = facts.order_status in {OrderStatus.CANCELLED, OrderStatus.REFUNDED}
    return closed or any(not line.known or line.delivered == 0 for line in facts.lines)


def _late(facts: ReturnFacts, _asks: frozenset[Ask]) -> bool:
    ends = [line.window_ends_at for line in facts.lines]
    return any(end is None or facts.requested_at >= end for end in ends)


def _final_sale(facts: ReturnFacts, _asks: frozenset[Ask]) -> bool:
    return any(line.final_sale for line in facts.lines)


def _at_fault(test: _Test) -> _Test:
    """Hold where the test does and the reason given is one that the seller answers for."""
    return lambda facts, asks: facts.reason in SELLER_FAULT and test(facts, asks)


def _high_value(facts: ReturnFacts, _asks: frozenset[Ask]) -> bool:
    if facts.approval_threshold is None:
        return True
    return facts.refund.amount + facts.other_returns.amount >= facts.approval_threshold.amount


# fmt: off
DECISION_TABLE: tuple[Row, ...] = (
    #   reason               outcome                     when
    Row("out_of_scope",      RulingOutcome.NEEDS_REVIEW, lambda _facts, asks: len(asks) > 0),
    Row("undecidable",       RulingOutcome.NEEDS_REVIEW, _undecidable),
    Row("not_returnable",    RulingOutcome.REJECTED,     _not_returnable),
    Row("already_returned",  RulingOutcome.REJECTED,     _any(lambda line: line.requested > line.left)),
    Row("dangerous_goods",   RulingOutcome.NEEDS_REVIEW, _any(lambda line: line.dangerous)),
    Row("final_sale_defect", RulingOutcome.NEEDS_REVIEW, _at_fault(_final_sale)),
    Row("final_sale",        RulingOutcome.REJECTED,     _final_sale),
    Row("exception_claimed", RulingOutcome.NEEDS_REVIEW, _at_fault(_late)),
    Row("out_of_period",     RulingOutcome.REJECTED,     _late),
    Row("high_value",        RulingOutcome.APPROVAL,     _high_value),
    Row("eligible",          RulingOutcome.ELIGIBLE,     lambda _facts, _asks: True),
)
# fmt: on
ORDER_NOT_FOUND = Ruling(RulingOutcome.REJECTED, "order_not_found")  # row 1: there are no facts to look at


def rule(facts: ReturnFacts | None, asks: frozenset[Ask]) -> Ruling:
    """Decide one request; `facts` is None where the order is unknown or another's: both look the same."""
    if facts is None:
        return ORDER_NOT_FOUND
    row = next(row for row in DECISION_TABLE if row.when(facts, asks))
    return Ruling(row.outcome, row.reason)


def window_ends_at(delivered_at: datetime, days: int, zone: str) -> datetime:
    """Give the first instant after the window: it lasts to the end of the last day in the shop's zone.

    The anchor is the first delivery; the day of delivery is day 0. A request at the returned instant is late.
    For a date that `usable_date` refuses there may be no such instant: OverflowError.
    """
    local = delivered_at.astimezone(ZoneInfo(zone))
    last_day = local.date() + timedelta(days=days)
    return datetime.combine(last_day + timedelta(days=1), time(), ZoneInfo(zone))


def refund_for(paid: int, bought: int, returned: int, refunded: int, requested: int) -> int:
    """Give the minor units for `requested` more units of a line: what its running floor is short of.

    `refunded` is what the line's uncancelled returns gave back. The parts of a line that is returned bit by bit
    therefore add up to `paid` to the last unit, also where one of them was cancelled in between.
    """
    upto = min(returned + requested, bought)
    return max(0, paid * upto // bought - refunded)


def net_refund(lines: int, shipping: int, fee: int) -> int:
    """Give what is paid back in minor units: never below nothing, however high the fee."""
    return max(0, lines + shipping - fee)


class ReturnStatus(StrEnum):
    """`rejected` exists on the wire so that an answer of 200 can still not be a success."""

    CREATED = "created"
    REJECTED = "rejected"
    CANCELLED = "cancelled"


class CreateReturn(Contract):
    """Arguments of `create_return`; the key and the request's time travel in the token."""

    order_id: Identifier
    lines: ReturnLines
    reason: ReturnReason


class ReturnedLine(Contract):
    """One line of a return that exists."""

    line_id: Identifier
    quantity: Quantity
    refund: Money


class Return(Contract):
    """A return as the return family holds it; results of `create_return` and `get_return`."""

    return_id: Identifier
    order_id: Identifier
    status: ReturnStatus
    lines: Annotated[tuple[ReturnedLine, ...], Field(min_length=1, max_length=100)]
    reason: ReturnReason
    refund: Money
    created_at: AwareDatetime
    rule_version: Label
    order_version: Annotated[int, Field(ge=1)]
    evidence_ref: Reference


class GetReturn(Contract):
    """Arguments of `get_return`."""

    order_id: Identifier
    return_id: Identifier


class FindReturn(Contract):
    """Arguments of `find_return`; the key that is looked up, and the attempt, travel in the token."""

    order_id: Identifier


class ReturnFound(Contract):
    """Result of `find_return`; where nothing was found, attempts up to `closed_through` can no longer act."""

    found: bool
    record: Return | None
    closed_through: Annotated[int, Field(ge=0)]
    evidence_ref: Reference


class CancelReturn(Contract):
    """Arguments of `cancel_return`."""

    order_id: Identifier
    return_id: Identifier


class ReturnCancelled(Contract):
    """Result of `cancel_return`: the units are free again, in the same transaction."""

    return_id: Identifier
    order_id: Identifier
    status: ReturnStatus
    cancelled_at: AwareDatetime
    evidence_ref: Reference


class GetReturnLinks(Contract):
    """Arguments of `get_return_links`."""

    order_id: Identifier
    return_id: Identifier


class ReturnLinks(Contract):
    """Result of `get_return_links`: what else hangs on the return."""

    return_id: Identifier
    order_id: Identifier
    label_used: bool
    inventory_entries: Annotated[tuple[Reference, ...], Field(max_length=100)]
    accounting_entries: Annotated[tuple[Reference, ...], Field(max_length=100)]
    evidence_ref: Reference
