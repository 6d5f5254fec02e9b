"""Whoever sends ahead, or takes no answer, or fills what is sent with nothing, is let go of like any other."""

from __future__ import annotations

import socket
import threading

import pytest

from shared_contracts.log_limit import MANY
from tests.support.server import ORDER, StubDispatcher, raw, request, running, running_process, status_of
from tool_server.call import Answered
from tool_server.http import HEAD_BYTES_MAX, HEADER_BYTES, PIPELINED_MAX, BoundedHttp


def asked(port: int, *lines: bytes) -> bytes:
    return b"\r\n".join([b"GET /healthz HTTP/1.1", b"Host: 127.0.0.1:%d" % port, *lines, b"", b""])


def test_so_many_requests_may_be_sent_ahead_and_no_more(server):
    few = asked(server.port) * PIPELINED_MAX + asked(server.port, b"Connection: close")
    assert raw(server.port, few).count(b"HTTP/1.1 200") == PIPELINED_MAX + 1
    assert raw(server.port, asked(server.port) * 2000).count(b"HTTP/1.1 200") <= PIPELINED_MAX + 1
    assert server.call().status_code == 200


def test_headers_are_bounded_in_number_too(server):
    number = HEAD_BYTES_MAX // HEADER_BYTES
    assert status_of(raw(server.port, asked(server.port, *[b"a:"] * number))) == 431
    assert status_of(raw(server.port, asked(server.port, *[b"a:"] * 100, b"Connection: close"))) == 200


@pytest.mark.parametrize("size", [b"1", b"0"], ids=["of a chunk", "of the last one"])
def test_a_chunks_extension_has_an_end(server, size):
    head = asked(server.port, b"Transfer-Encoding: chunked").replace(b"GET", b"POST", 1)
    answer = raw(server.port, head, size + b";a=", *[b"x" * 65536 for _ in range(64)])
    assert answer == b"" or status_of(answer) in {400, 405}
    assert server.call().status_code == 200


def test_an_answer_that_nobody_takes_is_given_up(tmp_path):
    lost = threading.Event()

    class Watched(BoundedHttp):
        seconds_max = 0.5

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.set()

    large = StubDispatcher(answer=lambda *_: Answered({**ORDER, "note": "x" * 16_000_000}))
    with running(large, tmp_path, http=Watched) as server:
        body, headers = request("tools/call", {"name": "get_order", "arguments": {}}, token=server.issuer.token())
        lines = {**headers, "Host": f"127.0.0.1:{server.port}", "Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as held:
            held.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n{body}".encode())
            assert lost.wait(10)
            taken = 0
            while part := held.recv(1 << 20):
                taken += len(part)
            assert taken < 16_000_000


def test_what_is_no_http_has_a_bounded_number_of_lines(tmp_path):
    with running_process(tmp_path) as server:
        for _ in range(100):
            assert status_of(raw(server.port, b"no http\r\n\r\n")) == 400
            assert (
                status_of(
                    raw(
                        server.port,
                        asked(server.port, b"Connection: close").replace(b"127.0.0.1", b"elsewhere.example"),
                    )
                )
                == 421
            )
        assert server.call().status_code == 200
        code, said = server.end()
    lines = said.splitlines()
    assert code == 0
    for word in ("httptools_impl", '"reason": "host"'):
        told = [line for line in lines if word in line]
        assert MANY <= len(told) <= 2 * MANY  # of one minute, or of two
        assert any("many_alike" in line for line in told)
