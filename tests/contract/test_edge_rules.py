"""What the protocol asks of a server and its library leaves open, where no other file of this folder is about it."""

from __future__ import annotations

import ast
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from shared_contracts.contract import READING
from shared_contracts.tools import TOOLS
from tests.support.server import LEGACY, MODERN, ORDER, Server, message_of

ERAS = pytest.mark.parametrize("era", [MODERN, LEGACY])
ROOT = Path(__file__).parents[2]
# JSON-RPC's own numbers, and those that the revision defines
DEFINED = {-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022}


def result_of(server: Server, method: str, era: str) -> dict[str, Any]:
    return dict(message_of(server.rpc(method, {}, token=server.issuer.probe(), era=era))["result"])


@ERAS
def test_the_text_of_a_result_is_its_structured_part(server, era):
    result = message_of(server.call(era=era))["result"]
    (text,) = result["content"]
    assert json.loads(text["text"]) == result["structuredContent"] == ORDER


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
def test_what_may_be_kept_says_for_how_long_and_for_whom(server, method):
    result = result_of(server, method, MODERN)
    assert type(result["ttlMs"]) is int
    assert result["ttlMs"] >= 0
    assert result["cacheScope"] == "public"  # whoever asks is shown the same


@ERAS
def test_a_list_is_the_same_whoever_asks_and_however_often(server, era):
    asked = [server.issuer.probe(), server.issuer.token(scope="orders:read"), server.issuer.token(sub="clerk-2")]
    lists = [
        message_of(server.rpc("tools/list", token=token, era=era))["result"]["tools"] for token in (*asked, *asked)
    ]
    assert all(one == lists[0] for one in lists)


@ERAS
def test_whoever_asks_for_progress_of_what_reports_none_gets_the_answer_alone(server, era):
    params = {"name": "get_order", "arguments": {"order_id": "R-1001"}, "_meta": {"progressToken": "p-1"}}
    response = server.rpc("tools/call", params, token=server.issuer.token(), era=era)
    assert "notifications/progress" not in response.text
    assert message_of(response)["result"]["structuredContent"] == ORDER


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_no_tool_asks_for_a_capability_of_its_client(server, name):
    message = message_of(server.call(name, token=server.issuer.token(scope=TOOLS[name].scope.value)))
    assert "error" not in message
    assert message["result"]["resultType"] == "complete"


@ERAS
def test_no_parameter_is_copied_into_a_header(server, era):
    assert "x-mcp-header" not in json.dumps(result_of(server, "tools/list", era))


@ERAS
def test_every_error_number_is_one_that_the_protocol_defines_or_lies_outside_its_range(server, era):
    good, reads = server.issuer.token(), server.issuer.token(scope="orders:read")
    answers = [
        server.call(token=None, era=era),
        server.call(token="x", era=era),
        server.call("create_return", token=reads, era=era),
        server.call("no_such_tool", era=era),
        server.call(arguments=[1], era=era),
        server.call(rpc_id=None, era=era),
        server.rpc("no/such", {}, token=good, era=era),
        server.rpc("resources/read", {"uri": "a://b"}, token=good, era=era),
        server.call(era=era, headers={"MCP-Protocol-Version": "1999-01-01"}),
        server.call(era=era, headers={"Content-Type": "text/plain"}),
        server.call(era=era, headers={"Accept": "text/html"}),
        server.call(era=era, headers={"Host": "elsewhere.example"}),
        server.call(era=era, headers={"Origin": "https://elsewhere.example"}),
    ]
    numbers = [message_of(answer)["error"]["code"] for answer in answers]
    assert [number for number in numbers if -32768 <= number <= -32000 and number not in DEFINED] == []
    assert any(number < -32768 or number > -32000 for number in numbers)


@ERAS
def test_who_comes_without_credentials_is_told_what_to_bring_and_no_error(server, era):
    challenge = server.call(token=None, era=era).headers["www-authenticate"]
    assert re.search(r'^Bearer scope="[a-z: ]+", resource_metadata="http', challenge)
    assert "error" not in challenge


@ERAS
def test_whose_credentials_are_not_accepted_is_told_so_in_words_and_what_to_bring(server, era):
    now = int(time.time())
    response = server.call(token=server.issuer.token(iat=now - 90, nbf=now - 90, exp=now - 60), era=era)
    challenge = response.headers["www-authenticate"]
    assert response.status_code == 401
    assert challenge.startswith('Bearer error="invalid_token", error_description="The token has expired."')
    assert 'scope="' in challenge
    assert 'resource_metadata="' in challenge


def test_no_challenge_and_no_metadata_speaks_of_a_scope_that_outlives_its_token(server):
    reads = server.issuer.token(scope="orders:read")
    asked = [server.call(token=None), server.call(token="x"), server.call("create_return", token=reads)]
    challenges = [answer.headers["www-authenticate"] for answer in asked]
    metadata = server.client.get(f"{server.origin}/.well-known/oauth-protected-resource/mcp").json()
    scopes = [set(challenge.partition('scope="')[2].partition('"')[0].split()) for challenge in challenges]
    reading = {scope.value for scope in READING}
    assert scopes == [reading, reading, {"returns:write"}]
    assert set(metadata["scopes_supported"]) == reading
    assert "offline_access" not in repr((challenges, metadata))


def test_what_carries_calls_out_can_ask_nobody_over_http():
    """A token that came in is never handed on, since what sees it has no means to hand on anything."""
    calling = {"httpx2", "httpx", "requests", "aiohttp", "urllib.request", "http.client", "socket"}
    inner = [*(ROOT / "tool_server/tools").glob("*.py"), *(ROOT / "tool_server/store").glob("*.py")]
    inner += [ROOT / f"tool_server/{name}.py" for name in ("gate", "mcp_server", "dispatch", "binding", "auth", "call")]
    assert len(inner) > 20
    for file in inner:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        assert names & calling == set(), file
