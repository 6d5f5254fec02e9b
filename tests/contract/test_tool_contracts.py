"""The contract tests of every write tool, taken from its row: over the real dispatcher and a real database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from shared_contracts.contract import Scope, Tool
from shared_contracts.errors import ERRORS
from shared_contracts.tools import TOOLS
from tests.support.tool_orders import line, order, recipient
from tests.support.tool_prepared import ORDER, RETURN, effects_of, made_return, prepared
from tests.support.tool_shop import Shop, ask, caller, code_of, given, open_shop, until
from tool_server.call import Answer, Answered
from tool_server.dispatch import Dispatcher
from tool_server.validation import fault_of_output

WRITES = [pytest.param(tool, id=tool.name) for tool in TOOLS.values() if tool.writes]
Forbidding: TypeAlias = Callable[[Shop, Dispatcher], Awaitable[Answer]]
NOBODY_LISTENS = {"smtp_host": "127.0.0.1", "smtp_port": 1, "smtp_tls": "none", "mail_from": "returns@shop.example"}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return open_shop(tmp_path, order("A-1", line("L1", quantity=4)))


@pytest.mark.parametrize("tool", WRITES)
def test_a_good_call_answers_with_its_evidence_and_is_found_by_its_key(shop: Shop, tool: Tool) -> None:
    async def scene(tools: Dispatcher) -> tuple[Answer, dict[str, Any]]:
        arguments = await prepared(tools, tool)
        answer = await ask(tools, tool.name, arguments, key="K")
        return answer, given(await ask(tools, tool.reconcile_with, ORDER, key="K"))

    answer, found = shop.run(scene)
    result = given(answer)
    assert tool.succeeded(result)
    assert all(result[name] for name in tool.evidence)
    assert fault_of_output(tool, result) is None
    assert found["found"]
    assert found["record"][tool.external_id] == result[tool.external_id]
    assert effects_of(shop, "K") == 1


@pytest.mark.parametrize("tool", WRITES)
def test_an_undeclared_member_is_refused_before_anything_happens(shop: Shop, tool: Tool) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        arguments = await prepared(tools, tool) | {"bank_account": "0001"}
        return await ask(tools, tool.name, arguments, key="K")

    assert code_of(shop.run(scene)) == "invalid_arguments"
    assert effects_of(shop, "K") == 0


@pytest.mark.parametrize("tool", WRITES)
def test_a_principal_who_may_only_read_changes_nothing(shop: Shop, tool: Tool) -> None:
    reading = " ".join(scope.value for scope in Scope if scope.value.endswith(":read"))

    async def scene(tools: Dispatcher) -> Answer:
        return await ask(tools, tool.name, await prepared(tools, tool), key="K", scope=reading)

    assert code_of(shop.run(scene)) == "scope_missing"
    assert effects_of(shop, "K") == 0


@pytest.mark.parametrize("tool", WRITES)
def test_the_same_intention_twice_is_one_effect_and_one_answer(shop: Shop, tool: Tool) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        arguments = await prepared(tools, tool)
        return [await ask(tools, tool.name, arguments, key="K", attempt=attempt) for attempt in (1, 2)]

    first, second = shop.run(scene)
    assert given(first) == given(second)
    assert effects_of(shop, "K") == 1


@pytest.mark.parametrize("tool", WRITES)
def test_an_answer_that_was_lost_is_looked_up_and_nothing_is_made_again(shop: Shop, tool: Tool) -> None:
    async def scene(tools: Dispatcher) -> tuple[dict[str, Any], Answer]:
        arguments = await prepared(tools, tool)
        call = asyncio.create_task(ask(tools, tool.name, arguments, key="K"))
        await until(lambda: shop.one("SELECT count(*) FROM calls.key WHERE idempotency_key = 'K'") == 1)
        call.cancel()  # the caller leaves while the call is being worked on, or just after
        await asyncio.wait([call])
        await until(
            lambda: shop.one("SELECT count(*) FROM calls.log WHERE idempotency_key = 'K' AND outcome = 'ok'") == 1
        )
        found = given(await ask(tools, tool.reconcile_with, ORDER, key="K"))
        return found, await ask(tools, tool.name, arguments, key="K", attempt=2)

    found, again = shop.run(scene)
    assert found["found"]
    assert given(again)[tool.external_id] == found["record"][tool.external_id]
    assert effects_of(shop, "K") == 1


@pytest.mark.parametrize("tool", WRITES)
def test_a_call_that_was_proved_absent_can_arrive_late_and_does_nothing(shop: Shop, tool: Tool) -> None:
    async def scene(tools: Dispatcher) -> tuple[dict[str, Any], Answer, Answer]:
        arguments = await prepared(tools, tool)
        held = caller(tool.name, arguments, idempotency_key="K", attempt=1)
        absent = given(await ask(tools, tool.reconcile_with, ORDER, key="K", attempt=1))
        late = await tools.dispatch(held, tool.name, arguments)
        return absent, late, await ask(tools, tool.name, arguments, key="K", attempt=2)

    absent, late, resent = shop.run(scene)
    assert (absent["found"], absent["record"], absent["closed_through"]) == (False, None, 1)
    assert code_of(late) == "attempt_superseded"
    assert tool.succeeded(given(resent))
    assert effects_of(shop, "K") == 1


async def _cancelled_since(shop: Shop, tools: Dispatcher) -> Answer:
    number = await made_return(tools, key="K")
    given(await ask(tools, "cancel_return", {**ORDER, "return_id": number}, key="other"))
    return await ask(tools, "create_return", {**ORDER, **RETURN}, key="K", attempt=2)


async def _label_used(shop: Shop, tools: Dispatcher) -> Answer:
    number = await made_return(tools)
    use_label(shop, number)
    return await ask(tools, "cancel_return", {**ORDER, "return_id": number}, key="K")


async def _queued(shop: Shop, tools: Dispatcher) -> Answer:
    return await ask(tools, "send_return_notice", {**ORDER, "return_id": await made_return(tools)}, key="K")


async def _queued_correction(shop: Shop, tools: Dispatcher) -> Answer:
    number = await made_return(tools)
    queued = given(await ask(tools, "send_return_notice", {**ORDER, "return_id": number}, key="notice"))
    shop.rows("UPDATE notices.outbox SET status = 'sending'")
    shop.rows("UPDATE notices.outbox SET status = 'sent', sent_at = clock_now()")
    arguments = {**ORDER, "return_id": number, "corrects": queued["message_id"]}
    return await ask(tools, "send_correction_notice", arguments, key="K")


UNMET: dict[str, Forbidding] = {
    "create_return": _cancelled_since,
    "cancel_return": _label_used,
    "send_return_notice": _queued,
    "send_correction_notice": _queued_correction,
}


@pytest.mark.parametrize("tool", WRITES)
def test_an_answer_that_does_not_meet_its_condition_is_no_success(tmp_path: Path, tool: Tool) -> None:
    shop = open_shop(tmp_path, order("A-1", line("L1", quantity=4)), settings=NOBODY_LISTENS)
    answer = shop.run(lambda tools: UNMET[tool.name](shop, tools))
    assert not (isinstance(answer, Answered) and tool.succeeded(answer.result))
    assert isinstance(answer, Answered) or ERRORS[answer.code].outcome_known
    assert tool.success_when is not None
    assert not tool.succeeded({tool.success_when.field: "rejected"})


def use_label(shop: Shop, return_id: str) -> None:
    shop.rows(
        "INSERT INTO returns.links (tenant_id, return_id, kind, reference) VALUES ('acme', %s, 'label_used', %s)",
        return_id, f"label://{return_id}",
    )  # fmt: skip


async def _not_eligible(_shop: Shop, tools: Dispatcher) -> Answer:
    return await ask(tools, "create_return", {"order_id": "A-late", **RETURN}, key="K")


async def _quantity_gone(_shop: Shop, tools: Dispatcher) -> Answer:
    lines = [{"line_id": "L1", "quantity": 5}]
    return await ask(tools, "create_return", {**ORDER, **RETURN, "lines": lines}, key="K")


async def _approval_required(_shop: Shop, tools: Dispatcher) -> Answer:
    return await ask(tools, "create_return", {"order_id": "A-dear", **RETURN}, key="K")


async def _approval_refused(_shop: Shop, tools: Dispatcher) -> Answer:
    arguments = {"order_id": "A-dear", **RETURN}
    return await ask(tools, "create_return", arguments, key="K", approval="approved", approved_version=9)


async def _no_such_return(_shop: Shop, tools: Dispatcher) -> Answer:
    return await ask(tools, "send_return_notice", {**ORDER, "return_id": "R-0"}, key="K")


async def _nothing_to_correct(_shop: Shop, tools: Dispatcher) -> Answer:
    arguments = {**ORDER, "return_id": await made_return(tools), "corrects": "<never@shop.example>"}
    return await ask(tools, "send_correction_notice", arguments, key="K")


async def _no_address(_shop: Shop, tools: Dispatcher) -> Answer:
    order_id = {"order_id": "A-mute"}
    made = given(await ask(tools, "create_return", {**order_id, **RETURN}, key="R", customer="C-mute"))
    arguments = {**order_id, "return_id": made["return_id"]}
    return await ask(tools, "send_return_notice", arguments, key="K", customer="C-mute")


async def _no_address_to_correct(shop: Shop, tools: Dispatcher) -> Answer:
    number = await made_return(tools)
    sent = given(await ask(tools, "send_return_notice", {**ORDER, "return_id": number}, key="notice"))
    shop.rows("DELETE FROM notices.recipients WHERE customer_id = 'C-1'")
    arguments = {**ORDER, "return_id": number, "corrects": sent["message_id"]}
    return await ask(tools, "send_correction_notice", arguments, key="K")


FORBIDDEN: dict[tuple[str, str], Forbidding] = {
    ("create_return", "not_eligible"): _not_eligible,
    ("create_return", "quantity_gone"): _quantity_gone,
    ("create_return", "approval_required"): _approval_required,
    ("create_return", "approval_refused"): _approval_refused,
    ("cancel_return", "label_used"): _label_used,
    ("send_return_notice", "not_found"): _no_such_return,
    ("send_return_notice", "notice_rejected"): _no_address,
    ("send_correction_notice", "not_found"): _nothing_to_correct,
    ("send_correction_notice", "notice_rejected"): _no_address_to_correct,
}


def test_every_condition_that_a_row_forbids_has_its_scene() -> None:
    assert set(FORBIDDEN) == {(tool.name, code) for tool in TOOLS.values() for code in tool.forbidden_when}
    assert set(UNMET) == {tool.name for tool in TOOLS.values() if tool.writes}


@pytest.mark.parametrize(("name", "code"), FORBIDDEN, ids=str)
def test_what_a_row_forbids_is_refused_with_its_code_and_spends_nothing(tmp_path: Path, name: str, code: str) -> None:
    late = line("L1", delivered_at="2026-05-01T10:00:00+09:00")
    shop = open_shop(
        tmp_path,
        order("A-1", line("L1", quantity=4)), order("A-late", late), order("A-dear", line("L1", price=50_500)),
        order("A-mute", customer_id="C-mute"),
        recipients=[recipient("C-1")],
    )  # fmt: skip
    answer = shop.run(lambda tools: FORBIDDEN[name, code](shop, tools))
    assert code_of(answer) == code
    assert effects_of(shop, "K") == 0
    assert shop.one("SELECT count(*) FROM calls.key WHERE idempotency_key = 'K'") == 0
    refused = shop.rows("SELECT outcome, tool, jti FROM calls.log WHERE idempotency_key = 'K'")
    assert [row[:2] for row in refused] == [(code, name)]
    assert shop.one("SELECT count(*) FROM calls.token_used WHERE jti = %s", refused[0][2]) == 0
