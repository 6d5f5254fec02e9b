"""A sender that is killed on the way: the mail leaves once or is told as unknown, and never twice."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.dying_sender import AFTER, BEFORE, NEVER, started
from tests.support.smtp import SILENT, breaking_server
from tests.support.tool_orders import order
from tests.support.tool_prepared import ORDER, effects_of, made_return
from tests.support.tool_shop import Shop, ask, code_of, given, open_shop, until
from tool_server.dispatch import Dispatcher
from tool_server.settings import Settings

KILLED = -signal.SIGKILL
STATUS = "SELECT status FROM notices.outbox"
LOCKS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"


def killed_at(shop: Shop, point: str) -> str:
    """Make a return, and have the process that sends its notice killed; give the return's number."""
    number = shop.run(made_return)
    assert started(shop, point, number, "N").wait(60) == KILLED
    assert shop.one(STATUS) == "sending"
    asyncio.run(until(lambda: shop.one(LOCKS) == 0))  # PostgreSQL has seen that the process is gone
    return number


@pytest.mark.parametrize("point", [BEFORE, AFTER])
@pytest.mark.parametrize("first", ["look up", "send again"])
def test_a_maildir_sender_that_was_killed_leaves_one_mail_whoever_comes_next(
    tmp_path: Path, point: str, first: str
) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    number = killed_at(shop, point)

    async def scene(tools: Dispatcher) -> list[dict[str, Any]]:
        arguments = {**ORDER, "return_id": number}
        if first == "look up":
            found = given(await ask(tools, "find_notice", ORDER, key="N"))["record"]
            return [found, given(await ask(tools, "send_return_notice", arguments, key="N", attempt=2))]
        sent = given(await ask(tools, "send_return_notice", arguments, key="N", attempt=2))
        return [sent, given(await ask(tools, "find_notice", ORDER, key="N"))["record"]]

    one, other = shop.run(scene)
    assert one == other
    assert one["status"] == "sent"
    assert (len(shop.mails()), effects_of(shop, "N")) == (1, 1)


def test_a_sender_that_lives_leaves_the_same_mail(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    assert started(shop, NEVER, shop.run(made_return), "N").wait(60) == 0
    assert (shop.one(STATUS), len(shop.mails())) == ("sent", 1)


def test_a_look_up_after_a_death_logs_one_row_of_its_own(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    killed_at(shop, BEFORE)

    async def scene(tools: Dispatcher) -> None:
        given(await ask(tools, "find_notice", ORDER, key="N"))

    shop.run(scene)
    rows = shop.rows("SELECT tool, outcome FROM calls.log WHERE idempotency_key = 'N' ORDER BY seq")
    assert rows == [("send_return_notice", "begun"), ("find_notice", "ok")]


def test_an_smtp_sender_that_was_killed_after_the_message_left_is_unknown_and_not_sent_again(tmp_path: Path) -> None:
    async def scene() -> tuple[list[str], int]:
        async with breaking_server("data_end", SILENT) as smtp:
            shop = await asyncio.to_thread(open_shop, tmp_path, order("A-1"), settings=smtp.settings())
            async with Dispatcher(shop.settings) as tools:
                number = await made_return(tools)
                process = started(shop, NEVER, number, "N")
                await asyncio.wait_for(smtp.arrived.wait(), 60)
                process.kill()
                assert await asyncio.to_thread(process.wait, 60) == KILLED
                await until(lambda: shop.one(LOCKS) == 0)
                found = given(await ask(tools, "find_notice", ORDER, key="N"))["record"]
                again = await ask(tools, "send_return_notice", {**ORDER, "return_id": number}, key="N", attempt=2)
                return [found["status"], code_of(again)], len(smtp.messages)

    assert asyncio.run(scene()) == (["unknown", "delivery_unknown"], 1)


def test_a_row_of_a_dead_smtp_sender_is_unknown_to_a_server_that_sends_into_a_maildir(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    killed_at(shop, BEFORE)
    shop.rows("UPDATE notices.outbox SET channel = 'smtp'")

    async def scene(tools: Dispatcher) -> str:
        return str(given(await ask(tools, "find_notice", ORDER, key="N"))["record"]["status"])

    assert shop.run(scene) == "unknown"
    assert shop.mails() == []


def test_a_new_domain_does_not_give_an_old_notice_a_second_name(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    number = killed_at(shop, AFTER)
    moved = Settings(**{**dict(shop.settings), "mail_domain": "new.example"})

    async def scene() -> None:
        async with Dispatcher(moved) as tools:
            given(await ask(tools, "send_return_notice", {**ORDER, "return_id": number}, key="N", attempt=2))

    asyncio.run(scene())
    assert len(shop.mails()) == 1
