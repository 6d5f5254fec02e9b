"""What a seed file must hold beyond its model: sums, bounds and names that refer to each other. Pure.

Invariant: a file that passes here meets every constraint of an empty database, so that a person is told the
place in the file and what to do, and never a constraint's name.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.errors import MessageError
from email.headerregistry import Address
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from shared_contracts.returns import ReturnStatus
from tool_server.seed import Seed, SeedLine, SeedOrder, SeedPolicy, SeedRecipient

EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_AMOUNT_MAX = 10**15


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to correct: where it stands, and what to do."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def check(seed: Seed) -> Iterator[Problem]:
    """Give every problem of the file."""
    yield from _twice("policies", [policy.version for policy in seed.policies], "give each version one entry")
    yield from _twice(
        "policies",
        [
            policy.effective_from if policy.tenant_id is None else (policy.tenant_id, policy.effective_from)
            for policy in seed.policies
        ],
        "two versions cannot begin at one instant",
    )
    for at, policy in enumerate(seed.policies):
        yield from _policy(f"policies[{at}]", policy)
    yield from _twice(
        "orders", [(order.tenant_id, order.order_id) for order in seed.orders], "give each order one entry"
    )
    returns = [(order.tenant_id, made.return_id) for order in seed.orders for made in order.returns]
    yield from _twice("orders[].returns", returns, "give each return a number of its own")
    for at, order in enumerate(seed.orders):
        yield from _order(f"orders[{at}]", order)
    people = [(person.tenant_id, person.customer_id) for person in seed.recipients]
    yield from _twice("recipients", people, "give each customer one entry")
    for at, person in enumerate(seed.recipients):
        yield from _recipient(f"recipients[{at}]", person)


def gross(line: SeedLine) -> int:
    """Give a line's price before discounts."""
    return line.quantity * line.unit_price


def total(order: SeedOrder) -> int:
    """Give what an order costs in all."""
    return sum(gross(line) for line in order.lines) - order.discount + order.shipping_fee


def _twice(path: str, names: Iterable[Hashable], mend: str) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            shown = "/".join(str(part) for part in name) if isinstance(name, tuple) else name
            yield Problem(path, f"{shown} stands {count} times; {mend}")


def _policy(path: str, policy: SeedPolicy) -> Iterator[Problem]:
    if policy.effective_until is not None and policy.effective_until <= policy.effective_from:
        yield Problem(f"{path}.effective_until", "is not after effective_from; correct one, or write null")
    try:
        ZoneInfo(policy.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        yield Problem(f"{path}.zone", f"{policy.zone!r} is no time zone; write one such as Asia/Tokyo")
    yield from _twice(f"{path}.rules", [(rule.category, rule.source) for rule in policy.rules], "one source, one rule")
    for name in ("approval_thresholds", "return_fees"):
        yield from _twice(f"{path}.{name}", [row.currency for row in getattr(policy, name)], "one amount per currency")


def _order(path: str, order: SeedOrder) -> Iterator[Problem]:
    yield from _moment(f"{path}.ordered_at", order.ordered_at)
    yield from _twice(f"{path}.lines", [line.line_id for line in order.lines], "give each line a name of its own")
    for at, line in enumerate(order.lines):
        yield from _line(f"{path}.lines[{at}]", line)
    before_discount = sum(gross(line) for line in order.lines)
    if before_discount + order.shipping_fee > _AMOUNT_MAX:
        yield Problem(path, f"the order costs more than {_AMOUNT_MAX} minor units; split it")
    if order.discount > before_discount:
        yield Problem(f"{path}.discount", f"{order.discount} is above the lines' {before_discount}; lower it")
    elif order.captured > total(order):
        yield Problem(f"{path}.captured", f"{order.captured} is above the order's {total(order)}; it counts twice?")
    if order.refunded_outside > order.captured:
        yield Problem(f"{path}.refunded_outside", f"is above the captured {order.captured}; lower it")
    yield from _returns(path, order)


def _line(path: str, line: SeedLine) -> Iterator[Problem]:
    if line.delivered_quantity > line.quantity:
        yield Problem(f"{path}.delivered_quantity", f"is above the {line.quantity} that were bought; lower it")
    if line.delivered_at is not None:
        yield from _moment(f"{path}.delivered_at", line.delivered_at)


def _returns(path: str, order: SeedOrder) -> Iterator[Problem]:
    left = {line.line_id: line.delivered_quantity for line in order.lines}
    for at, made in enumerate(order.returns):
        where = f"{path}.returns[{at}]"
        yield from _moment(f"{where}.created_at", made.created_at)
        yield from _twice(f"{where}.lines", [line.line_id for line in made.lines], "name each line once")
        for line in made.lines:
            if line.line_id not in left:
                yield Problem(f"{where}.lines", f"the order has no line {line.line_id}")
            elif made.status is ReturnStatus.CREATED:
                left[line.line_id] -= line.quantity
    for line_id, units in left.items():
        if units < 0:
            yield Problem(
                f"{path}.returns", f"line {line_id}: {-units} more returned than delivered; correct the returns"
            )


def _moment(path: str, moment: datetime) -> Iterator[Problem]:
    if not EARLIEST <= moment < LATEST:
        yield Problem(path, f"{moment.isoformat()} is no date of an order; write null where there is no date")


def _recipient(path: str, person: SeedRecipient) -> Iterator[Problem]:
    if any(unicodedata.category(character) == "Cc" for character in person.name):
        yield Problem(f"{path}.name", "holds a line break or another control character; remove it")
    try:
        Address(addr_spec=person.email)
    except (MessageError, ValueError, IndexError):
        yield Problem(f"{path}.email", f"{person.email!r} is no mail address; correct it")
