"""What anybody may ask without a token: how to get one, and whether the server works."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from shared_contracts.contract import READING
from shared_contracts.log_limit import MANY, LogLimit
from tests.support.server import StubDispatcher, running
from tests.support.tokens import ISSUER


def test_the_challenge_leads_to_the_metadata_that_names_resource_and_issuers(server):
    challenge = server.call(token=None).headers["www-authenticate"]
    address = re.search(r'resource_metadata="([^"]+)"', challenge)
    assert address is not None
    document = server.client.get(address[1]).json()
    assert document["resource"] == server.issuer.resource == server.url
    assert document["authorization_servers"] == [ISSUER]
    assert document["scopes_supported"] == sorted(scope.value for scope in READING)  # never a scope that writes
    assert document["bearer_methods_supported"] == ["header"]


def test_an_issuer_without_a_path_gets_no_slash_that_would_break_its_comparison(server):
    text = server.client.get(f"{server.origin}/.well-known/oauth-protected-resource/mcp").text
    assert f'"{ISSUER}"' in text


@pytest.mark.parametrize(
    "path", ["/", "/mcp/", "/mcp/x", "/MCP", "/.well-known/oauth-protected-resource", "/docs", "/metrics"]
)
def test_there_is_no_other_route(server, path):
    for method in ("GET", "POST"):
        assert server.client.request(method, f"{server.origin}{path}").status_code in {404, 405}


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE"])
def test_the_endpoint_takes_posts_alone(server, method):
    response = server.client.request(method, server.url)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


def ready(server) -> tuple[int, str | None]:
    response = server.client.get(f"{server.origin}/readyz")
    return response.status_code, response.json()["reason"]


def test_readiness_tells_what_the_store_says_while_the_process_lives(tmp_path):
    dispatcher = StubDispatcher()
    with running(dispatcher, tmp_path) as server:
        assert ready(server) == (200, None)
        dispatcher.unready = "database_down"
        assert ready(server) == (503, "database_down")
        assert server.client.get(f"{server.origin}/healthz").json() == {"status": "ok"}


def test_a_store_that_does_not_answer_or_fails_makes_the_server_unready_in_bounded_time(tmp_path):
    class Stuck(StubDispatcher):
        async def ready(self) -> str | None:
            if self.unready == "fail":
                raise OSError("secret detail")
            await asyncio.Event().wait()
            return None

    dispatcher = Stuck()
    with running(dispatcher, tmp_path) as server:
        assert ready(server) == (503, "readiness_slow")
        dispatcher.unready = "fail"
        assert ready(server) == (503, "internal_error")
        assert "secret" not in json.dumps(server.client.get(f"{server.origin}/readyz").json())


def test_whoever_asks_a_server_that_is_not_ready_does_not_fill_its_log(tmp_path):
    class Failing(StubDispatcher):
        async def ready(self) -> str | None:
            raise FileNotFoundError

    with capture_logs() as lines, running(Failing(), tmp_path) as server:
        assert {ready(server) for _ in range(100)} == {(503, "internal_error")}
    assert written(lines, "readiness_failed") == ["readiness_failed"] * (MANY - 1) + ["many_alike"]


def written(lines: Iterable[MutableMapping[str, Any]], event: str) -> list[str]:
    """What the log of a process has of an event."""
    kept = map(LogLimit().written, lines)
    return [line["event"] for line in kept if line is not None and event in {line["event"], line.get("of")}]


def test_a_fault_of_the_edge_that_a_caller_can_bring_about_again_and_again_does_not_fill_the_log(tmp_path):
    class Failing(StubDispatcher):
        async def log_refusal(self, *_: object) -> None:
            raise FileNotFoundError("secret detail")

    with capture_logs() as lines, running(Failing(), tmp_path) as server:
        token, close = server.issuer.token(scope="none"), {"Connection": "close"}
        answers = [server.call(token=token, headers=close) for _ in range(30)]
    assert {answer.status_code for answer in answers} == {500}
    assert written(lines, "edge_failed") == ["edge_failed"] * (MANY - 1) + ["many_alike"]
    assert "secret" not in repr(lines) + repr([(answer.text, answer.headers) for answer in answers])
