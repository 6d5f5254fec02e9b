"""Whoever sends too much, too slowly or nonsense is let go of, before and after it is known who it is."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import ORDER, Server, StubDispatcher, raw, request, running, running_process, status_of
from tool_server.call import Answer, Answered
from tool_server.gate import BODY_BYTES_MAX
from tool_server.http import MESSAGE_BYTES_MAX, BoundedHttp


class Quick(BoundedHttp):
    """The same bound in a time that a test can wait for."""

    seconds_max = 0.5


def head(server: Server, *lines: bytes, token: str | None) -> bytes:
    sent = [b"POST /mcp HTTP/1.1", b"Host: 127.0.0.1:%d" % server.port, *lines]
    sent += [b"Content-Type: application/json", b"Accept: application/json, text/event-stream"]
    if token is not None:
        sent.append(b"Authorization: Bearer " + token.encode())
    return b"\r\n".join([*sent, b"", b""])


def still_served(server: Server) -> None:
    assert server.call().status_code == 200


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("known", [False, True], ids=["unknown", "known"])
def test_200_megabytes_in_chunks_end_early_and_cost_no_memory(tmp_path, known):
    with running_process(tmp_path) as server:
        still_served_process(server)
        before = resident_bytes(server.process.pid)
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        token = server.issuer.token() if known else None
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            connection.sendall(head(server, b"Transfer-Encoding: chunked", token=token))
            sent, answer = 0, b""
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                while sent < 200 * 1024 * 1024:
                    connection.sendall(chunk)
                    sent += len(chunk)
            with contextlib.suppress(ConnectionResetError):
                answer = connection.recv(65536)
        assert sent < 32 * MESSAGE_BYTES_MAX  # what the kernels hold on the way, and no more
        assert answer == b"" or status_of(answer) == (413 if known else 401)
        assert resident_bytes(server.process.pid) - before < 16 * 1024 * 1024
        still_served_process(server)


def still_served_process(server: Server) -> None:
    assert server.rpc("tools/list", token=server.issuer.probe()).status_code == 200


def test_an_unknown_sender_is_answered_before_the_body_has_come(server):
    for line in (
        b"Content-Length: 200000000",
        b"Transfer-Encoding: chunked",
        b"Content-Length: 100000\r\nExpect: 100-continue",
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(head(server, line, token=None))
            assert status_of(connection.recv(65536)) == 401


def test_a_known_sender_of_a_large_declared_body_is_answered_before_it_has_come(server):
    for size in (BODY_BYTES_MAX + 1, 10**12, 10**30):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(head(server, b"Content-Length: %d" % size, token=server.issuer.token()))
            assert status_of(connection.recv(65536)) in {400, 413}


def padded(size: int) -> bytes:
    """A good message of exactly this many bytes."""
    body = request("tools/call", {"name": "get_order", "arguments": {"note": "@"}})[0].encode()
    return body.replace(b"@", b"x" * (size - len(body) + 1))


@pytest.mark.parametrize("chunked", [False, True])
def test_the_limit_of_a_body_is_exact_however_it_is_sent(server, chunked):
    for size, status in ((BODY_BYTES_MAX, 200), (BODY_BYTES_MAX + 1, 413)):
        _, headers = request("tools/call", {"name": "get_order"}, token=server.issuer.token())
        body = padded(size)
        content = iter([body[:1000], body[1000:]]) if chunked else body
        assert server.client.post(server.url, content=content, headers=headers).status_code == status


def test_a_length_that_lies_is_found_out(server):
    token = server.issuer.token()
    body = request("tools/call", {"name": "get_order", "arguments": {}})[0].encode()
    _, headers = request("tools/call", {"name": "get_order"}, token=token)
    lines = b"\r\n".join(b"%s: %s" % (name.encode(), value.encode()) for name, value in headers.items())
    start = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n" % (server.port, lines)
    before = len(server.dispatcher.calls)
    short = raw(server.port, start + b"Content-Length: 10\r\nConnection: close\r\n\r\n" + body)
    assert status_of(short) == 400
    both = raw(server.port, start + b"Content-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
    assert status_of(both) == 400
    twice = raw(server.port, start + b"Content-Length: 10\r\nContent-Length: 11\r\n\r\n" + body)
    assert status_of(twice) == 400
    assert len(server.dispatcher.calls) == before
    still_served(server)


def test_a_compressed_bomb_is_never_unpacked(server):
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < BODY_BYTES_MAX
    _, headers = request("tools/call", {"name": "get_order"}, token=server.issuer.token())
    started = time.process_time()
    assert server.post(bomb, {**headers, "Content-Encoding": "gzip"}).status_code == 415
    assert server.post(bomb, headers).status_code == 400
    assert time.process_time() - started < 2


@pytest.mark.parametrize("part", ["nothing", "half a head", "half a body", "half a body, unknown"])
def test_a_request_that_never_ends_is_ended(tmp_path, part):
    with running(StubDispatcher(), tmp_path, http=Quick) as server:
        token = None if part.endswith("unknown") else server.issuer.token()
        whole = head(server, b"Content-Length: 1000", token=token)
        sent = {"nothing": b"", "half a head": whole[:30]}.get(part, whole + b'{"jsonrpc"')
        started = time.monotonic()
        answer = raw(server.port, sent)
        assert time.monotonic() - started < 10
        assert answer == b"" or status_of(answer) == 401
        assert server.dispatcher.calls == []


def test_one_byte_at_a_time_is_not_forever_and_others_are_served_meanwhile(tmp_path):
    with running(StubDispatcher(), tmp_path, http=Quick) as server:
        slow = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(20)]
        started, ended = time.monotonic(), 0
        whole = head(server, b"Content-Length: 100000", token=server.issuer.token())
        for byte in whole + b" " * 100_000:
            for connection in list(slow):
                try:
                    connection.sendall(bytes([byte]))
                except (ConnectionResetError, BrokenPipeError):
                    connection.close()
                    slow.remove(connection)
                    ended += 1
            if not slow:
                break
            assert time.monotonic() - started < 10
        still_served(server)
        assert ended == 20


def idle(server: Server, part: str) -> socket.socket:
    """A connection that is held and asks for nothing any more."""
    whole = head(server, b"Content-Length: 1000", token=server.issuer.token())
    sent = {
        "nothing": b"",
        "half a head": whole[:30],
        "half a body": whole + b"{",
        "an answered request": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port,
    }[part]
    held = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    held.sendall(sent)
    if part == "an answered request":
        assert status_of(held.recv(65536)) == 200
    return held


@pytest.mark.parametrize("part", ["nothing", "half a head", "half a body", "an answered request"])
def test_connections_that_ask_for_nothing_shut_nobody_out_and_the_one_at_work_keeps_its_own(tmp_path, part):
    with running(StubDispatcher(), tmp_path, connections=16) as server, contextlib.ExitStack() as held:
        at_work = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        held.enter_context(at_work)
        asked = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port
        hoarded = []
        for _ in range(50):
            hoarded.append(held.enter_context(idle(server, part)))
            at_work.sendall(asked)
            assert status_of(at_work.recv(65536)) == 200
        still_served(server)
        for connection in hoarded[:30]:
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(65536) == b""  # let go of, without a word


def test_room_is_made_for_several_at_once_and_from_those_that_wait_longest(tmp_path):
    with running(StubDispatcher(), tmp_path, connections=128) as server, contextlib.ExitStack() as held:
        old = [held.enter_context(idle(server, "an answered request")) for _ in range(128)]
        held.enter_context(idle(server, "an answered request"))  # the one too many
        for connection in old[:4]:
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(65536) == b""
        for connection in old[-8:]:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port)
            assert status_of(connection.recv(65536)) == 200


def test_a_request_in_hand_gives_way_to_nobody(tmp_path):
    begun, go_on = threading.Event(), threading.Event()

    def answer(*_: object) -> Answered:
        begun.set()
        assert go_on.wait(10)
        return Answered(ORDER)

    class Slowly(StubDispatcher):
        async def dispatch(self, *call: Any) -> Answer:
            return await asyncio.to_thread(answer, *call)

    with running(Slowly(), tmp_path, connections=16) as server, ThreadPoolExecutor() as pool:
        calling = pool.submit(server.call)
        assert begun.wait(10)
        with contextlib.ExitStack() as held:
            for _ in range(25):
                held.enter_context(idle(server, "an answered request"))
            go_on.set()
            assert calling.result(10).status_code == 200


def test_a_head_without_end_is_ended(server):
    answer = raw(server.port, b"GET /healthz HTTP/1.1\r\n", *[b"X-%d: %s\r\n" % (n, b"a" * 8000) for n in range(1000)])
    assert answer == b"" or status_of(answer) == 431
    answer = raw(server.port, b"GET /", *[b"a" * 65536 for _ in range(100)])
    assert answer == b"" or status_of(answer) in {400, 431}
    still_served(server)


GARBAGE = {
    "noise": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 10,
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no version": b"POST /mcp\r\n\r\n",
    "a bare line feed in the head": b"POST /mcp HTTP/1.1\nHost x\n\n",
    "a name with a blank": b"POST /mcp HTTP/1.1\r\nHost : x\r\n\r\n",
    "bad chunk": b"POST /mcp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a method of ours": b"CALL /mcp HTTP/1.1\r\nHost: x\r\n\r\n",
    "letters in the path that are none": b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_what_is_no_http_gets_400_and_no_more(server, garbage):
    answer = raw(server.port, garbage)
    assert answer == b"" or status_of(answer) in {400, 421}
    assert b"Traceback" not in answer
    still_served(server)


def test_garbage_behind_a_good_request_does_not_reach_a_tool(server):
    body, headers = request("tools/call", {"name": "get_order", "arguments": {}}, token=server.issuer.token())
    lines = b"".join(b"%s: %s\r\n" % (name.encode(), value.encode()) for name, value in headers.items())
    good = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%sContent-Length: %d\r\n\r\n%s" % (
        server.port, lines, len(body), body.encode(),
    )  # fmt: skip
    before = len(server.dispatcher.calls)
    answer = raw(server.port, good + good + b"\x00\x01 garbage\r\n\r\n" + good)
    assert len(server.dispatcher.calls) - before <= 2
    assert b" 500 " not in answer
    still_served(server)


def test_two_requests_in_one_packet_are_each_judged_by_their_own_token(server):
    body, headers = request("tools/call", {"name": "get_order", "arguments": {}}, token=server.issuer.token())
    lines = {**headers, "Host": f"127.0.0.1:{server.port}", "Content-Length": str(len(body))}

    def written(**changes: str) -> bytes:
        return "".join(
            [
                "POST /mcp HTTP/1.1\r\n",
                *(f"{name}: {value}\r\n" for name, value in {**lines, **changes}.items()),
                "\r\n",
                body,
            ]
        ).encode()

    before = len(server.dispatcher.calls)
    answer = raw(server.port, written() + written(Authorization="Bearer x.y.z", Connection="close"))
    assert (answer.count(b"HTTP/1.1 200"), answer.count(b"HTTP/1.1 401")) == (1, 1)
    assert len(server.dispatcher.calls) == before + 1


def test_a_long_string_within_the_limit_is_only_a_string(server):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x" * 200_000})
    _, headers = request("tools/list", token=server.issuer.token())
    assert server.post(body, headers).status_code in {400, 404}


def test_a_socket_that_wants_another_protocol_gets_none(server):
    lines = [b"GET /mcp HTTP/1.1", b"Host: 127.0.0.1:%d" % server.port, b"Connection: upgrade", b"Upgrade: websocket"]
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(b"\r\n".join([*lines, b"Sec-WebSocket-Version: 13", b"", b""]))
        assert status_of(connection.recv(65536)) == 405
    still_served(server)
