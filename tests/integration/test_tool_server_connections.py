"""A database that goes away: calls say so, dead connections heal, and a COMMIT that was lost is never guessed at."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from tests.support.tool_orders import line, order
from tests.support.tool_prepared import ORDER, RETURN, effects_of, made_return
from tests.support.tool_shop import HOLD_A1, Shop, ask, code_of, given, open_shop, until
from tests.support.tool_wire import gate
from tool_server.call import Answer
from tool_server.dispatch import Dispatcher
from tool_server.errors import SettingsError
from tool_server.settings import Settings
from tool_server.store import pool as module
from tool_server.store.migrate import NEWEST, NewerSchemaError


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return open_shop(tmp_path, order("A-1", line(price=100, quantity=50)))


def disconnect_all(shop: Shop) -> int:
    """End every pooled connection from the server's side, as a restart does."""
    return len(
        shop.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'kessai-tools/%%'"
        )
    )


def test_after_a_restart_of_the_database_no_call_fails(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        await asyncio.gather(*(ask(tools, "get_order", ORDER) for _ in range(10)))
        answers = []
        for at in range(3):
            assert disconnect_all(shop) >= 4
            number = await made_return(tools, key=f"k{at}")
            answers += [
                await ask(tools, "get_order", ORDER),
                await ask(tools, "find_return", ORDER, key=f"k{at}"),
                await ask(tools, "check_return_policy", {**ORDER, **RETURN}),
                await ask(tools, "send_return_notice", {**ORDER, "return_id": number}, key=f"n{at}"),
                await ask(tools, "find_notice", ORDER, key=f"n{at}"),
            ]
        return answers

    for answer in shop.run(scene):
        given(answer)
    assert len(shop.mails()) == 3


def test_a_database_that_is_away_is_told_as_nothing_executed_and_comes_back_by_itself(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.3)

    async def scene() -> tuple[list[str], str | None, Answer, str | None]:
        async with gate(shop) as (gated, away), Dispatcher(gated) as tools:
            given(await ask(tools, "get_order", ORDER))
            away.close()
            codes = [
                code_of(await ask(tools, "get_order", ORDER)),
                code_of(await ask(tools, "create_return", {**ORDER, **RETURN}, key="K")),
                code_of(await ask(tools, "send_return_notice", {**ORDER, "return_id": "R-1"}, key="N")),
            ]
            assert code_of(await ask(tools, "get_order", {})) == "invalid_arguments"  # refused, logged or not
            reason = await tools.ready()
            away.open()
            await _until_ready(tools)
            return codes, reason, await ask(tools, "get_order", ORDER), await tools.ready()

    codes, reason, back, ready = asyncio.run(scene())
    assert codes == ["unavailable"] * 3
    assert reason is not None
    assert reason.startswith("database_unavailable: ")
    given(back)
    assert ready is None
    assert effects_of(shop, "K") == 0


async def _until_ready(tools: Dispatcher) -> None:
    async with asyncio.timeout(20):
        while await tools.ready() is not None:  # noqa: ASYNC110 — the pool tries again at intervals of its own
            await asyncio.sleep(0.05)


SAYS_DONE: LiteralString = "SELECT count(*) FROM calls.log WHERE tool = 'create_return' AND outcome = 'ok'"
EFFECTS: dict[str, LiteralString] = {
    "create_return": "SELECT xmin::text FROM returns.returns",
    "send_return_notice": "SELECT xmin::text FROM notices.outbox",
    "cancel_return": "SELECT xmin::text FROM returns.cancellations",
}


def test_what_a_call_did_its_token_and_its_row_in_the_log_are_of_one_commit(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> None:
        number = await made_return(tools)
        for name in ("send_return_notice", "cancel_return"):
            given(await ask(tools, name, {**ORDER, "return_id": number}, key=name))

    shop.run(scene)
    for tool, effect in EFFECTS.items():
        ((logged, used),) = shop.rows(
            "SELECT l.committed_in::text, t.xmin::text FROM calls.log AS l JOIN calls.token_used AS t USING (iss, jti)"
            " WHERE l.tool = %s AND l.outcome = 'ok'",
            tool,
        )
        assert logged == shop.one(effect), tool
        # a notice's token is used before its mail leaves, and what came of it is known after
        assert (int(used) < int(logged)) if tool == "send_return_notice" else (used == logged), tool


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_whose_answer_is_lost_is_told_as_unknown_and_found_by_its_key(shop: Shop, committed: bool) -> None:
    """The connection breaks right after COMMIT has reached the server, or right before."""

    async def scene() -> tuple[Answer, dict[str, Any], Answer]:
        async with gate(shop) as (gated, wire), Dispatcher(gated) as tools:
            given(await ask(tools, "find_return", ORDER, key="warm", attempt=1))
            wire.cut_at_commit(after=committed)
            lost = await ask(tools, "create_return", {**ORDER, **RETURN}, key="K")
            assert shop.one(SAYS_DONE) == int(committed)
            found = given(await ask(tools, "find_return", ORDER, key="K"))
            return lost, found, await ask(tools, "create_return", {**ORDER, **RETURN}, key="K", attempt=2)

    lost, found, again = asyncio.run(scene())
    assert code_of(lost) == "internal_error"
    assert (found["found"], found["closed_through"]) == ((True, 0) if committed else (False, 1))
    assert given(again)["status"] == "created"
    assert effects_of(shop, "K") == 1


def test_more_calls_than_connections_wait_their_turn(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        return await asyncio.gather(*(ask(tools, "get_order", ORDER) for _ in range(200)))

    for answer in shop.run(scene):
        given(answer)


def test_a_row_that_somebody_holds_too_long_is_told_as_in_progress(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        async with await psycopg.AsyncConnection.connect(shop.database.admin) as holder:
            await holder.execute(HOLD_A1)
            return await ask(tools, "create_return", {**ORDER, **RETURN}, key="K")

    assert code_of(shop.run(scene)) == "in_progress"
    assert effects_of(shop, "K") == 0


def test_the_log_tells_the_whole_time_that_a_call_took(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> Answer:
        async with await psycopg.AsyncConnection.connect(shop.database.admin) as holder:
            await holder.execute(HOLD_A1)
            call = asyncio.create_task(ask(tools, "create_return", {**ORDER, **RETURN}, key="K"))
            await until(lambda: shop.one("SELECT count(*) FROM pg_locks WHERE NOT granted") > 0)
            await holder.execute("SELECT pg_sleep(0.2)")
        return await call

    given(shop.run(scene))
    assert shop.one("SELECT duration_us FROM calls.log") >= 200_000


def test_a_caller_that_leaves_costs_no_connection(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> list[Answer]:
        async with await psycopg.AsyncConnection.connect(shop.database.admin) as holder:
            await holder.execute(HOLD_A1)
            calls = [
                asyncio.create_task(ask(tools, "create_return", {**ORDER, **RETURN}, key=f"k{at}")) for at in range(10)
            ]
            await until(lambda: shop.one("SELECT count(*) FROM pg_locks WHERE NOT granted") > 5)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)
        return [await ask(tools, "get_return", {**ORDER, "return_id": "R-1"}) for _ in range(20)]

    assert {code_of(answer) for answer in shop.run(scene)} == {"not_found"}
    assert (
        shop.one("SELECT count(*) FROM returns.returns") == 10
    )  # what had begun was finished, before the server closed


def test_no_session_idles_inside_a_transaction(shop: Shop) -> None:
    async def scene(tools: Dispatcher) -> None:
        number = await made_return(tools)
        await ask(tools, "send_return_notice", {**ORDER, "return_id": number}, key="N")
        states = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'kessai-tools/%%' AND state <> 'idle'"
        )
        assert shop.one(states) == 0
        assert shop.one("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0

    shop.run(scene)


def test_a_newer_database_keeps_the_server_from_starting_and_an_older_one_from_being_ready(shop: Shop) -> None:
    shop.rows("INSERT INTO schema_version (version, name, sha256) VALUES (%s, 'later', 'x')", NEWEST + 1)
    try:
        with pytest.raises(NewerSchemaError):
            shop.run(lambda tools: tools.ready())
    finally:
        shop.rows("DELETE FROM schema_version WHERE version = %s", NEWEST + 1)
    shop.rows("UPDATE schema_version SET version = 0 WHERE version = %s", NEWEST)
    try:
        assert shop.run(lambda tools: tools.ready()) == f"schema_mismatch: {NEWEST - 1}, not {NEWEST}"
    finally:
        shop.rows("UPDATE schema_version SET version = %s WHERE version = 0", NEWEST)


def test_a_string_that_is_no_connection_string_is_named_and_not_quoted(shop: Shop) -> None:
    wrong = Settings(**{**dict(shop.settings), "orders_dsn": "postgres//user:hunter2@host"})
    with pytest.raises(SettingsError) as caught:
        Dispatcher(wrong)
    assert "KESSAI_TOOLS_ORDERS_DSN" in str(caught.value)
    assert "hunter2" not in str(caught.value)
