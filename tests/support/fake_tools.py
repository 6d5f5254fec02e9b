"""A tool server of the test's own: scripted outcomes per tool, and a record of every request it was sent."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from host.domain.outcome import CallError, Outcome, Rejected, Success, Unknown
from host.engine.parts import Request
from shared_contracts.errors import ERRORS
from shared_contracts.tools import TOOLS

Answer = Callable[[Request], Outcome | Awaitable[Outcome]]
DELIVERED = datetime(2026, 7, 20, tzinfo=UTC)


def failure(code: str, *, retry_after: float | None = None) -> CallError:
    row = ERRORS[code]
    return CallError(code, row.category, row.meaning, retry_after)


def rejected(code: str, *, retry_after: float | None = None, details: dict[str, Any] | None = None) -> Answer:
    error = failure(code, retry_after=retry_after)
    return lambda _request: Rejected(error if details is None else replace(error, details=details))


def unknown(code: str = "timeout") -> Answer:
    return lambda _request: Unknown(failure(code))


def yen(amount: int) -> dict[str, Any]:
    return {"amount": amount, "currency": "JPY"}


@dataclass
class FakeTools:
    """Behaves like an honest shop with one return per key unless a script says otherwise for the next request."""

    refund: int = 3000
    shop: str = ""  # tells the numbers of several shops in one ledger apart
    refunds: dict[str, int] = field(default_factory=dict)  # of single orders
    links: dict[str, Any] = field(default_factory=dict)  # what hangs on every return
    cancelled: dict[str, dict[str, Any]] = field(default_factory=dict)
    script: dict[str, list[Answer | None]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    returns: dict[str, dict[str, Any]] = field(default_factory=dict)
    notices: dict[str, dict[str, Any]] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)
    names: frozenset[str] = frozenset(TOOLS)
    facts: dict[str, Any] = field(default_factory=dict)
    line: dict[str, Any] = field(default_factory=dict)
    executed: list[tuple[str, str]] = field(default_factory=list)

    async def turn(self, tenant_id: str, principal: str) -> None:
        """Nobody waits."""

    def available(self) -> frozenset[str]:
        return self.names

    def sent(self, tool: str) -> int:
        return sum(request.tool.name == tool for request in self.requests)

    async def call(self, request: Request) -> Outcome:
        self.requests.append(request)
        planned = self.script.get(request.tool.name, [])
        answer = planned.pop(0) if planned else None
        if answer is None:
            return self.honest(request)
        said = answer(request)
        return await said if inspect.isawaitable(said) else said

    def then(self, answer: Answer) -> Answer:
        """Do what was asked for, and answer something else: the true answer is lost."""

        def done(request: Request) -> Outcome | Awaitable[Outcome]:
            self.honest(request)
            return answer(request)

        return done

    def honest(self, request: Request) -> Outcome:
        arguments = request.arguments
        match request.tool.name:
            case "get_order":
                return Success(self.order(str(arguments["order_id"])))
            case "check_return_policy":
                return Success(self.policy(arguments))
            case "create_return":
                return self.once(request, self.returns, self.new_return)
            case "get_return":
                found = [r for r in self.returns.values() if r["return_id"] == arguments["return_id"]]
                return Success(found[0]) if found else Rejected(failure("not_found"))
            case "find_return" | "find_notice" as name:
                return Success(self.found(request, self.returns | self.cancelled if "return" in name else self.notices))
            case "get_return_links":
                return Success(self.hanging(arguments))
            case "cancel_return":
                return self.once(request, self.cancelled, self.cancellation)
            case "send_return_notice" | "send_correction_notice":
                return self.once(request, self.notices, self.new_notice)
            case name:
                raise AssertionError(name)

    def but(self, **changes: Any) -> Answer:
        """Do what was asked for, and say something else of it in some fields."""

        def answer(request: Request) -> Outcome:
            honest = self.honest(request)
            return Success({**honest.result, **changes}) if isinstance(honest, Success) else honest

        return answer

    def once(
        self, request: Request, table: dict[str, Any], new: Callable[[Mapping[str, Any]], dict[str, Any]]
    ) -> Outcome:
        """One effect per key; an attempt that a look-up has closed is refused."""
        key = request.idempotency_key
        assert key is not None
        if key not in table:
            if request.attempt <= self.closed.get(key, 0):
                return Rejected(failure("attempt_superseded"))
            table[key] = new(request.arguments)
            self.executed.append((request.tool.name, key))
        return Success(table[key])

    def found(self, request: Request, table: Mapping[str, Any]) -> dict[str, Any]:
        key, attempt = request.idempotency_key, request.attempt
        assert key is not None
        assert attempt is not None
        if key not in table:
            self.closed[key] = attempt
        record = table.get(key)
        closed = self.closed.get(key, 0)
        return {"found": key in table, "record": record, "closed_through": closed, "evidence_ref": f"key://{key}"}

    def order(self, order_id: str) -> dict[str, Any]:
        line = {
            "line_id": "1", "name": "湯のみ", "category": "kitchen", "quantity": 2, "delivered_quantity": 2,
            "delivered_at": DELIVERED.isoformat(), "returned_quantity": 0, "unit_price": yen(3000), "paid": yen(6000),
        }  # fmt: skip
        return {
            "order_id": order_id, "version": 1, "status": "delivered", "ordered_at": DELIVERED.isoformat(),
            "lines": [line], "shipping_fee": yen(0), "discount": yen(0), "paid": yen(6000), "refunded": yen(0),
            "destination_ref": "address://acme/C-1@1", "note": None, "snapshot": "2026-07-30T00:00:00+09:00",
            "evidence_ref": f"order://{order_id}@1",
        }  # fmt: skip

    def amount(self, order_id: str) -> dict[str, Any]:
        return yen(self.refunds.get(order_id, self.refund))

    def hanging(self, about: Mapping[str, Any]) -> dict[str, Any]:
        free = {"label_used": False, "inventory_entries": [], "accounting_entries": []}
        return {**about, **free, **self.links, "evidence_ref": f"links://{about['return_id']}"}

    def cancellation(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        record = next(r for r in self.returns.values() if r["return_id"] == arguments["return_id"])
        record["status"] = "cancelled"
        return record

    def policy(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        amount = self.amount(arguments["order_id"])
        lines = [
            {
                "line_id": line["line_id"], "requested": line["quantity"], "known": True, "left": 2, "delivered": 2,
                "delivered_at": DELIVERED.isoformat(), "window_ends_at": (DELIVERED + timedelta(days=31)).isoformat(),
                "category_known": True, "rules_conflict": False, "dangerous": False, "final_sale": False,
                "refund": amount, **self.line,
            }
            for line in arguments["lines"]
        ]  # fmt: skip
        facts = {
            "order_status": "delivered", "reason": arguments["reason"], "requested_at": "2026-07-25T00:00:00Z",
            "lines": lines, "return_fee": yen(0), "shipping_refund": yen(0), "refund": amount,
            "other_returns": yen(0), "earlier_returns": [], "approval_threshold": yen(50_000), **self.facts,
        }  # fmt: skip
        return {
            "order_id": arguments["order_id"], "rule_version": "policy-v12", "rule_owner": "returns-desk",
            "order_version": 1, "snapshot": "2026-07-30T00:00:00+09:00", "facts": facts,
            "evidence_ref": "policy://policy-v12",
        }  # fmt: skip

    def new_return(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        number = f"R-{self.shop}{len(self.returns) + 1}"
        refund = self.amount(arguments["order_id"])
        lines = [{**line, "refund": refund} for line in arguments["lines"]]
        return {
            "return_id": number, "order_id": arguments["order_id"], "status": "created", "lines": lines,
            "reason": arguments["reason"], "refund": refund, "created_at": "2026-07-30T00:00:00Z",
            "rule_version": "policy-v12", "order_version": 1, "evidence_ref": f"return://{number}@1",
        }  # fmt: skip

    def new_notice(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        number = f"<n{self.shop}{len(self.notices) + 1}@shop.example>"
        return {
            "message_id": number, "order_id": arguments["order_id"], "return_id": arguments["return_id"],
            "kind": "correction" if "corrects" in arguments else "return", "corrects": arguments.get("corrects"),
            "status": "sent", "channel": "maildir",
            "destination_ref": "customer://C-1@1", "sent_at": "2026-07-30T00:00:00Z",
            "evidence_ref": f"notice://n{len(self.notices) + 1}@1",
        }  # fmt: skip
