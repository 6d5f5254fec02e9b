"""The demo shop read a second time, by a calculation of its own: what each line was paid for, and the facts.

Nothing here calls the server's or the contracts' arithmetic; a disagreement is therefore a finding.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from shared_contracts.base import Money
from shared_contracts.returns import LineFacts, ReturnFacts, ReturnReason, ReturnStatus
from tool_server.demo.generate import SHOP
from tool_server.seed import Seed, SeedAmount, SeedLine, SeedOrder, SeedPolicy, SeedReturn

JST = timezone(timedelta(hours=9))
SNAPSHOT = datetime(2026, 7, 30, tzinfo=JST)
EXAMPLES = Path(__file__).parents[2] / "examples" / "returns"


def read_shop() -> Seed:
    return Seed.model_validate_json(SHOP.read_bytes())


def policy_at(seed: Seed, moment: datetime) -> SeedPolicy:
    (policy,) = [
        policy
        for policy in seed.policies
        if policy.effective_from <= moment and (policy.effective_until is None or moment < policy.effective_until)
    ]
    return policy


def order_total(order: SeedOrder) -> int:
    return sum(line.quantity * line.unit_price for line in order.lines) + order.shipping_fee - order.discount


def paid_by_line(order: SeedOrder) -> dict[str, int]:
    """Share the discount out by largest remainder, over the lines alone."""
    gross = {line.line_id: line.quantity * line.unit_price for line in order.lines}
    whole = sum(gross.values())
    if whole == 0:
        return gross
    shares = {line_id: divmod(order.discount * amount, whole) for line_id, amount in gross.items()}
    short = order.discount - sum(share for share, _ in shares.values())
    # sorted() is stable, so of equal remainders the earlier line gives way first
    neediest = sorted(shares, key=lambda line_id: -shares[line_id][1])[:short]
    return {line_id: gross[line_id] - shares[line_id][0] - (1 if line_id in neediest else 0) for line_id in gross}


def units_returned(order: SeedOrder, line_id: str) -> int:
    return sum(
        line.quantity
        for made in order.returns
        if made.status is ReturnStatus.CREATED
        for line in made.lines
        if line.line_id == line_id
    )


def units_worth(paid: int, bought: int, first: int, count: int) -> int:
    """Add up the units one by one: unit n is worth what the n cheapest shares grow by."""
    return sum(paid * (unit + 1) // bought - paid * unit // bought for unit in range(first, first + count))


def local_day(moment: datetime) -> date:
    return moment.astimezone(JST).date()


def first_late_instant(delivered_at: datetime, days: int) -> datetime:
    day = local_day(delivered_at) + timedelta(days=days + 1)
    return datetime(day.year, day.month, day.day, tzinfo=JST)


def line_facts(order: SeedOrder, policy: SeedPolicy, line: SeedLine | None, line_id: str, asked: int) -> LineFacts:
    rules = [rule for rule in policy.rules if line is not None and rule.category == line.category]
    readings = {(rule.window_days, rule.dangerous, rule.final_sale) for rule in rules}
    if line is None:
        return LineFacts(
            line_id=line_id, requested=asked, known=False, left=0, delivered=0, delivered_at=None,
            window_ends_at=None, category_known=False, rules_conflict=False, dangerous=False, final_sale=False,
            refund=Money(amount=0, currency=order.currency),
        )  # fmt: skip
    gone = units_returned(order, line_id)
    ends = (
        first_late_instant(line.delivered_at, min(rule.window_days for rule in rules))
        if line.delivered_at is not None and rules
        else None
    )
    worth = units_worth(paid_by_line(order)[line_id], line.quantity, gone, min(asked, line.quantity - gone))
    return LineFacts(
        line_id=line_id, requested=asked, known=True, left=line.delivered_quantity - gone,
        delivered=line.delivered_quantity, delivered_at=line.delivered_at, window_ends_at=ends,
        category_known=len(rules) > 0, rules_conflict=len(readings) > 1,
        dangerous=line.dangerous or any(rule.dangerous for rule in rules),
        final_sale=line.final_sale or any(rule.final_sale for rule in rules),
        refund=Money(amount=worth, currency=order.currency),
    )  # fmt: skip


def _amount(amounts: tuple[SeedAmount, ...], currency: str) -> int | None:
    return next((row.amount for row in amounts if row.currency == currency), None)


@dataclass
class _Going:
    """What goes back in one return: goods, shipping and the fee, in minor units."""

    goods: int
    shipping: int
    fee: int

    def net(self, refundable: int) -> int:
        return min(max(0, self.goods + self.shipping - self.fee), refundable)


def _going(
    order: SeedOrder, policy: SeedPolicy, parts: dict[str, int], reason: ReturnReason, gone: Counter[str]
) -> _Going:
    """Count one return; where the seller is at fault there is no fee, and the last units bring the shipping back."""
    at_fault = reason.value in {"defective", "wrong_item", "damaged"}
    bought = {line.line_id: line.quantity for line in order.lines}
    paid = paid_by_line(order)
    fee = _amount(policy.return_fees, order.currency)
    everything = all(gone[line_id] + parts.get(line_id, 0) == quantity for line_id, quantity in bought.items())
    goods = sum(
        units_worth(paid[line_id], bought[line_id], gone[line_id], min(units, bought[line_id] - gone[line_id]))
        for line_id, units in parts.items()
        if line_id in bought
    )
    return _Going(goods, order.shipping_fee if everything and at_fault else 0, 0 if at_fault or fee is None else fee)


def _history(order: SeedOrder, policy: SeedPolicy) -> tuple[int, Counter[str], tuple[SeedReturn, ...]]:
    """Give what the uncancelled returns paid back, the units that they hold, and the returns themselves."""
    kept = tuple(made for made in order.returns if made.status is ReturnStatus.CREATED)
    gone: Counter[str] = Counter()
    refunded = 0
    for made in kept:
        parts = {line.line_id: line.quantity for line in made.lines}
        refundable = order.captured - order.refunded_outside - refunded
        refunded += _going(order, policy, parts, made.reason, gone).net(refundable)
        gone.update(parts)
    return refunded, gone, kept


def shop_facts(seed: Seed, tenant: str, case: dict[str, Any]) -> ReturnFacts | None:
    """Give the facts of a case, or nothing where its customer has no such order."""
    wanted = (tenant, case["customer_id"], case["order_id"])
    found = [order for order in seed.orders if (order.tenant_id, order.customer_id, order.order_id) == wanted]
    if not found:
        return None
    (order,) = found
    moment, reason = datetime.fromisoformat(case["requested_at"]), ReturnReason(case["reason"])
    policy = policy_at(seed, moment)
    by_id = {line.line_id: line for line in order.lines}
    parts = {part["line_id"]: part["quantity"] for part in case["lines"]}
    refunded, gone, kept = _history(order, policy)
    going = _going(order, policy, parts, reason, gone)
    threshold = _amount(policy.approval_thresholds, order.currency)

    def money(amount: int) -> Money:
        return Money(amount=amount, currency=order.currency)

    return ReturnFacts(
        order_status=order.status,
        reason=reason,
        requested_at=moment,
        lines=tuple(line_facts(order, policy, by_id.get(line_id), line_id, units) for line_id, units in parts.items()),
        return_fee=money(going.fee),
        shipping_refund=money(going.shipping),
        refund=money(going.net(order.captured - order.refunded_outside - refunded)),
        other_returns=money(refunded),
        earlier_returns=tuple(m.return_id for m in kept if any(line.line_id in parts for line in m.lines)),
        approval_threshold=None if threshold is None else money(threshold),
    )
