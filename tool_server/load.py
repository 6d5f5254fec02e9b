"""Loads a seed file: all of it or nothing, and a second time the same file changes nothing.

Invariant: a policy version never changes; an order changes only with a higher version; returns that were made
stay. A file that asks for anything else is refused, with its places named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import AsyncConnection
from pydantic import ValidationError

from shared_contracts.base import dump
from shared_contracts.digest import digest
from shared_contracts.named_file import Unread, read_file
from shared_contracts.returns import ReturnStatus
from shared_contracts.told import place
from tool_server.errors import ToolServerError
from tool_server.load_checks import against_order, against_policies, against_returns, content_of_policy, refusal
from tool_server.seed import Seed, SeedOrder, SeedPolicy
from tool_server.seed_amounts import Rules, Settled, paid_by_line, settle_returns
from tool_server.seed_checks import Problem, check, total
from tool_server.store import seed as store

FILE_BYTES_MAX = 128 * 2**20  # some hundred thousand orders; more come in several files
_CHUNK = 2_000  # orders per statement
_SHOWN_MAX = 20  # problems; more would hide the first


class SeedError(ToolServerError):
    """The file cannot be loaded; `problems` says where and why, `file` in which of those that were named."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem], file: Path | None = None) -> None:
        self.problems = tuple(problems)
        shown = [str(problem) for problem in self.problems[:_SHOWN_MAX]]
        more = len(self.problems) - len(shown)
        head = [] if file is None else [f"{file} cannot be loaded, and nothing of it was:"]
        super().__init__("\n".join([*head, *shown, *([f"… and {more} more"] if more > 0 else [])]))


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load changed, in rows."""

    policies: int
    orders_new: int
    orders_updated: int
    orders_unchanged: int
    returns: int
    recipients: int

    def __str__(self) -> str:
        return (
            f"orders: {self.orders_new} new, {self.orders_updated} updated, {self.orders_unchanged} unchanged; "
            f"policy versions: {self.policies} new; returns: {self.returns} new; recipients: {self.recipients} changed"
        )


def content_of(path: Path) -> bytes:
    """Read a file of any family's data; raises SeedError."""
    content = read_file(path, FILE_BYTES_MAX)
    if isinstance(content, Unread):
        raise SeedError([Problem(str(path), f"cannot be read: {content.why}")])
    return content


def read_seed(path: Path) -> Seed:
    """Read and check a file; raises SeedError with every problem found."""
    return parse_seed(content_of(path))


def misread(error: ValidationError) -> SeedError:
    """Name each place that does not hold what it should; what stands there is not repeated."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return SeedError([Problem(place(one["loc"]) or "the file", one["msg"]) for one in found])


def parse_seed(content: bytes) -> Seed:
    """Check a file's content; raises SeedError with every problem found."""
    try:
        seed = Seed.model_validate_json(content)
    except ValidationError as error:
        raise misread(error) from None
    problems = list(check(seed))
    if problems:
        raise SeedError(problems)
    return seed


async def load(dsn: str, seed: Seed) -> Loaded:
    """Load a checked file as the owner; raises SeedError, psycopg.OperationalError."""
    async with await AsyncConnection.connect(dsn, autocommit=False) as connection:
        await connection.execute("SET LOCAL TimeZone = 'UTC'")
        try:
            policies = await _policies(connection, seed)
            rules = [Rules(*row) for row in await store.rules_of_returns(connection)]
            counts = [await _orders(connection, seed.snapshot, rules, part) for part in _chunks(seed.orders)]
            recipients = await store.put(connection, "put_recipients", [dump(person) for person in seed.recipients])
        except psycopg.errors.IntegrityError as error:
            raise SeedError([refusal(error)]) from error
    new, updated, unchanged, returns = (sum(column) for column in zip((0, 0, 0, 0), *counts, strict=True))
    return Loaded(policies, new, updated, unchanged, returns, recipients)


async def _policies(connection: AsyncConnection, seed: Seed) -> int:
    known = await store.known_policies(connection)
    _refuse(against_policies(seed.policies, known))
    fresh = [policy for policy in seed.policies if policy.version not in known]
    await store.put(connection, "insert_versions", [_version_row(policy) for policy in fresh])
    await store.put(
        connection,
        "insert_rules",
        [{"version": policy.version, **dump(rule)} for policy in fresh for rule in policy.rules],
    )
    await store.put(connection, "insert_amounts", [row for policy in fresh for row in _amount_rows(policy)])
    return len(fresh)


async def _orders(
    connection: AsyncConnection, snapshot: str, rules: Sequence[Rules], orders: Sequence[SeedOrder]
) -> tuple[int, int, int, int]:
    keys = [{"tenant_id": order.tenant_id, "order_id": order.order_id} for order in orders]
    known = {(row.tenant_id, row.order_id): row for row in await store.lock_orders(connection, keys)}
    _refuse(found for order in orders for found in against_order(order, known.get((order.tenant_id, order.order_id))))
    fresh = [order for order in orders if (order.tenant_id, order.order_id) not in known]
    numbers = [{"tenant_id": order.tenant_id, "return_id": made.return_id} for order in fresh for made in order.returns]
    _refuse(against_returns(fresh, await store.taken_returns(connection, numbers)))
    changed = [
        order
        for order in orders
        if (row := known.get((order.tenant_id, order.order_id))) is not None and row.version < order.version
    ]
    await _put_orders(connection, snapshot, [*fresh, *changed])
    returns = [(order, settled) for order in fresh for settled in _settled(order, rules)]
    await _put_returns(connection, returns)
    await store.put(connection, "mark_snapshot", keys, snapshot=snapshot)
    return len(fresh), len(changed), len(orders) - len(fresh) - len(changed), len(returns)


def _refuse(problems: Iterable[Problem]) -> None:
    found = list(problems)
    if found:
        raise SeedError(found)


def _settled(order: SeedOrder, rules: Sequence[Rules]) -> list[Settled]:
    try:
        return settle_returns(order, rules)
    except LookupError as error:
        what = f"no policy version was in effect when {error.args[0]} was made; load one that was"
        raise SeedError([Problem(f"order {order.tenant_id}/{order.order_id}", what)]) from None


async def _put_orders(connection: AsyncConnection, snapshot: str, orders: Sequence[SeedOrder]) -> None:
    rows = [_order_row(order, snapshot) for order in orders]
    lines = [row for order in orders for row in _line_rows(order)]
    for name, put in (
        ("put_orders", rows), ("put_lines", lines), ("put_order_counters", rows), ("put_line_counters", lines),
    ):  # fmt: skip
        await store.put(connection, name, put)


async def _put_returns(connection: AsyncConnection, returns: Sequence[tuple[SeedOrder, Settled]]) -> None:
    """Put in what was cancelled first, an order's one after the other: none of it holds a unit for the next."""
    rounds: dict[int, list[tuple[SeedOrder, Settled]]] = {}
    turns: Counter[tuple[str, str]] = Counter()
    for order, settled in returns:
        if settled.made.status is ReturnStatus.CANCELLED:
            key = (order.tenant_id, order.order_id)
            rounds.setdefault(turns[key], []).append((order, settled))
            turns[key] += 1
    for some in rounds.values():
        await store.put(connection, "insert_cancellations", await _put_some_returns(connection, some))
    await _put_some_returns(connection, [one for one in returns if one[1].made.status is not ReturnStatus.CANCELLED])


async def _put_some_returns(
    connection: AsyncConnection, returns: Sequence[tuple[SeedOrder, Settled]]
) -> list[dict[str, Any]]:
    rows = [_return_row(order, settled) for order, settled in returns]
    await store.put(connection, "insert_returns", rows)
    lines = [row for order, settled in returns for row in _return_line_rows(order, settled)]
    await store.put(connection, "insert_return_lines", lines)
    return rows


def _version_row(policy: SeedPolicy) -> dict[str, Any]:
    row = dump(policy)
    names = ("version", "tenant_id", "owner", "effective_from", "effective_until", "zone")
    return {name: row[name] for name in names} | {"content_sha256": content_of_policy(policy)}


def _amount_rows(policy: SeedPolicy) -> Iterator[dict[str, Any]]:
    for kind, amounts in (("approval_threshold", policy.approval_thresholds), ("return_fee", policy.return_fees)):
        for amount in amounts:
            yield {"version": policy.version, "kind": kind, **dump(amount)}


def _order_row(order: SeedOrder, snapshot: str) -> dict[str, Any]:
    row = dump(order)
    content = digest(row)
    del row["lines"], row["returns"]
    return row | {"paid": total(order), "snapshot": snapshot, "content_sha256": content}


def _line_rows(order: SeedOrder) -> Iterator[dict[str, Any]]:
    paid = paid_by_line(order)
    for at, line in enumerate(order.lines, start=1):
        yield {
            **dump(line), "tenant_id": order.tenant_id, "order_id": order.order_id, "line_no": at,
            "paid": paid[line.line_id],
        }  # fmt: skip


def _return_row(order: SeedOrder, settled: Settled) -> dict[str, Any]:
    """Amounts of a rejected return are nothing: it gave nothing back."""
    made, facts = settled.made, settled.facts
    stood = made.status is not ReturnStatus.REJECTED
    return {
        "tenant_id": order.tenant_id,
        "return_id": made.return_id,
        "order_id": order.order_id,
        "customer_id": order.customer_id,
        "status": "created" if stood else "rejected",
        "reason": made.reason.value,
        "currency": order.currency,
        "refund": facts.refund.amount if stood else 0,
        "shipping_refund": facts.shipping_refund.amount if stood else 0,
        "return_fee": facts.return_fee.amount if stood else 0,
        "rule_version": settled.rule_version,
        "order_version": order.version,
        "created_at": made.created_at.isoformat(),
    }


def _return_line_rows(order: SeedOrder, settled: Settled) -> Iterator[dict[str, Any]]:
    stood = settled.made.status is not ReturnStatus.REJECTED
    for line in settled.facts.lines:
        yield {
            "tenant_id": order.tenant_id, "order_id": order.order_id, "return_id": settled.made.return_id,
            "line_id": line.line_id, "quantity": line.requested, "refund": line.refund.amount if stood else 0,
        }  # fmt: skip


def _chunks(orders: Sequence[SeedOrder]) -> Iterator[Sequence[SeedOrder]]:
    for start in range(0, len(orders), _CHUNK):
        yield orders[start : start + _CHUNK]
