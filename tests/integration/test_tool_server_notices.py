"""Notices into a Maildir: what is written, in whose language, and that it is there once."""

from __future__ import annotations

import asyncio
import stat
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from tests.support.tool_orders import ASKED_AT, line, order, recipient
from tests.support.tool_prepared import ORDER, made_return, sent_notice
from tests.support.tool_shop import Shop, ask, code_of, given, open_shop
from tool_server.call import Answer
from tool_server.dispatch import Dispatcher
from tool_server.letter import Item, Letter, Recipient, compose
from tool_server.mail import Maildir, NotSent, Sent


def mail_of(shop: Shop, at: int = 0) -> EmailMessage:
    message = message_from_bytes(shop.mails()[at].read_bytes(), policy=policy.SMTP)
    assert isinstance(message, EmailMessage)
    return message


def send(shop: Shop, **token: Any) -> dict[str, Any]:
    async def scene(tools: Dispatcher) -> dict[str, Any]:
        arguments = {**ORDER, "return_id": await made_return(tools)}
        return given(await ask(tools, "send_return_notice", arguments, key="N", **token))

    return shop.run(scene)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("ja", ["見本 花子 様", "返品番号: ", "ご注文番号: A-1", "マグカップ 1点", "ご返送ください"]),
        ("en", ["Dear 見本 花子,", "Return number: ", "Order: A-1", "マグカップ x 1", "send them back"]),
    ],
)
def test_a_notice_tells_the_number_the_lines_and_what_to_do_in_the_recipients_language(
    tmp_path: Path, language: str, words: list[str]
) -> None:
    shop = open_shop(tmp_path, order("A-1"), recipients=[recipient("C-1", language=language)])
    notice = send(shop)
    message = mail_of(shop)
    text = message.get_content()
    assert all(word in text for word in words)
    assert notice["return_id"] in text
    assert notice["return_id"] in message["Subject"]
    assert (message["To"].addresses[0].addr_spec, message["From"]) == ("c-1@example.com", "returns@shop.example")
    assert (message["Message-ID"], message["Content-Language"]) == (notice["message_id"], language)
    assert message["Auto-Submitted"] == "auto-generated"


def test_a_notice_names_its_recipient_without_telling_the_address(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    notice = send(shop)
    assert notice["destination_ref"] == "customer://C-1/mail"
    assert (notice["status"], notice["channel"]) == ("sent", "maildir")
    assert notice["sent_at"] is not None
    assert "@example.com" not in str(notice)


def test_a_file_stands_in_new_with_the_rights_of_its_owner_and_nothing_is_left_in_tmp(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    name = send(shop)["message_id"].strip("<>").replace("@", ".")
    assert [path.name for path in shop.mails()] == [name]
    assert stat.S_IMODE(shop.mails()[0].stat().st_mode) == 0o600
    assert list((shop.maildir / "tmp").iterdir()) == []


def test_a_correction_is_a_new_mail_that_names_the_one_it_corrects(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> tuple[str, dict[str, Any]]:
        number = await made_return(tools)
        first = await sent_notice(tools, number)
        given(await ask(tools, "cancel_return", {**ORDER, "return_id": number}, key="C"))
        arguments = {**ORDER, "return_id": number, "corrects": first}
        return first, given(await ask(tools, "send_correction_notice", arguments, key="K"))

    first, correction = shop.run(scene)
    assert (correction["kind"], correction["corrects"]) == ("correction", first)
    (message,) = [mail_of(shop, at) for at in (0, 1) if mail_of(shop, at)["Message-ID"] == correction["message_id"]]
    assert (message["In-Reply-To"], message["References"]) == (first, first)
    assert message["Subject"].startswith("【訂正】")
    assert "取り消されました" in message.get_content()


def test_a_notice_of_a_cancelled_return_is_not_sent(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))

    async def scene(tools: Dispatcher) -> Answer:
        arguments = {**ORDER, "return_id": await made_return(tools)}
        given(await ask(tools, "cancel_return", arguments, key="C"))
        return await ask(tools, "send_return_notice", arguments, key="K")

    assert code_of(shop.run(scene)) == "not_found"
    assert shop.mails() == []


@pytest.mark.parametrize("of", ["another return", "another customer"])
def test_a_correction_corrects_only_a_notice_of_its_own_return(tmp_path: Path, of: str) -> None:
    shop = open_shop(tmp_path, order("A-1", line(quantity=2)), order("A-2", customer_id="C-2"))

    async def scene(tools: Dispatcher) -> Answer:
        number = await made_return(tools)
        if of == "another return":
            sent = await sent_notice(tools, await made_return(tools, key="second"))
        else:
            theirs = {"order_id": "A-2", "lines": [{"line_id": "L1", "quantity": 1}], "reason": "other"}
            made = given(await ask(tools, "create_return", theirs, key="T", customer="C-2"))
            notice = {"order_id": "A-2", "return_id": made["return_id"]}
            sent = given(await ask(tools, "send_return_notice", notice, key="U", customer="C-2"))["message_id"]
        arguments = {**ORDER, "return_id": number, "corrects": sent}
        return await ask(tools, "send_correction_notice", arguments, key="K")

    assert code_of(shop.run(scene)) == "not_found"
    assert len(shop.mails()) == 1


def letter(name: str, item: str = "cup") -> EmailMessage:
    content = compose(
        Letter(
            message_id="<x@shop.example>", sender="returns@shop.example",
            recipient=Recipient("a@example.com", name, "en"), order_id="A-1", return_id="R-1", cancelled=False,
            items=(Item(item, 1),), corrects=None, written_at=ASKED_AT,
        )
    )  # fmt: skip
    message = message_from_bytes(content, policy=policy.SMTP)
    assert isinstance(message, EmailMessage)
    return message


@pytest.mark.parametrize(
    "name",
    [
        "Eve\r\nBcc: all@example.com",
        "Eve\nSubject: hi",
        "Eve\r\n\r\nbody",
        "Eve\x00\x0b\u2028Bcc: x",
        'Eve" <all@example.com>, "',
        "=?utf-8?q?Eve=0D=0ABcc:_all@example.com?=",
        "\u202eevE",
        " ",
    ],
)
def test_no_name_can_add_a_header_or_a_recipient(name: str) -> None:
    message = letter(name)
    assert [address.addr_spec for address in message["To"].addresses] == ["a@example.com"]
    assert message["Bcc"] is None
    assert len(message.get_all("Subject")) == 1
    assert message["Subject"] == "Your return R-1"


def test_a_products_name_cannot_break_out_of_its_line() -> None:
    text = letter("Eve", "cup\r\n.\r\nQUIT\u202e").get_content()
    assert "- cup . QUIT x 1" in text.splitlines()


def test_a_mail_that_was_read_already_is_not_put_there_again(tmp_path: Path) -> None:
    maildir = Maildir(tmp_path / "mail")
    assert asyncio.run(maildir.deliver("<x@shop.example>", b"text")) == Sent()
    (tmp_path / "mail" / "new" / "x.shop.example").rename(tmp_path / "mail" / "cur" / "x.shop.example:2,S")
    assert asyncio.run(maildir.deliver("<x@shop.example>", b"text")) == Sent()
    assert list((tmp_path / "mail" / "new").iterdir()) == []


def test_a_disk_that_takes_nothing_leaves_the_notice_waiting_and_the_server_not_ready(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, order("A-1"))
    shop.maildir.write_text("a file where the directory should be")

    async def scene(tools: Dispatcher) -> tuple[str | None, dict[str, Any]]:
        arguments = {**ORDER, "return_id": await made_return(tools)}
        return await tools.ready(), given(await ask(tools, "send_return_notice", arguments, key="N"))

    reason, notice = shop.run(scene)
    assert (reason, notice["status"]) == ("maildir_unwritable", "queued")
    assert shop.rows("SELECT status, reason FROM notices.outbox") == [("pending", "maildir: Not a directory")]


def test_a_full_directory_is_told_as_not_sent(tmp_path: Path) -> None:
    maildir = Maildir(tmp_path)
    assert asyncio.run(maildir.deliver(f"<{'x' * 300}@shop.example>", b"")) == NotSent("maildir: File name too long")
    assert list((tmp_path / "new").iterdir()) == []
