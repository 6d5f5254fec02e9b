"""One key, one intention: replays, reuse, closed attempts, and what a rollback gives back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from shared_contracts.contract import Tool
from shared_contracts.tools import TOOLS
from tests.support.tool_orders import line, order
from tests.support.tool_prepared import ORDER, RETURN, effects_of, made_return, prepared, sent_notice
from tests.support.tool_shop import HOLD_A1, Shop, ask, caller, code_of, given, open_shop, until
from tool_server.call import Answer
from tool_server.dispatch import Dispatcher

TWO = [{"line_id": "L1", "quantity": 2}]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return open_shop(tmp_path, order("A-1", line("L1", quantity=9), line("L2")), order("A-2", line("L1")))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("create_return", {**ORDER, **RETURN, "lines": TWO}),
        ("create_return", {**ORDER, **RETURN, "reason": "other"}),
        ("create_return", {**RETURN, "order_id": "A-2"}),
        ("cancel_return", {**ORDER, "return_id": "R-1"}),
    ],
)
def test_a_key_that_acted_is_refused_for_anything_else(shop: Shop, name: str, arguments: dict[str, Any]) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        await made_return(tools, key="K")
        return await ask(tools, name, arguments, key="K")

    assert code_of(shop.run(scene)) == "key_reused"
    assert effects_of(shop, "K") == 1


def test_a_key_of_a_return_sends_no_notice(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        return await ask(
            tools, "send_return_notice", {**ORDER, "return_id": await made_return(tools, key="K")}, key="K"
        )

    assert code_of(shop.run(scene)) == "key_reused"
    assert shop.mails() == []


def test_members_in_another_order_are_the_same_request(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        there = {**ORDER, "lines": [{"line_id": "L1", "quantity": 1}], "reason": "other"}
        back = {"reason": "other", "lines": [{"quantity": 1, "line_id": "L1"}], **ORDER}
        return [await ask(tools, "create_return", arguments, key="K") for arguments in (there, back)]

    first, second = shop.run(scene)
    assert given(first) == given(second)


def test_two_tenants_may_use_one_key(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"), order("A-1", tenant_id="other"))

    async def scene(tools: Dispatcher) -> set[str]:
        arguments = {**ORDER, **RETURN}
        return {
            given(await ask(tools, "create_return", arguments, key="K", tenant=tenant))["return_id"]
            for tenant in ("acme", "other")
        }

    assert len(shop.run(scene)) == 2


def test_a_replay_tells_of_the_effect_as_it_stands(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        number = await made_return(tools, key="K")
        given(await ask(tools, "cancel_return", {**ORDER, "return_id": number}, key="C"))
        return await ask(tools, "create_return", {**ORDER, **RETURN}, key="K", attempt=2)

    assert given(shop.run(scene))["status"] == "cancelled"
    assert effects_of(shop, "K") == 1


def test_a_sent_notice_is_replayed_even_after_its_return_was_cancelled(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> tuple[str, Answer]:
        number = await made_return(tools)
        sent = await sent_notice(tools, number, key="K")
        given(await ask(tools, "cancel_return", {**ORDER, "return_id": number}, key="C"))
        return sent, await ask(tools, "send_return_notice", {**ORDER, "return_id": number}, key="K")

    sent, again = shop.run(scene)
    assert given(again)["message_id"] == sent
    assert len(shop.mails()) == 1


@pytest.mark.parametrize("tool", [pytest.param(tool, id=tool.name) for tool in TOOLS.values() if tool.writes])
def test_a_token_acts_once_and_a_second_use_leaves_the_outcome_to_a_look_up(shop: Shop, tool: Tool) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        arguments = await prepared(tools, tool)
        return [await ask(tools, tool.name, arguments, key=key, jti="once") for key in ("K", "K", "L")]

    first, *others = shop.run(scene)
    given(first)
    assert [code_of(other) for other in others] == ["token_used"] * 2
    assert (effects_of(shop, "K"), effects_of(shop, "L")) == (1, 0)


def test_a_refusal_frees_the_key_and_the_token(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        too_many = {**ORDER, **RETURN, "lines": [{"line_id": "L2", "quantity": 2}]}
        refused = await ask(tools, "create_return", too_many, key="K", jti="same")
        return [refused, await ask(tools, "create_return", {**ORDER, **RETURN}, key="K", jti="same")]

    refused, made = shop.run(scene)
    assert code_of(refused) == "quantity_gone"
    assert given(made)["status"] == "created"


def test_a_request_that_is_held_while_its_key_is_looked_up_is_refused_when_it_is_released(shop: Shop) -> None:
    """The request is inside the server, before its key's lock: the look-up holds that lock and has the last word."""
    arguments = {**ORDER, **RETURN}

    async def scene(tools: Dispatcher) -> tuple[dict[str, Any], Answer, Answer]:
        async with await psycopg.AsyncConnection.connect(shop.database.admin) as holder:
            await holder.execute('SELECT calls.lock_key(\'{"tenant": "acme", "key": "K"}\')')
            look_up = asyncio.create_task(ask(tools, "find_return", ORDER, key="K", attempt=1))
            await until(lambda: waiting(shop) == 1)
            held = asyncio.create_task(ask(tools, "create_return", arguments, key="K", attempt=1))
            await until(lambda: waiting(shop) == 2)
        return given(await look_up), await held, await ask(tools, "create_return", arguments, key="K", attempt=2)

    absent, late, resent = shop.run(scene)
    assert (absent["found"], absent["closed_through"]) == (False, 1)
    assert code_of(late) == "attempt_superseded"
    assert given(resent)["status"] == "created"
    assert effects_of(shop, "K") == 1


def waiting(shop: Shop) -> int:
    return int(shop.one("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))


def test_a_look_up_that_comes_second_finds_what_the_first_made(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> dict[str, Any]:
        async with await psycopg.AsyncConnection.connect(shop.database.admin) as holder:
            await holder.execute(HOLD_A1)
            writing = asyncio.create_task(ask(tools, "create_return", {**ORDER, **RETURN}, key="K"))
            await until(lambda: shop.one("SELECT count(*) FROM pg_locks WHERE NOT granted") == 1)
            look_up = asyncio.create_task(ask(tools, "find_return", ORDER, key="K"))
            await until(lambda: waiting(shop) == 1)
        given(await writing)
        return given(await look_up)

    assert shop.run(scene)["found"]


def test_attempts_above_the_closed_one_still_act(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        closed = [given(await ask(tools, "find_return", ORDER, key="K", attempt=at))["closed_through"] for at in (3, 1)]
        assert closed == [3, 3]
        arguments = {**ORDER, **RETURN}
        return [await ask(tools, "create_return", arguments, key="K", attempt=attempt) for attempt in (2, 3, 4)]

    second, third, fourth = shop.run(scene)
    assert (code_of(second), code_of(third)) == ("attempt_superseded", "attempt_superseded")
    assert given(fourth)["status"] == "created"


def test_the_key_of_a_cancellation_finds_its_return_only_once_it_cancelled(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[dict[str, Any]]:
        number = await made_return(tools)
        before = given(await ask(tools, "find_return", ORDER, key="K", attempt=1))
        given(await ask(tools, "cancel_return", {**ORDER, "return_id": number}, key="K", attempt=2))
        return [before, given(await ask(tools, "find_return", ORDER, key="K", attempt=2))]

    before, after = shop.run(scene)
    assert (before["found"], before["closed_through"]) == (False, 1)
    assert after["record"]["status"] == "cancelled"


def test_a_return_that_is_cancelled_already_is_not_cancelled_by_another_key(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        arguments = {**ORDER, "return_id": await made_return(tools)}
        given(await ask(tools, "cancel_return", arguments, key="C"))
        return await ask(tools, "cancel_return", arguments, key="K")

    answer = shop.run(scene)
    assert code_of(answer) == "not_eligible"
    assert answer.details == {"reason": "return_is_cancelled"}
    assert effects_of(shop, "K") == 0


def test_a_winner_that_dies_in_the_middle_leaves_the_key_free(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        async with await psycopg.AsyncConnection.connect(shop.database.admin) as holder:
            await holder.execute(HOLD_A1)
            first = asyncio.create_task(ask(tools, "create_return", {**ORDER, **RETURN}, key="K"))
            await until(lambda: shop.one("SELECT count(*) FROM pg_locks WHERE NOT granted") == 1)
            shop.rows(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'kessai-tools/returns' AND wait_event_type = 'Lock'"
            )
            again = asyncio.create_task(ask(tools, "create_return", {**ORDER, **RETURN}, key="K"))
            await until(lambda: shop.one("SELECT count(*) FROM pg_locks WHERE NOT granted") >= 1)
        await first
        return await again

    assert given(shop.run(scene))["status"] == "created"
    assert effects_of(shop, "K") == 1


def test_a_call_that_was_minted_for_another_attempt_of_a_used_key_is_a_replay(shop: Shop) -> None:
    arguments = {**ORDER, **RETURN}

    async def scene(tools: Dispatcher) -> list[Answer]:
        tokens = [caller("create_return", arguments, idempotency_key="K", attempt=attempt) for attempt in (2, 1)]
        return [await tools.dispatch(token, "create_return", arguments) for token in tokens]

    first, second = shop.run(scene)
    assert given(first) == given(second)
