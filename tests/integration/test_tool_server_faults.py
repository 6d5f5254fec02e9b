"""A fault of our own is an answer with a code and a row in the log, and no detail of it reaches the caller."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from shared_contracts.contract import Tool
from shared_contracts.errors import ERRORS
from shared_contracts.tools import TOOLS
from tests.support.tool_orders import order
from tests.support.tool_prepared import ORDER, RETURN, effects_of, good
from tests.support.tool_shop import Shop, ask, code_of, given, open_shop, until
from tool_server.call import Answer, Answered, Call
from tool_server.dispatch import Dispatcher
from tool_server.errors import SettingsError
from tool_server.settings import Settings
from tool_server.store.pool import Pool

LOG = "SELECT tool, outcome FROM calls.log ORDER BY seq"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return open_shop(tmp_path, order("A-1"))


def test_a_result_outside_of_its_schema_does_not_leave_and_is_logged(shop: Shop) -> None:
    shop.rows("UPDATE orders.lines SET name = ''")

    async def scene(tools: Dispatcher) -> Answer:
        return await ask(tools, "get_order", ORDER)

    assert code_of(shop.run(scene)) == "bad_output"
    assert shop.rows(LOG) == [("get_order", "ok"), ("get_order", "bad_output")]


@pytest.mark.parametrize("tool", [pytest.param(tool, id=tool.name) for tool in TOOLS.values()])
def test_no_tools_result_leaves_outside_of_its_schema(shop: Shop, tool: Tool) -> None:
    async def beside(_pool: Pool, _call: Call) -> Answer:
        return Answered({"a member": "that no schema has"})

    async def scene(tools: Dispatcher) -> Answer:
        tools._handlers[tool.name] = beside
        return await ask(tools, tool.name, good(tool), key="K")

    with capture_logs() as lines:
        assert code_of(shop.run(scene)) == "bad_output"
    assert [line["tool"] for line in lines if line["event"] == "bad_output"] == [tool.name]
    assert "that no schema has" not in repr(lines)
    assert not ERRORS["bad_output"].outcome_known  # what has written has written
    assert shop.rows(LOG) == [(tool.name, "bad_output")]


@pytest.mark.parametrize(("name", "more"), [("check_return_policy", {}), ("create_return", {"key": "K"})])
def test_a_bug_in_a_handler_is_told_by_its_code_alone(shop: Shop, name: str, more: dict[str, str]) -> None:
    shop.rows("UPDATE policies.versions SET zone = 'Nowhere/Secret'")

    async def scene(tools: Dispatcher) -> Answer:
        return await ask(tools, name, {**ORDER, **RETURN}, **more)

    with capture_logs() as lines:
        answer = shop.run(scene)
    assert code_of(answer) == "internal_error"
    assert "handler_failed" in [line["event"] for line in lines]
    assert "Secret" not in str(answer) + repr(lines)
    assert not ERRORS["internal_error"].outcome_known
    assert shop.rows(LOG)[-1] == (name, "internal_error")
    assert effects_of(shop, "K") == 0


MAIL = {"smtp_host": "m.example", "mail_from": "a@b.example"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"maildir": None}, "KESSAI_TOOLS_MAILDIR"),
        ({"smtp_host": "mail.example"}, "KESSAI_TOOLS_MAIL_FROM"),
        ({"smtp_host": "mail.example", "mail_from": "nobody"}, "KESSAI_TOOLS_MAIL_FROM"),
        ({**MAIL, "smtp_user": "shop", "smtp_password_file": Path("/nowhere")}, "/nowhere cannot be read"),
        ({**MAIL, "smtp_user": "shop"}, "SMTP_PASSWORD_FILE go together"),
        ({**MAIL, "smtp_password_file": Path("/nowhere")}, "SMTP_PASSWORD_FILE go together"),
        ({**MAIL, "smtp_user": "shop", "smtp_password_file": Path("/nowhere"), "smtp_tls": "none"}, "SMTP_TLS is none"),
    ],
)
def test_a_server_that_could_send_nothing_does_not_start(shop: Shop, changes: dict[str, object], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        Dispatcher(Settings(**{**dict(shop.settings), **changes}))


def test_closing_waits_for_the_calls_in_hand(shop: Shop) -> None:
    async def scene() -> Answer:
        async with Dispatcher(shop.settings) as tools:
            call = asyncio.create_task(ask(tools, "create_return", {**ORDER, **RETURN}, key="K"))
            await until(lambda: len(tools._working) == 1)
        return await call

    assert given(asyncio.run(scene()))["status"] == "created"


def test_a_relay_that_ended_makes_the_server_not_ready(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> tuple[str | None, str | None]:
        before = await tools.ready()
        assert tools._relaying is not None
        relaying = tools._relaying
        await until(lambda: not relaying.cancel())  # False once it is done; one that meets an answer can be lost
        return before, await tools.ready()

    assert shop.run(scene) == (None, "relay_ended")
