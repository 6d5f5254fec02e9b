"""A return is told of once, and only while it stands: what waits for a cancelled one is given up, never sent."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.smtp import SILENT, breaking_server
from tests.support.tool_orders import line, order
from tests.support.tool_prepared import ORDER, made_return, sent_notice
from tests.support.tool_shop import Shop, ask, code_of, given, open_shop, until
from tool_server import outbox, relay
from tool_server.call import Answer
from tool_server.dispatch import Dispatcher
from tool_server.mail import Maildir
from tool_server.store.bounds import Bounds
from tool_server.store.calls import forget_tokens
from tool_server.store.notices import take
from tool_server.store.pool import Pool


async def queued_notice(shop: Shop, tools: Dispatcher) -> dict[str, str]:
    """The arguments of a notice that waits, since its directory is no directory."""
    shop.maildir.write_text("a file where the directory should be")
    arguments = {**ORDER, "return_id": await made_return(tools)}
    assert given(await ask(tools, "send_return_notice", arguments, key="N"))["status"] == "queued"
    return arguments


async def cancelled_while_queued(shop: Shop, tools: Dispatcher) -> dict[str, str]:
    arguments = await queued_notice(shop, tools)
    shop.rows("UPDATE notices.outbox SET due_at = 'infinity'")  # the relay is not the first to see it
    given(await ask(tools, "cancel_return", arguments, key="C"))
    shop.maildir.unlink()
    return arguments


def as_told(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.rows("SELECT status, reason, content FROM notices.outbox")


def test_a_notice_whose_return_was_cancelled_while_it_waited_is_given_up_by_the_relay(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> dict[str, Any]:
        await cancelled_while_queued(shop, tools)
        shop.rows("UPDATE notices.outbox SET due_at = clock_now()")
        await until(lambda: shop.one("SELECT status FROM notices.outbox") not in {"pending", "sending"})
        return given(await ask(tools, "find_notice", ORDER, key="N"))["record"]

    assert shop.run(scene)["status"] == "rejected"
    assert as_told(shop) == [("rejected", "return_cancelled", None)]
    assert shop.mails() == []


def test_a_caller_that_asks_again_for_the_notice_of_a_cancelled_return_is_told_why_it_is_not_sent(
    tmp_path: Path,
) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> Answer:
        arguments = await cancelled_while_queued(shop, tools)
        return await ask(tools, "send_return_notice", arguments, key="N", attempt=2)

    answer = shop.run(scene)
    assert (code_of(answer), answer.details) == ("notice_rejected", {"reason": "return_cancelled"})
    assert as_told(shop) == [("rejected", "return_cancelled", None)]
    assert shop.mails() == []


def test_a_return_that_is_cancelled_at_the_last_moment_is_not_taken(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> object:
        await cancelled_while_queued(shop, tools)
        shop.rows("UPDATE notices.outbox SET due_at = clock_now() - interval '1 second'")
        async with Pool("notices", shop.settings.notices_dsn.get_secret_value()) as pool, pool.connection() as lent:
            return await take(lent, Bounds("acme", "C-1", "A-1", "", "N"), "maildir")

    assert shop.run(scene) is None


def test_a_notice_that_a_dead_handler_had_begun_is_not_begun_again_for_a_cancelled_return(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> None:
        await cancelled_while_queued(shop, tools)
        shop.rows("UPDATE notices.outbox SET status = 'sending'")
        async with Pool("notices", shop.settings.notices_dsn.get_secret_value()) as pool:
            await outbox.recover(pool, Maildir(shop.maildir), Bounds("acme", "C-1", "A-1", "", "N"))

    shop.run(scene)
    assert as_told(shop) == [("unknown", "return_cancelled", None)]  # it may have left before
    assert shop.mails() == []


def test_a_return_cannot_be_cancelled_while_the_mail_that_tells_of_it_is_leaving(tmp_path: Path) -> None:
    async def scene() -> tuple[Answer, Answer, Answer]:
        async with breaking_server("data_end", SILENT) as smtp:
            shop = await asyncio.to_thread(open_shop, tmp_path, order("A-1"), settings=smtp.settings())
            async with Dispatcher(shop.settings) as tools:
                arguments = {**ORDER, "return_id": await made_return(tools)}
                sending = asyncio.create_task(ask(tools, "send_return_notice", arguments, key="N"))
                await asyncio.wait_for(smtp.arrived.wait(), 10)
                meanwhile = await ask(tools, "cancel_return", arguments, key="C")
                smtp.ended.set()  # the mail server goes away without a word
                return meanwhile, await sending, await ask(tools, "cancel_return", arguments, key="C", attempt=2)

    meanwhile, sent, afterwards = asyncio.run(scene())
    assert code_of(meanwhile) == "in_progress"
    assert code_of(sent) == "delivery_unknown"
    assert given(afterwards)["status"] == "cancelled"


CANCELLED = """
SELECT pg_advisory_xact_lock(returns.standing_lock('acme', %(number)s));
INSERT INTO returns.cancellations (tenant_id, return_id) VALUES ('acme', %(number)s)
"""
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND mode = 'ShareLock'"


@pytest.mark.parametrize("by", ["its handler", "the relay"])
def test_a_notice_waits_for_a_cancellation_that_is_being_committed_and_is_then_not_sent(
    tmp_path: Path, by: str
) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> None:
        if by == "the relay":
            number = (await queued_notice(shop, tools))["return_id"]
            shop.rows("UPDATE notices.outbox SET due_at = 'infinity'")
            shop.maildir.unlink()
            sending = asyncio.create_task(until(lambda: shop.one("SELECT status FROM notices.outbox") == "rejected"))
        else:
            number = await made_return(tools)
        with psycopg.connect(shop.database.admin) as cancelling, psycopg.ClientCursor(cancelling) as cursor:
            cursor.execute(CANCELLED, {"number": number})
            if by == "the relay":
                shop.rows("UPDATE notices.outbox SET due_at = clock_now()")
            else:
                asked = ask(tools, "send_return_notice", {**ORDER, "return_id": number}, key="N")
                sending = asyncio.create_task(_refused(asked))
            await until(lambda: shop.one(WAITING) == 1)
        await sending

    shop.run(scene)
    assert shop.mails() == []


async def _refused(asking: Coroutine[Any, Any, Answer]) -> None:
    assert code_of(await asking) == "not_found"


def test_a_correction_that_waits_is_sent_though_its_return_is_cancelled(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> None:
        number = await made_return(tools)
        first = await sent_notice(tools, number)
        given(await ask(tools, "cancel_return", {**ORDER, "return_id": number}, key="C"))
        shop.maildir.rename(tmp_path / "away")
        shop.maildir.write_text("a file where the directory should be")
        arguments = {**ORDER, "return_id": number, "corrects": first}
        assert given(await ask(tools, "send_correction_notice", arguments, key="K"))["status"] == "queued"
        shop.maildir.unlink()
        shop.rows("UPDATE notices.outbox SET due_at = clock_now() WHERE status = 'pending'")
        await until(lambda: shop.one("SELECT status FROM notices.outbox WHERE kind = 'correction'") == "sent")

    shop.run(scene)
    assert len(shop.mails()) == 1


def test_a_second_notice_of_one_return_is_refused_and_spends_neither_key_nor_token(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> Answer:
        number = await made_return(tools)
        await sent_notice(tools, number)
        return await ask(tools, "send_return_notice", {**ORDER, "return_id": number}, key="second", jti="J2")

    answer = shop.run(scene)
    assert (code_of(answer), answer.details) == ("key_reused", {"reason": "return_was_told"})
    assert len(shop.mails()) == 1
    assert shop.one("SELECT count(*) FROM calls.key WHERE idempotency_key = 'second'") == 0
    assert shop.one("SELECT count(*) FROM calls.token_used WHERE jti = 'J2'") == 0
    assert shop.rows("SELECT outcome FROM calls.log WHERE jti = 'J2'") == [("key_reused",)]


def test_two_keys_at_once_make_one_notice_of_one_return(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> list[Answer]:
        arguments = {**ORDER, "return_id": await made_return(tools)}
        calls = (ask(tools, "send_return_notice", arguments, key=f"K{at}") for at in range(4))
        return await asyncio.gather(*calls)

    answers = shop.run(scene)
    assert sorted(type(answer).__name__ for answer in answers) == ["Answered", "Refused", "Refused", "Refused"]
    assert len(shop.mails()) == 1


def test_a_notice_that_was_refused_for_good_leaves_room_for_another(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> dict[str, Any]:
        arguments = await queued_notice(shop, tools)
        shop.rows("UPDATE notices.outbox SET status = 'rejected', reason = 'smtp 550', content = NULL")
        shop.maildir.unlink()
        return given(await ask(tools, "send_return_notice", arguments, key="second"))

    assert shop.run(scene)["status"] == "sent"


def test_each_return_of_an_order_has_a_notice_of_its_own(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1", line(quantity=2)))

    async def scene(tools: Dispatcher) -> None:
        for key in ("R1", "R2"):
            await sent_notice(tools, await made_return(tools, key=key), key=f"notice-{key}")

    shop.run(scene)
    assert len(shop.mails()) == 2


OLD = "INSERT INTO calls.token_used SELECT 'i', 'j' || n, clock_now() - %s::interval FROM generate_series(1, %s) AS n"


def test_a_round_forgets_a_bounded_batch_of_tokens_that_can_no_longer_be_sent(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    shop.rows(OLD, "61 minutes", 501)

    async def scene() -> list[int]:
        async with Pool("notices", shop.settings.notices_dsn.get_secret_value()) as pool:
            return [await forget_tokens(pool) for _ in range(3)]

    assert asyncio.run(scene()) == [500, 1, 0]


def test_a_token_that_may_still_be_sent_is_remembered(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    shop.rows(OLD, "59 minutes", 1)

    async def scene() -> int:
        async with Pool("notices", shop.settings.notices_dsn.get_secret_value()) as pool:
            return await forget_tokens(pool)

    assert asyncio.run(scene()) == 0


def test_the_relay_forgets_old_tokens_by_itself(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    shop.rows(OLD, "2 hours", 1)

    async def scene() -> None:
        stop = asyncio.Event()
        async with Pool("notices", shop.settings.notices_dsn.get_secret_value()) as pool:
            relaying = asyncio.create_task(relay.run(pool, Maildir(shop.maildir), stop))
            await until(lambda: shop.one("SELECT count(*) FROM calls.token_used") == 0)
            stop.set()
            await asyncio.wait_for(relaying, 10)

    asyncio.run(scene())


@pytest.mark.parametrize("family", ["orders", "policies", "returns"])
def test_a_family_without_a_relay_may_not_forget_tokens(tmp_path: Path, family: str) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    role = f"tools_{family}"
    assert not shop.one("SELECT has_function_privilege(%s, 'calls.forget_tokens()', 'EXECUTE')", role)
    assert shop.one("SELECT has_function_privilege('tools_notices', 'calls.forget_tokens()', 'EXECUTE')")
