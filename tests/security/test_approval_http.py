"""An approval on the whole server: real HTTP, real tokens, a real database, and a sender who holds a genuine token."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from shared_contracts.approval import Action, Void, sign
from shared_contracts.digest import digest
from shared_contracts.errors import ERROR_META
from shared_contracts.log_limit import MANY, LogLimit
from tests.support.server import LEGACY, MODERN, Server, message_of, running
from tests.support.tokens import DROP
from tests.support.tool_approvals import VERSION, Person, action_now, trusted
from tests.support.tool_orders import ASKED_AT, line, order
from tests.support.tool_shop import Shop, open_shop
from tool_server.dispatch import Dispatcher

ERAS = pytest.mark.parametrize("era", [MODERN, LEGACY])
ONE: dict[str, Any] = {"order_id": "A-1", "lines": [{"line_id": "L1", "quantity": 1}], "reason": "changed_mind"}
TANAKA, STRANGER = Person.named("tanaka"), Person.named("tanaka")


@dataclass(frozen=True)
class Desk:
    """The server, the shop behind it, and the action that would be approved."""

    server: Server
    shop: Shop
    action: Action

    def signs(self, person: Person = TANAKA, **differs: Any) -> str:
        return person.signs(self.action, **({"workflow_id": "task-1", "subject": "clerk-1"} | differs))

    def token(self, approval: Any, *, name: str = "create_return", arguments: Any = ONE, **details: Any) -> str:
        bound = {
            "tool": name, "resource": arguments["order_id"], "arguments_sha256": digest(arguments),
            "requested_at": ASKED_AT.isoformat(), "approval": approval, "approved_version": VERSION,
        }  # fmt: skip
        return self.server.issuer.token(tenant_id="acme", details={**bound, **details})

    def ask(self, token: str, era: str = MODERN, arguments: Any = ONE, **more: Any) -> dict[str, Any]:
        """The result, or the error's body; anything but an answer of the tool fails."""
        response = self.server.call("create_return", arguments, token=token, era=era, **more)
        assert response.status_code == 200, response.text
        result = message_of(response)["result"]
        return dict(result["_meta"][ERROR_META] if result.get("isError") else result["structuredContent"])

    def returns(self) -> int:
        return int(self.shop.one("SELECT count(*) FROM returns.returns"))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    shop = open_shop(tmp_path, order("A-1", line(price=60_000, quantity=3)))
    asyncio.run(trusted(shop, TANAKA))
    action = shop.run(lambda tools: action_now(tools, ONE))
    with running(Dispatcher(shop.settings), tmp_path / "keys") as server:
        yield Desk(server, shop, action)


@ERAS
def test_a_persons_yes_makes_the_return_and_nothing_else_of_the_same_token_does(desk, era):
    assert desk.ask(desk.token(DROP, approved_version=DROP), era)["code"] == "approval_required"
    assert desk.returns() == 0
    approval = desk.signs()
    first = desk.ask(desk.token(approval), era)
    assert first["status"] == "created"
    assert desk.ask(desk.token(approval, attempt=2), era) == first
    assert desk.ask(desk.token(approval, idempotency_key="shop-1:task-2:step"), era)["details"] == {"reason": Void.USED}
    assert desk.returns() == 1


@ERAS
@pytest.mark.parametrize(
    ("reason", "differs"),
    [
        (Void.DENIED, {"decision": "deny"}),
        (Void.OTHER_WORKFLOW, {"workflow_id": "task-2"}),
        (Void.OTHER_VERSION, {"version": VERSION - 1}),
        (Void.OTHER_REQUESTER, {"subject": "clerk-2"}),
        (Void.OTHER_TENANT, {"tenant_id": "shop-1"}),
        (Void.UNKNOWN_KEY, {"person": STRANGER}),
    ],
)
def test_a_genuine_token_with_a_void_approval_is_refused_with_its_reason(desk, era, reason, differs):
    error = desk.ask(desk.token(desk.signs(**differs)), era)
    assert (error["code"], error["details"]) == ("approval_refused", {"reason": reason})
    assert (error["retryable"], error["outcome_known"]) == (False, True)
    assert desk.returns() == 0


def test_many_void_approvals_call_an_operator_and_hold_back_no_right_one(desk):
    with capture_logs() as lines:
        for n in range(50):
            token = desk.token(desk.signs(STRANGER), idempotency_key=f"shop-1:task-{n}:step")
            assert desk.ask(token)["details"] == {"reason": Void.UNKNOWN_KEY}
        assert desk.returns() == 0
        assert desk.ask(desk.token(desk.signs()))["status"] == "created"
    said = [line for line in lines if line["event"] == "approval_refused"]
    assert [(line["reason"], line["log_level"]) for line in said] == [(Void.UNKNOWN_KEY, "warning")] * 50
    kept = map(LogLimit().written, said)
    assert [line["event"] for line in kept if line is not None] == ["approval_refused"] * (MANY - 1) + ["many_alike"]
    logged = "SELECT outcome, count(*) FROM calls.log WHERE tool = 'create_return' GROUP BY 1 ORDER BY 1"
    assert desk.shop.rows(logged) == [("approval_refused", 50), ("ok", 1)]


def test_a_destination_that_changed_since_is_told_to_whoever_may_ask_again(desk):
    approval = desk.signs()
    desk.shop.rows("UPDATE orders.orders SET destination_ref = 'address://acme/C-1@2'")
    error = desk.ask(desk.token(approval))
    assert (error["code"], error["details"]["reason"]) == ("approval_refused", Void.OTHER_ACTION)
    assert error["details"]["action"]["destination_ref"] == "address://acme/C-1@2"
    assert desk.returns() == 0


def test_the_hosts_own_signature_is_no_approval(desk):
    event = TANAKA.event(desk.action, workflow_id="task-1", subject="clerk-1")
    for kid in (desk.server.issuer.kid, TANAKA.kid):
        error = desk.ask(desk.token(sign(event, desk.server.issuer.private, kid)))
        assert error["details"]["reason"] in {Void.UNKNOWN_KEY, Void.BAD_SIGNATURE}
    assert desk.returns() == 0
