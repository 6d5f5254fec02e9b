"""Nothing that anybody typed reaches an export of the record: no name, no number, no address, in whatever script."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import psycopg
import pytest

from host.engine.drive import drive
from host.evaluation import sealed
from tests.support.engine import asynchronous, take
from tests.support.sealing import Kept, record, worked_shop
from tests.support.tool_shop import Shop, ask
from tool_server.dispatch import Dispatcher

SECRET = "canary-secret-7f3a9c"
CANARIES = (
    "山田花子", "ヤマダハナコ", "ﾔﾏﾀﾞﾊﾅｺ", "090-1234-5678", "09012345678", "０９０－１２３４－５６７８",
    "+81 90 1234 5678",
    "03.1234.5678", "東京都千代田区千代田1-1", "hanako.canary@example.com", "4111 1111 1111 1111", f"Bearer {SECRET}",
    f"call of 花子 {SECRET}", "tanaka-090-1234-5678", "１２３４５６７",
)  # fmt: skip


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = worked_shop(tmp_path)

    async def misused(tools: Dispatcher) -> None:
        for number, text in enumerate(CANARIES):
            await ask(tools, "hanako_canary", {"order_id": "A-1"})
            await ask(tools, text, {"order_id": "A-1"})  # a tool that does not exist, by a caller's own name
            await ask(tools, "get_order", {"order_id": "A-1", "note": text}, sub=text, task_id=f"W-{number}")
            await ask(tools, "get_order", {"order_id": "A-1"}, sub="desk", client_id=text, resource=text)

    shop.run(misused)
    return shop


def spread(kept: Kept) -> None:
    """Put each canary wherever an operator, an approver or an outside host can put text."""
    with psycopg.connect(kept.admin) as connection:
        for text in CANARIES:
            reason = json.dumps({"reason": text, "by": {"name": text}, "list": [text]})
            for actor, resource, result in (("sato", "A-1", "done"), (text, "A-1", "done"), ("sato", text, text)):
                connection.execute(
                    "INSERT INTO audit (actor, action, resource, result, details, at)"
                    " VALUES (%s, 'noted', %s, %s, %s, clock_now())",
                    (actor, resource, result, reason),
                )


def texts_of(value: Any) -> list[str]:
    """Every string in a document, and in the documents that are strings in it."""
    if isinstance(value, dict):
        return [text for pair in value.items() for one in pair for text in texts_of(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts_of(one)]
    if isinstance(value, str) and value.startswith("{"):
        return texts_of(json.loads(value))
    return [value] if isinstance(value, str) else []


def plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()


@asynchronous
async def test_no_word_number_or_address_that_anybody_typed_is_in_an_export(shop: Shop):
    texts: list[str] = []
    async with record(shop) as kept:
        await drive(kept.parts, await take(kept.parts, request_id="canary", message=" ".join(CANARIES)))
        spread(kept)
        await kept.seal()
        await sealed.exported(kept.auditors, texts.append)
        held = kept.host("SELECT jsonb_agg(to_jsonb(a))::text FROM audit a")[0][0] + str(
            kept.tools("SELECT jsonb_agg(to_jsonb(l))::text FROM calls.log l")
        )
        verdicts = await kept.verified()
    said = [plain(text) for line in texts for text in texts_of(json.loads(line))]
    assert len(said) > 500
    for canary in CANARIES:
        assert canary in held
        assert [text for text in said if plain(canary) in text] == []
    assert [text for text in said if "花子" in text or "hanako" in text or SECRET in text or not text.isascii()] == []
    assert any("returns-desk@acme-jp" in text for text in said)  # who acted is told, by an identifier
    assert all(verdict.findings == [] for verdict in verdicts.values())


@asynchronous
async def test_the_same_words_on_two_lines_are_not_seen_to_be_the_same(shop: Shop):
    async with record(shop) as kept:
        with psycopg.connect(kept.admin) as connection:
            for _ in range(2):
                connection.execute(
                    "INSERT INTO audit (actor, action, resource, result, details, at)"
                    " VALUES ('山田', 'noted', 'TWICE', 'done', '{\"reason\": \"090-1234-5678\"}', clock_now())"
                )
        await kept.seal()
        rows = kept.host("SELECT sealed FROM seal_link WHERE sealed LIKE '%TWICE%'")
        calls = [json.loads(text) for (text,) in kept.tools("SELECT sealed FROM calls.seal_link")]
    one, other = (json.loads(text) for (text,) in rows)
    assert one["actor"].startswith("sha256:")
    assert one["actor"] != other["actor"]
    assert one["details"] != other["details"]
    askers = [call["sub"] for call in calls if str(call.get("sub")).startswith("sha256:")]  # most are one and the same
    assert len(set(askers)) == len(askers) > 2 * len(CANARIES)
