"""Whom a request is addressed to, and from which page: checked first, for every route, with or without a token."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from shared_contracts.log_limit import MANY, LogLimit
from tests.support.server import StubDispatcher, raw, raw_post, request, running, status_of

ROUTES = (
    "POST /mcp",
    "GET /mcp",
    "GET /healthz",
    "GET /readyz",
    "GET /.well-known/oauth-protected-resource/mcp",
    "GET /x",
)
NAMES = {"allowed_hosts": "tools:8000, tools.example", "allowed_origins": "https://console.example"}


def ask(port: int, route: str, *lines: bytes) -> int:
    return status_of(raw(port, b"\r\n".join([f"{route} HTTP/1.1".encode(), b"Connection: close", *lines, b"", b""])))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "host",
    [
        b"evil.example",
        b"127.0.0.1",
        b"127.0.0.1:1",
        b"",
        b"localhost:8801",
        b"evil.example@127.0.0.1",
        b"[::1]",
        b"\xff",
    ],
)
def test_a_request_for_another_host_is_misdirected(server, route, host):
    assert ask(server.port, route, b"Host: " + host) == 421


@pytest.mark.parametrize("route", ROUTES)
def test_a_request_for_no_host_or_for_two_is_misdirected(server, route):
    own = b"Host: 127.0.0.1:%d" % server.port
    assert ask(server.port, route) in {400, 421}
    assert ask(server.port, route, own, b"Host: evil.example") in {400, 421}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("origin", [b"http://evil.example", b"null", b"", b"https://127.0.0.1", b"file://"])
def test_a_page_of_another_origin_is_refused(server, route, origin):
    assert ask(server.port, route, b"Host: 127.0.0.1:%d" % server.port, b"Origin: " + origin) == 403


def test_names_and_origins_that_the_operator_adds_are_served_and_compared_whole(tmp_path):
    with running(StubDispatcher(), tmp_path, **NAMES) as server:
        for host in (b"tools:8000", b"TOOLS.example", b"127.0.0.1:%d" % server.port):
            assert ask(server.port, "GET /healthz", b"Host: " + host) == 200
        for host in (b"tools", b"tools:80000", b"tools.example:8000", b"a.tools.example", b"tools:8000.evil.example"):
            assert ask(server.port, "GET /healthz", b"Host: " + host) == 421
        own = b"Host: tools:8000"
        assert ask(server.port, "GET /healthz", own, b"Origin: https://console.example") == 200
        for origin in (
            b"http://console.example",
            b"https://console.example:1",
            b"https://console.example.evil.example",
        ):
            assert ask(server.port, "GET /healthz", own, b"Origin: " + origin) == 403


def test_white_space_around_a_header_value_is_no_part_of_it(server):
    body, headers = request("tools/call", {"name": "get_order", "arguments": {}}, token=server.issuer.token())
    lines = [b"%s: \t %s \t" % (name.encode(), value.encode()) for name, value in headers.items()]
    assert status_of(raw_post(server, *lines, body=body.encode())) == 200
    assert ask(server.port, "GET /healthz", b"Host: \t127.0.0.1:%d \t" % server.port) == 200


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("coding", [b"gzip, chunked", b"chunked;q=1, chunked", b"gzip\r\nTransfer-Encoding: chunked"])
def test_a_body_in_a_transfer_coding_that_is_not_understood_is_refused_on_every_route(server, route, coding):
    own = b"Host: 127.0.0.1:%d" % server.port
    assert ask(server.port, route.replace("GET", "POST"), own, b"Transfer-Encoding: " + coding) == 501


def test_a_forwarded_host_changes_nothing(server):
    lines = (b"Host: evil.example", b"X-Forwarded-Host: 127.0.0.1:%d" % server.port, b"Forwarded: host=127.0.0.1")
    assert ask(server.port, "GET /healthz", *lines) == 421


def test_however_many_ask_for_another_host_or_from_another_page_the_log_stays_bounded(tmp_path):
    ways = ((b"Host: evil.example",), (b"Host: tools:8000", b"Origin: http://evil.example"))
    with capture_logs() as lines, running(StubDispatcher(), tmp_path, **NAMES) as server:
        for number in range(4 * MANY):
            assert ask(server.port, "GET /healthz", *ways[number % 2]) in {421, 403}
    written = [line for line in map(LogLimit().written, lines) if line is not None and "code" in line]
    assert [(line["event"], line["code"], line["reason"]) for line in written] == [
        (event, "invalid_request", reason)
        for event in ("refused",) * (MANY - 1) + ("many_alike",)
        for reason in ("host", "origin")
    ]
