"""What leaves the host and what does not: one request per call, to one server, under one token."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import closing
from dataclasses import replace

import pytest

from host.domain.outcome import Outcome, Rejected, Success
from host.tool_client.client import ToolClient
from host.tool_client.heads import exchange
from host.tool_client.readyz import readyz
from tests.support.calling import PROBE, READ, TOKEN, WRITE, client_of, pair, request, run, told
from tests.support.hostile_server import FakeToolServer

UNREACHABLE = ("Rejected", "unreachable")


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _reason(outcome: Outcome) -> object:
    assert isinstance(outcome, Rejected)
    return outcome.error.details["why"]


def test_a_write_to_nobody_was_not_sent() -> None:
    async def scene() -> tuple[str, str]:
        async with ToolClient(f"http://127.0.0.1:{_free_port()}/mcp", lambda: PROBE) as client:
            return told(await client.call(request(WRITE)))

    assert run(scene()) == UNREACHABLE


def test_a_write_to_a_server_that_has_gone_was_not_sent() -> None:
    async def scene() -> Outcome:
        async with FakeToolServer(behaviour="answers_closing") as server:
            client = await client_of(server).__aenter__()
            assert isinstance(await client.call(request(READ)), Success)
        outcome = await client.call(request(WRITE))
        await client.__aexit__(None, None, None)
        return outcome

    outcome = run(scene())
    assert told(outcome) == UNREACHABLE
    assert _reason(outcome) == "connect_failed"


def test_a_write_that_got_no_connection_in_time_was_not_sent() -> None:
    async def scene() -> Outcome:
        async with FakeToolServer(behaviour="answers_closing") as server:
            client = await client_of(server).__aenter__()
            assert isinstance(await client.call(request(READ)), Success)
        with closing(socket.socket()) as deaf, closing(socket.socket()) as first, closing(socket.socket()) as second:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            deaf.bind(("127.0.0.1", server.port))
            deaf.listen(0)
            for filler in (first, second):  # the queue of what nobody accepts is full now
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", server.port))
            outcome = await client.call(request(WRITE, timeout_seconds=0.4))
            await client.__aexit__(None, None, None)
            return outcome

    outcome = run(scene())
    assert told(outcome) == UNREACHABLE
    assert _reason(outcome) == "connect_timeout"


def test_a_write_that_waits_for_a_free_connection_is_not_sent_late() -> None:
    async def scene() -> tuple[tuple[str, str], tuple[str, str], int]:
        async with FakeToolServer(by_order={"A-2": "answers_slowly"}) as server, client_of(server, 1) as client:
            first = asyncio.create_task(client.call(request(READ, "A-2")))
            await server.until(lambda: len(server.calls()) == 1)
            second = await client.call(request(WRITE, timeout_seconds=0.2))
            server.released.set()
            return told(await first), told(second), len(server.calls())

    assert run(scene()) == (("Success", ""), UNREACHABLE, 1)


def test_a_call_without_time_left_is_not_sent() -> None:
    async def scene() -> tuple[tuple[str, str], int]:
        async with pair() as (server, client):
            assert isinstance(await client.call(request(READ)), Success)
            return told(await client.call(request(WRITE, timeout_seconds=0))), len(server.calls())

    assert run(scene()) == (UNREACHABLE, 1)


def test_the_token_is_in_the_header_and_nowhere_else() -> None:
    async def scene() -> FakeToolServer:
        async with pair() as (server, client):
            assert isinstance(await client.call(request(READ)), Success)
            return server

    server = run(scene())
    (call,) = server.calls()
    assert call.headers["authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in json.dumps(call.message)
    others = {name: value for name, value in call.headers.items() if name != "authorization"}
    assert not any(part in json.dumps(others) for part in TOKEN.split("."))
    assert {entry.headers["authorization"] for entry in server.received if entry is not call} == {f"Bearer {PROBE}"}


@pytest.mark.parametrize("token", ["", "a", "a.b", "a.b.c\r\nX: y", "a.b.c d", "ä.b.c", "a.b.c.d"])
def test_what_could_not_stand_in_a_header_is_no_token(token: str) -> None:
    async def scene() -> None:
        async with pair() as (_, client):
            await client.call(replace(request(READ), token=token))

    with pytest.raises(ValueError, match="no token"):
        run(scene())


def test_correlation_travels_in_meta() -> None:
    async def scene() -> FakeToolServer:
        async with pair() as (server, client):
            await client.call(request(READ))
            return server

    meta = run(scene()).calls()[0].message["params"]["_meta"]
    assert meta["dev.kessai/step_id"] == "s-1"


def test_fifty_calls_at_once_have_their_own_tokens_ids_and_outcomes() -> None:
    tricks = ("answers", "closes", "wrong_id", "status_503", "error_known", "hangs", "html", "own_503", "half_a_body")
    orders = {f"A-{number}": tricks[number % len(tricks)] for number in range(50)}
    expected = {
        "answers": "Success", "error_known": "Rejected", "own_503": "Rejected", "closes": "Unknown",
        "wrong_id": "Unknown", "status_503": "Unknown", "hangs": "Unknown", "html": "Unknown",
        "half_a_body": "Unknown",
    }  # fmt: skip

    async def scene() -> tuple[dict[str, str], FakeToolServer]:
        async with FakeToolServer(by_order=dict(orders)) as server, client_of(server) as client:
            calls = [replace(request(WRITE, order, 1.0), token=f"{order}.b.c") for order in orders]
            outcomes = await asyncio.gather(*map(client.call, calls))
            server.released.set()
            server.by_order.clear()
            assert isinstance(await client.call(request(READ)), Success)
            return {order: type(outcome).__name__ for order, outcome in zip(orders, outcomes, strict=True)}, server

    outcomes, server = run(scene())
    assert outcomes == {order: expected[trick] for order, trick in orders.items()}
    assert len(server.calls()) == 51
    assert len({call.message["id"] for call in server.calls()[:50]}) == 50
    for call in server.calls()[:50]:
        assert call.headers["authorization"] == f"Bearer {call.message['params']['arguments']['order_id']}.b.c"


def test_no_redirect_carries_the_token_away() -> None:
    async def scene() -> tuple[int, int]:
        async with FakeToolServer() as elsewhere, pair(behaviour="redirects_away") as (server, client):
            server.by_order["redirect_to"] = elsewhere.url
            assert told(await client.call(request(WRITE))) == ("Unknown", "bad_answer")
            return len(server.calls()), elsewhere.connections

    assert run(scene()) == (1, 0)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_leads_away_what_is_asked_beside_the_endpoint(status: int) -> None:
    """Nor is what a redirect says itself believed, however good it looks."""
    said = b'{"ready": true, "reason": "", "record": "not_configured", "head": "a.b.c"}'
    hits: list[bytes] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hits.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(said), said))
        writer.close()

    async def scene() -> tuple[str | None, bool | None, int]:
        async with await asyncio.start_server(elsewhere, "127.0.0.1", 0) as other:
            place = b"http://127.0.0.1:%d/" % other.sockets[0].getsockname()[1]
            asked = 0

            async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                nonlocal asked
                asked += 1
                await reader.readuntil(b"\r\n\r\n")
                head = b"HTTP/1.1 %d Go\r\nLocation: %s\r\nConnection: close\r\n" % (status, place)
                writer.write(head + b"Content-Length: %d\r\n\r\n%s" % (len(said), said))
                writer.close()

            async with await asyncio.start_server(redirect, "127.0.0.1", 0) as server:
                url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
                return await exchange(url, "a.b.c"), (await readyz(url)).ready, asked

    assert run(scene()) == (None, None, 2)
    assert hits == []


def test_a_cookie_is_not_sent_back() -> None:
    async def scene() -> FakeToolServer:
        async with pair(behaviour="cookie") as (server, client):
            await client.call(request(READ))
            await client.call(request(READ))
            return server

    assert all("cookie" not in call.headers for call in run(scene()).calls())


def test_no_proxy_of_the_environment_sees_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{_free_port()}")

    async def scene() -> Outcome:
        async with pair() as (_, client):
            return await client.call(request(READ))

    assert isinstance(run(scene()), Success)


def test_one_connection_serves_call_after_call() -> None:
    async def scene() -> int:
        async with pair() as (server, client):
            for _ in range(20):
                assert isinstance(await client.call(request(READ)), Success)
            return server.connections

    assert run(scene()) == 1


def test_a_caller_who_gives_up_closes_the_connection_and_harms_nobody() -> None:
    async def scene() -> tuple[str, str]:
        async with pair(by_order={"A-9": "drips"}) as (server, client):
            given_up = asyncio.create_task(client.call(request(WRITE, "A-9")))
            await server.until(lambda: len(server.calls()) == 1)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            await server.until(lambda: server.left == 1)
            return told(await client.call(request(READ)))

    assert run(scene()) == ("Success", "")


def test_a_client_that_is_closed_leaves_the_write_under_way_unknown() -> None:
    async def scene() -> tuple[str, str]:
        async with pair(behaviour="hangs") as (server, client):
            under_way = asyncio.create_task(client.call(request(WRITE)))
            await server.until(lambda: len(server.calls()) == 1)
            await client.__aexit__(None, None, None)
            return told(await under_way)

    assert run(scene()) == ("Unknown", "connection_lost")
