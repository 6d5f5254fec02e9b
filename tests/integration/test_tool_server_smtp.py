"""Notices over SMTP: where the dialogue breaks off decides what is known, and nothing is ever sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest

from shared_contracts.errors import ERRORS
from tests.support.smtp import SILENT, SmtpServer, breaking_server, honest_server
from tests.support.tool_orders import order, recipient
from tests.support.tool_prepared import ORDER, made_return
from tests.support.tool_shop import Shop, ask, code_of, given, open_shop, until
from tool_server import mail, relay
from tool_server.call import Answer
from tool_server.dispatch import Dispatcher
from tool_server.mail import Smtp
from tool_server.store.pool import Pool

Scene = Callable[[Shop, Dispatcher, SmtpServer], Awaitable[Any]]


def with_server(directory: Path, server: AbstractAsyncContextManager[SmtpServer], scene: Scene) -> tuple[Any, Shop]:
    """Run a scene against a tool server that sends through this SMTP server."""

    async def run() -> tuple[Any, Shop]:
        async with server as smtp:
            shop = await asyncio.to_thread(open_shop, directory, order("A-1"), settings=smtp.settings())
            async with Dispatcher(shop.settings) as tools:
                return await scene(shop, tools, smtp), shop

    return asyncio.run(run())


async def send(tools: Dispatcher, key: str = "N", attempt: int = 1) -> Answer:
    number = await made_return(tools, key="R")
    return await ask(tools, "send_return_notice", {**ORDER, "return_id": number}, key=key, attempt=attempt)


def test_a_notice_that_the_server_took_is_sent_and_arrives_as_it_was_written(tmp_path: Path) -> None:
    async def scene(shop: Shop, tools: Dispatcher, smtp: SmtpServer) -> tuple[dict[str, Any], SmtpServer]:
        return given(await send(tools)), smtp

    (notice, smtp), shop = with_server(tmp_path, honest_server(), scene)
    assert (notice["status"], notice["channel"]) == ("sent", "smtp")
    (content,) = smtp.messages
    message = message_from_bytes(content, policy=policy.SMTP)
    assert message["Message-ID"] == notice["message_id"]
    assert notice["return_id"] in message.get_content()
    assert (smtp.sender, smtp.recipients) == ("returns@shop.example", ["c-1@example.com"])
    assert shop.mails() == []


BEFORE = ["connect", "ehlo", "mail", "rcpt", "data"]


@pytest.mark.parametrize("step", BEFORE)
def test_a_server_that_is_busy_leaves_the_notice_in_the_outbox(tmp_path: Path, step: str) -> None:
    async def scene(shop: Shop, tools: Dispatcher, smtp: SmtpServer) -> dict[str, Any]:
        return given(await send(tools))

    notice, shop = with_server(tmp_path, breaking_server(step, "451 later"), scene)
    assert notice["status"] == "queued"
    assert shop.rows("SELECT status, tries FROM notices.outbox") == [("pending", 1)]


@pytest.mark.parametrize("step", ["connect", "ehlo", "mail", "rcpt"])
def test_a_connection_that_breaks_before_data_leaves_the_notice_in_the_outbox(tmp_path: Path, step: str) -> None:
    async def scene(shop: Shop, tools: Dispatcher, smtp: SmtpServer) -> dict[str, Any]:
        return given(await send(tools))

    notice, shop = with_server(tmp_path, breaking_server(step, None), scene)
    assert notice["status"] == "queued"
    assert shop.one("SELECT status FROM notices.outbox") == "pending"


@pytest.mark.parametrize("step", ["mail", "rcpt", "data", "data_end"])
def test_a_refusal_for_good_is_told_and_never_tried_again(tmp_path: Path, step: str) -> None:
    async def scene(shop: Shop, tools: Dispatcher, smtp: SmtpServer) -> list[Answer]:
        return [await send(tools), await send(tools, attempt=2)]

    (first, again), shop = with_server(tmp_path, breaking_server(step, "550 no such user c-1@example.com"), scene)
    assert (code_of(first), code_of(again)) == ("notice_rejected", "notice_rejected")
    assert first.details == {"reason": "smtp 550"}
    assert shop.rows("SELECT status, reason, content FROM notices.outbox") == [("rejected", "smtp 550", None)]
    assert "c-1@example.com" not in str(first)


@pytest.mark.parametrize("reply", [None, "garbage", "299 hm"])
def test_an_answer_to_the_message_that_is_lost_is_unknown_and_the_message_is_never_sent_again(
    tmp_path: Path, reply: str | None
) -> None:
    async def scene(shop: Shop, tools: Dispatcher, smtp: SmtpServer) -> tuple[list[Answer], int]:
        first = await send(tools)
        again = await send(tools, attempt=2)
        found = await ask(tools, "find_notice", ORDER, key="N")
        return [first, again, found], len(smtp.messages)

    ((first, again, found), messages), _shop = with_server(tmp_path, breaking_server("data_end", reply), scene)
    assert (code_of(first), code_of(again)) == ("delivery_unknown", "delivery_unknown")
    assert not ERRORS["delivery_unknown"].outcome_known
    assert given(found)["record"]["status"] == "unknown"
    assert messages == 1


def test_a_busy_answer_to_the_message_says_that_it_was_not_taken(tmp_path: Path) -> None:
    async def scene(shop: Shop, tools: Dispatcher, smtp: SmtpServer) -> dict[str, Any]:
        return given(await send(tools))

    notice, _shop = with_server(tmp_path, breaking_server("data_end", "452 full"), scene)
    assert notice["status"] == "queued"


def test_a_handler_that_still_waits_for_the_server_is_found_sending_and_not_overtaken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "_SMTP_SECONDS", 30.0)

    async def scene(shop: Shop, tools: Dispatcher, smtp: SmtpServer) -> list[Any]:
        sending = asyncio.create_task(send(tools))
        await asyncio.wait_for(smtp.arrived.wait(), 10)
        found = given(await ask(tools, "find_notice", ORDER, key="N"))
        busy = code_of(await send(tools, attempt=2))
        smtp.ended.set()
        return [found["record"]["status"], busy, code_of(await sending), len(smtp.messages)]

    told, shop = with_server(tmp_path, breaking_server("data_end", SILENT), scene)
    assert told == ["sending", "in_progress", "delivery_unknown", 1]
    assert shop.one("SELECT count(*) FROM calls.log WHERE outcome = 'in_progress'") == 1


def test_no_transaction_is_open_while_the_server_is_waited_for(tmp_path: Path) -> None:
    async def scene(shop: Shop, tools: Dispatcher, smtp: SmtpServer) -> list[tuple[Any, ...]]:
        sending = asyncio.create_task(send(tools))
        await asyncio.wait_for(smtp.arrived.wait(), 10)
        states = shop.rows(
            "SELECT state, xact_start IS NULL FROM pg_stat_activity WHERE application_name = 'kessai-tools/notices'"
        )
        smtp.ended.set()
        await sending
        return states

    states, _shop = with_server(tmp_path, breaking_server("data_end", SILENT), scene)
    assert set(states) == {("idle", True)}


def test_the_relay_sends_what_waits_once_it_is_due(tmp_path: Path) -> None:
    async def scene(shop: Shop, tools: Dispatcher, smtp: SmtpServer) -> tuple[list[int], dict[str, Any]]:
        queued = given(await send(tools))
        assert queued["status"] == "queued"
        async with honest_server() as healed, Pool("notices", shop.settings.notices_dsn.get_secret_value()) as pool:
            channel = Smtp(mail.SmtpServer("127.0.0.1", healed.port, "none", "shop.example", None, None))
            tried = [await relay.send_due(pool, channel)]
            shop.rows("UPDATE notices.outbox SET due_at = clock_now()")
            tried += [await relay.send_due(pool, channel) for _ in range(2)]
            found = given(await ask(tools, "find_notice", ORDER, key="N"))
            assert message_from_bytes(healed.messages[0])["Message-ID"] == queued["message_id"]
        return [*tried, len(healed.messages)], found["record"]

    (tried, record), _shop = with_server(tmp_path, breaking_server("mail", "451 later"), scene)
    assert tried == [0, 1, 0, 1]
    assert record["status"] == "sent"


WAITING = (
    "WITH returned AS (INSERT INTO returns.returns (tenant_id, return_id, order_id, customer_id, status, reason,"
    " currency, refund, shipping_refund, return_fee, rule_version, order_version, requested_at)"
    " SELECT 'acme', 'R-' || n, 'A-1', 'C-1', 'created', 'other', 'JPY', 0, 0, 0, 'p', 1, now()"
    " FROM generate_series(1, 100) AS n)"
    " INSERT INTO notices.outbox (tenant_id, idempotency_key, customer_id, order_id, return_id, kind, message_id,"
    " channel, destination_ref, status, content) SELECT 'acme', 'k' || n, 'C-1', 'A-1', 'R-' || n, 'return',"
    " '<' || n || '@shop.example>', 'smtp', 'customer://C-1/mail', 'pending',"
    " convert_to(replace(%s, 'N', n::text), 'UTF8') FROM generate_series(1, %s) AS n"
)
MAIL = "From: s@shop.example\r\nTo: c@example.com\r\nMessage-ID: <N@shop.example>\r\n\r\nx\r\n"


def test_a_relay_that_is_asked_to_stop_records_the_mail_in_hand_and_begins_no_other(tmp_path: Path) -> None:
    async def relayed(shop: Shop, smtp: SmtpServer) -> None:
        stop = asyncio.Event()
        async with Pool("notices", shop.settings.notices_dsn.get_secret_value()) as pool:
            channel = Smtp(mail.SmtpServer("127.0.0.1", smtp.port, "none", "shop.example", None, None))
            relaying = asyncio.create_task(relay.run(pool, channel, stop))
            await asyncio.wait_for(smtp.arrived.wait(), 10)
            stop.set()
            smtp.ended.set()
            await asyncio.wait_for(relaying, 10)

    async def run() -> Shop:
        async with breaking_server("data_end", SILENT) as smtp:
            shop = await asyncio.to_thread(open_shop, tmp_path, order("A-1"))
            await asyncio.to_thread(shop.rows, WAITING, MAIL, 2)
            await relayed(shop, smtp)
            return shop

    shop = asyncio.run(run())
    assert shop.rows("SELECT status, count(*) FROM notices.outbox GROUP BY status ORDER BY status") == [
        ("pending", 1), ("unknown", 1),
    ]  # fmt: skip


def test_two_relays_and_a_hundred_waiting_notices_make_a_hundred_mails(tmp_path: Path) -> None:
    many = 100
    shop = open_shop(tmp_path, order("A-1"))
    shop.rows(WAITING, MAIL, many)

    async def scene() -> tuple[int, SmtpServer]:
        dsn = shop.settings.notices_dsn.get_secret_value()
        async with honest_server() as smtp, Pool("notices", dsn) as one, Pool("notices", dsn) as two:
            channel = Smtp(mail.SmtpServer("127.0.0.1", smtp.port, "none", "shop.example", None, None))
            tried = 0
            for _ in range(3):
                tried += sum(await asyncio.gather(*(relay.send_due(pool, channel) for pool in (one, two))))
            return tried, smtp

    tried, smtp = asyncio.run(scene())
    assert tried == many
    ids = [message_from_bytes(content)["Message-ID"] for content in smtp.messages]
    assert (len(ids), len(set(ids))) == (many, many)
    assert shop.rows("SELECT DISTINCT status, content FROM notices.outbox") == [("sent", None)]


def test_a_notice_that_could_not_leave_for_a_day_is_given_up_and_told(tmp_path: Path) -> None:
    async def scene(shop: Shop, tools: Dispatcher, smtp: SmtpServer) -> dict[str, Any]:
        given(await send(tools))
        shop.rows("UPDATE notices.outbox SET due_at = clock_now(), created_at = clock_now() - interval '25 hours'")
        await until(lambda: shop.one("SELECT status FROM notices.outbox") not in {"pending", "sending"})
        return given(await ask(tools, "find_notice", ORDER, key="N"))["record"]

    record, _shop = with_server(tmp_path, breaking_server("mail", "451 later"), scene)
    assert record["status"] == "rejected"


def test_waits_between_tries_double_and_end_at_five_minutes(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"), recipients=[recipient()])
    shop.rows(
        "INSERT INTO notices.outbox (tenant_id, idempotency_key, customer_id, order_id, return_id, kind, message_id,"
        " channel, destination_ref, status, content)"
        " VALUES ('acme', 'k', 'C-1', 'A-1', 'R', 'return', '<a@b>', 'smtp', 'd', 'sending', '')"
    )
    shop.rows(
        "CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql RETURN '2026-08-01Z'::timestamptz"
    )
    shop.rows("UPDATE notices.outbox SET created_at = clock_now()")
    waits = []
    for _ in range(10):
        shop.rows("SELECT notices.settle('acme', 'k', 'pending', 'busy')")
        waits.append(int(shop.one("SELECT extract(epoch FROM due_at - clock_now()) FROM notices.outbox")))
        shop.rows("UPDATE notices.outbox SET status = 'sending'")
    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
