"""The evaluation's cases of a retail shop's file: what others know to be right, and what has to be refused.

    returns[]    each by itself, each sent twice, each under every fault   one return and one notice, never two
    orders[]     each that was not delivered                               refused, nothing is made
                 each, asked for by another customer                       as if it were not there

Invariant: what is expected is the file's (whose it is, whether it was delivered, which items, worth how much) and the
rules' own words; no program is asked. Each case has an order to itself, as it stands in the file: the first that is
about it under its own number, every further one a copy under that number with a suffix.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared_contracts.base import Identifier, parse
from shared_contracts.evaluation import EvaluationCase, FaultKind
from shared_contracts.evaluation_cases import CaseSet, Refused, case_set
from shared_contracts.named_file import Unread, read_file
from shared_contracts.retail import TENANT
from shared_contracts.told import complaints

DELIVERED_ON: Final = date(2026, 7, 20)
ASKED_AT: Final = "2026-07-30T12:00:00+00:00"  # within the thirty days of the rule set
APPROVAL_FROM_USD: Final = 500  # and that the rule set wants a person from here on
APPROVER: Final = "novak"
BYTES_MAX: Final = 16 * 2**20
_SHOWN_MAX = 20
_WAY: Final = ("get_order", "check_return_policy", "create_return", "send_return_notice")
_WRITES: Final = _WAY[2:]
_SENT, _EXPIRED, _A_PERSON = "ご案内のメールを送信しました", "期限内に承認が得られなかった", "担当者が確認"
# The tools whose request a fault is done to, return by return: of those of a write a second one would be an effect.
_STRUCK: Final[dict[FaultKind, tuple[str | None, ...]]] = {
    FaultKind.RATE_LIMITED: _WAY,
    FaultKind.TIMEOUT: _WRITES,
    FaultKind.DISCONNECT: _WRITES,
    FaultKind.VERSION_CONFLICT: _WRITES,
    FaultKind.NOTICE_FAILURE: (None,),
    FaultKind.APPROVAL_EXPIRY: (None,),
}


_REFUSED: Final[dict[str, Any]] = {
    "decision": None, "automatable": False, "needs_human": False, "has_side_effect": False,
}  # fmt: skip


class _Read(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Item(_Read):
    item_id: Identifier


class _Order(_Read):
    order_id: Identifier
    user_id: Identifier
    status: Literal["pending", "processed", "delivered", "cancelled"]
    items: Annotated[tuple[_Item, ...], Field(min_length=1, max_length=100)]


class _Return(_Read):
    """`task` and `position` name it; several may be about the same items, since each begins with the file as it is."""

    task: Identifier
    position: Annotated[int, Field(ge=0, le=9_999)]
    order_id: Identifier
    user_id: Identifier
    item_ids: Annotated[tuple[Identifier, ...], Field(min_length=1, max_length=100)]
    refund_usd: Annotated[Decimal, Field(ge=0, max_digits=15, decimal_places=2)]


class _Retail(_Read):
    orders: Annotated[tuple[_Order, ...], Field(min_length=1)]
    returns: Annotated[tuple[_Return, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class RetailSet:
    """The cases, and the file's orders as they need them: what the tool server loads."""

    cases: CaseSet
    data: bytes


@dataclass(frozen=True, slots=True)
class _Right:
    """A return that others know to be right, by the lines of its order."""

    told: _Return
    lines: Sequence[str]

    @property
    def name(self) -> str:
        return _name(self.told)

    @property
    def by_a_person(self) -> bool:
        return self.told.refund_usd >= APPROVAL_FROM_USD


@dataclass
class _Numbers:
    """Gives each case an order of its own."""

    given: Counter[str] = field(default_factory=Counter)

    def of(self, order_id: str) -> str:
        self.given[order_id] += 1
        return numbered(order_id, self.given[order_id])

    def taken(self) -> list[str]:
        """Name the orders of the file that have the number of a copy of another one."""
        copies = (numbered(name, nth) for name, times in self.given.items() for nth in range(2, times + 1))
        return [one for one in copies if one in self.given]


def numbered(order_id: str, nth: int) -> str:
    """Name the nth of an order's copies, of which the first is the order itself."""
    return order_id if nth == 1 else f"{order_id}.{nth}"


def read_retail(path: Path) -> RetailSet | Refused:
    """Read a file, or say everything for which it is none."""
    content = read_file(path, BYTES_MAX)
    if isinstance(content, Unread):
        return Refused((f"{path}: cannot be read: {content.why}",))
    try:
        read = _Retail.model_validate_json(content)
    except ValidationError as error:
        return Refused(tuple(f"{path.name}: {said}" for said in complaints(error.errors(), "the file"))[:_SHOWN_MAX])
    problems = tuple(_problems(read))
    if problems:
        return Refused(problems[:_SHOWN_MAX])
    numbers = _Numbers()
    try:
        cases = case_set(tuple(parse(EvaluationCase, case) for case in _cases(read, numbers)))
    except ValidationError as error:  # a name that only together with ours is too long
        return Refused(tuple(f"{path.name}: {said}" for said in complaints(error.errors(), "a case"))[:_SHOWN_MAX])
    taken = numbers.taken()
    if taken:
        said = (f"order {name} has the number of another's copy; give it another" for name in taken[:_SHOWN_MAX])
        return Refused(tuple(said))
    return RetailSet(cases, _data(content, numbers))


def _data(content: bytes, numbers: _Numbers) -> bytes:
    document = json.loads(content)
    orders = [
        {**order, "order_id": numbered(order["order_id"], nth)}
        for order in document["orders"]
        for nth in range(1, numbers.given[order["order_id"]] + 1)
    ]
    return json.dumps({**document, "orders": orders, "returns": []}).encode()


def lines_of(items: Sequence[str], wanted: Sequence[str]) -> list[str] | None:
    """Name the lines of the wanted items, one for each time that it is wanted; None where the order has too few."""
    left = {f"L{number}": item for number, item in enumerate(items, 1)}
    lines = list[str]()
    for one in wanted:
        line = next((line for line, item in left.items() if item == one), None)
        if line is None:
            return None
        del left[line]
        lines.append(line)
    return lines


def _problems(read: _Retail) -> Iterator[str]:
    orders = {order.order_id: order for order in read.orders}
    twice = [name for name, times in Counter(order.order_id for order in read.orders).items() if times > 1]
    yield from (f"order {name} stands there several times" for name in twice)
    names = Counter(_name(one) for one in read.returns)
    yield from (f"return {name} stands there several times" for name, times in names.items() if times > 1)
    if len({order.user_id for order in read.orders}) < 2:
        yield "all orders are one customer's, so that nobody can ask for another's"
    for one in read.returns:
        order = orders.get(one.order_id)
        if order is None or (order.user_id, order.status) != (one.user_id, "delivered"):
            yield f"return {_name(one)}: {one.user_id} has no delivered order {one.order_id}"
        elif _lines(order, one) is None:
            yield f"return {_name(one)}: the order does not have these items so often"


def _cases(read: _Retail, numbers: _Numbers) -> Iterator[dict[str, Any]]:
    orders = {order.order_id: order for order in read.orders}
    right = [_Right(one, lines) for one in read.returns if (lines := _lines(orders[one.order_id], one)) is not None]
    for one in right:
        yield _alone(one, numbers, "alone", f"others know it to be right: {one.told.refund_usd} dollars go back, once")
    for at, one in enumerate(right):
        again = ("after", "at_once")[at % 2]
        why = f"the same request twice, {again.replace('_', ' ')}: one workflow, one return and one notice for both"
        yield _alone(one, numbers, "twice", why) | {"category": "duplicate", "repeated": again}
    for kind, tools in _STRUCK.items():
        for at, one in enumerate(right):
            if kind is not FaultKind.APPROVAL_EXPIRY or one.by_a_person:
                yield _struck(one, numbers, kind, tools[at % len(tools)])
    customers = sorted({order.user_id for order in read.orders})
    for order in read.orders:
        stranger = customers[(customers.index(order.user_id) + 1) % len(customers)]
        yield _foreign(order, numbers, stranger)
        if order.status != "delivered":
            yield _undelivered(order, numbers)


def _alone(one: _Right, numbers: _Numbers, how: str, why: str) -> dict[str, Any]:
    told, approver = one.told, APPROVER if one.by_a_person else None
    return _case(f"retail-{one.name}-{how}", why, numbers.of(told.order_id), told.user_id, one.lines) | {
        "category": "high_value" if one.by_a_person else "normal",
        "decision": {"by": APPROVER, "verdict": "approve"} if one.by_a_person else None,
        "automatable": not one.by_a_person, "needs_human": one.by_a_person, "has_side_effect": True,
        "expected": _end("COMPLETED", "notice_verified", _WAY, (1, 1), approver=approver),
    }  # fmt: skip


def _struck(one: _Right, numbers: _Numbers, kind: FaultKind, tool: str | None) -> dict[str, Any]:
    where = "" if tool is None else f" at {tool}"
    case = _alone(one, numbers, kind.value, f"{kind.value}{where}: whatever is sent once more, nothing is made twice")
    fault: dict[str, Any] = {"kind": kind.value, "tool": tool, "retries": 0, "told_ja": _SENT}
    approver = case["expected"]["approver"]
    match kind:
        case FaultKind.RATE_LIMITED:  # it proves that nothing was made, and allows one more
            fault["retries"] = 1
            case["expected"] = _end("COMPLETED", "notice_verified", _WAY, (1, 1), approver=approver, more=1)
        case FaultKind.NOTICE_FAILURE:  # the return stays, and a person corrects the recipient
            fault["told_ja"] = _A_PERSON
            case["expected"] = _end("NEEDS_REVIEW", "notice_rejected", _WAY[:3], (1, 0), approver=approver, more=1)
            case |= {"automatable": False, "needs_human": True}
        case FaultKind.APPROVAL_EXPIRY:
            fault["told_ja"] = _EXPIRED
            case["expected"] = _end("EXPIRED", "expired", _WAY[:2], (0, 0))
            case |= {"decision": {"verdict": "nobody"}, "has_side_effect": False}
        case _:
            pass  # what was made is looked up by its key, found and adopted: the same end and no call more
    return case | {"category": "midway_fault", "fault": fault}


def _foreign(order: _Order, numbers: _Numbers, stranger: str) -> dict[str, Any]:
    why = f"row 1: it is {order.user_id}'s, and {stranger} is told what a missing one is told"
    case = _case(f"retail-foreign-{order.order_id}", why, numbers.of(order.order_id), stranger, ["L1"])
    return case | _REFUSED | {
        "category": "foreign_order", "expected": _end("REJECTED", "order_not_found", (), (0, 0), more=1),
    }  # fmt: skip


def _undelivered(order: _Order, numbers: _Numbers) -> dict[str, Any]:
    """The set has no category of its own for them; like a late one, it is refused by a row of the rules."""
    why = f"row 4: the order is {order.status}, and what was not delivered cannot go back"
    case = _case(f"retail-undelivered-{order.order_id}", why, numbers.of(order.order_id), order.user_id, ["L1"])
    return case | _REFUSED | {
        "category": "out_of_period", "expected": _end("REJECTED", "not_returnable", _WAY[:2], (0, 0)),
    }  # fmt: skip


def _case(name: str, why: str, order_id: str, customer: str, lines: Sequence[str]) -> dict[str, Any]:
    request = {
        "order_id": order_id, "customer_id": customer, "reason": "changed_mind", "requested_at": ASKED_AT,
        "lines": [{"line_id": line, "quantity": 1} for line in lines], "message": "I would like to send this back.",
    }  # fmt: skip
    return {"id": name, "why": why, "tenant": TENANT, "request": request, "needs_compensation": False}


def _end(
    state: str, reason: str, path: tuple[str, ...], effects: tuple[int, int], approver: str | None = None, more: int = 0
) -> dict[str, Any]:
    """Say where a case ends; `more` are the attempts that led to nothing."""
    return {
        "state": state, "reason": reason, "path": list(path), "calls_max": len(path) + more, "approver": approver,
        "effects": {"returns": effects[0], "notices": effects[1]}, "compensation": False,
    }  # fmt: skip


def _lines(order: _Order, one: _Return) -> list[str] | None:
    return lines_of([item.item_id for item in order.items], one.item_ids)


def _name(one: _Return) -> str:
    return f"{one.task}-{one.position}"
