"""The official client against the real server over a real socket, in both protocol revisions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import jsonschema
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from structlog.testing import capture_logs

from shared_contracts.contract import CONTRACT_META
from shared_contracts.errors import ERROR_META, ERRORS
from shared_contracts.tools import TOOLS
from tests.support.server import LEGACY, MODERN, ORDER, Server, StubDispatcher, message_of, running
from tool_server.call import Refused

MODES = pytest.mark.parametrize("mode", ["auto", "legacy", MODERN])
ERAS = pytest.mark.parametrize("era", [MODERN, LEGACY])


class Bearer(httpx2.Auth):
    """A fresh token for every request, as the host mints one for every call."""

    def __init__(self, mint: Callable[[], str]) -> None:
        self._mint = mint

    def auth_flow(self, request: httpx2.Request) -> Any:
        request.headers["Authorization"] = f"Bearer {self._mint()}"
        yield request


@asynccontextmanager
async def connected(server: Server, mode: str, mint: Callable[[], str]) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(auth=Bearer(mint), timeout=10, trust_env=False, verify=False) as http,
        Client(streamable_http_client(server.url, http_client=http), mode=mode, read_timeout_seconds=10) as client,
    ):
        yield client


def talk(
    server: Server, mode: str, work: Callable[[Client], Awaitable[Any]], mint: Callable[[], str] | None = None
) -> Any:
    async def run() -> Any:
        async with connected(server, mode, server.issuer.token if mint is None else mint) as client:
            return await work(client)

    return asyncio.run(run())


@MODES
def test_the_official_client_lists_and_calls(server, mode):
    async def work(client: Client) -> tuple[Any, Any]:
        return await client.list_tools(), await client.call_tool("get_order", {"order_id": "R-1001"})

    tools, result = talk(server, mode, work)
    assert [tool.name for tool in tools.tools] == sorted(TOOLS)
    assert not result.is_error
    assert result.structured_content == ORDER


def started(server: Server, protocol: str) -> dict[str, Any]:
    start = {"protocolVersion": protocol, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    response = server.rpc("initialize", start, token=server.issuer.probe(), era=LEGACY)
    assert "mcp-session-id" not in response.headers
    return dict(message_of(response)["result"])


def test_both_revisions_answer_the_same_capabilities(server):
    old = started(server, LEGACY)
    new = message_of(server.rpc("server/discover", {}, token=server.issuer.probe(), era=MODERN))["result"]
    assert {MODERN, LEGACY} <= set(new["supportedVersions"])
    assert old["capabilities"] == new["capabilities"] == {"tools": {"listChanged": False}}
    assert old["serverInfo"] == new["_meta"]["io.modelcontextprotocol/serverInfo"]
    assert (old["serverInfo"]["name"], set(old["serverInfo"])) == ("kessai-tools", {"name", "version"})


@MODES
@pytest.mark.parametrize("code", ["not_found", "internal_error", "approval_required"])
def test_a_refusal_reaches_the_client_with_its_code_whatever_the_output_schema_says(tmp_path, mode, code):
    refusal = Refused(code, "a sentence", {"reason": "a_reason"})
    with running(StubDispatcher(answer=lambda *_: refusal), tmp_path) as server:
        result = talk(server, mode, lambda client: client.call_tool("get_order", {"order_id": "R-1001"}))
    assert result.is_error
    assert result.structured_content is None
    error = result.meta[ERROR_META]
    row = ERRORS[code]
    assert (error["code"], error["category"], error["retryable"]) == (code, row.category.value, row.retryable)
    assert (error["outcome_known"], error["details"]) == (row.outcome_known, {"reason": "a_reason"})
    assert f'"code":"{code}"' in result.content[0].text


@MODES
def test_a_bug_in_a_handler_is_an_answer_with_a_code_and_the_server_lives(tmp_path, mode):
    def bug(*_: object) -> Any:
        raise ZeroDivisionError("secret detail")

    with running(StubDispatcher(answer=bug), tmp_path) as server:
        result = talk(server, mode, lambda client: client.call_tool("get_order", {"order_id": "R-1001"}))
        assert result.is_error
        assert result.meta[ERROR_META]["code"] == "internal_error"
        assert not result.meta[ERROR_META]["outcome_known"]
        assert "secret" not in result.model_dump_json()
        assert server.client.get(f"{server.origin}/readyz").status_code == 200


async def error_of(client: Client, name: str) -> MCPError:
    with pytest.raises(MCPError) as caught:
        await client.session.call_tool(name, {})
    return caught.value


@MODES
def test_an_unknown_tool_is_a_protocol_error_with_a_code(server, mode):
    error = talk(server, mode, lambda client: error_of(client, "no_such_tool"))
    assert (error.code, error.data["code"]) == (-32602, "unknown_tool")


@MODES
def test_a_missing_scope_arrives_as_an_error_with_its_code_and_the_scope_that_is_needed(server, mode):
    def mint() -> str:
        return server.issuer.token(scope="orders:read")

    error = talk(server, mode, lambda client: error_of(client, "create_return"), mint)
    assert (error.code, error.data["code"]) == (-31403, "scope_missing")
    assert error.data["details"] == {"scope": "returns:write"}


@ERAS
def test_a_call_that_is_refused_at_the_edge_is_in_the_log_of_calls_too(tmp_path, era):
    dispatcher = StubDispatcher()
    with capture_logs() as lines, running(dispatcher, tmp_path) as server:
        weak, probe = server.issuer.token(scope="orders:read", jti="weak"), server.issuer.probe(jti="probe")
        assert server.call("create_return", token=weak, era=era).status_code == 403
        assert server.call(token=probe, era=era).status_code == 403
        assert "error" in message_of(server.call("no_such_tool", era=era))
    said = [(line["code"], line["jti"], line["needed"]) for line in lines if line["event"] == "refused"]
    assert said == [("scope_missing", "weak", "returns:write"), ("scope_missing", "probe", "orders:read")]
    expected = [("create_return", "scope_missing"), ("get_order", "scope_missing"), ("no_such_tool", "unknown_tool")]
    assert (dispatcher.refused, dispatcher.calls) == (expected, [])


@ERAS
def test_a_log_of_calls_that_is_away_changes_no_refusal(tmp_path, era):
    class Away(StubDispatcher):
        async def dispatch(self, *_: object) -> Any:
            raise OSError("secret detail")

    with running(Away(), tmp_path) as server:
        response = server.call("create_return", token=server.issuer.token(scope="orders:read"), era=era)
        assert response.status_code == 403
        assert "secret" not in response.text


def test_the_challenge_names_the_scope_of_the_one_tool_and_the_metadata(server):
    for name, tool in TOOLS.items():
        others = " ".join(sorted({other.scope.value for other in TOOLS.values()} - {tool.scope.value}))
        response = server.call(name, token=server.issuer.token(scope=others))
        assert response.status_code == 403
        challenge = response.headers["www-authenticate"]
        assert challenge.startswith('Bearer error="insufficient_scope"')
        assert f'error_description="The tool needs the scope {tool.scope.value}."' in challenge
        assert f'scope="{tool.scope.value}"' in challenge
        assert f'resource_metadata="{server.origin}/.well-known/oauth-protected-resource/mcp"' in challenge


@ERAS
def test_a_listed_tool_is_its_contract(server, era):
    tools = message_of(server.rpc("tools/list", token=server.issuer.probe(), era=era))["result"]["tools"]
    for listed in tools:
        tool = TOOLS[listed["name"]]
        assert (listed["inputSchema"], listed["outputSchema"]) == (tool.input_schema, tool.output_schema)
        assert listed["_meta"][CONTRACT_META] == {"version": tool.version, "schema_digest": tool.schema_digest}
        assert listed["annotations"]["readOnlyHint"] is not tool.writes
        if tool.name.startswith("caseops_"):
            assert listed["annotations"] == {
                "readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False,
            }  # fmt: skip
        for schema in (listed["inputSchema"], listed["outputSchema"]):
            assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["additionalProperties"] is False


@ERAS
def test_no_argument_of_any_tool_is_an_address(server, era):
    tools = message_of(server.rpc("tools/list", token=server.issuer.probe(), era=era))["result"]["tools"]
    text = [str(tool["inputSchema"]).lower() for tool in tools]
    assert not any(word in schema for schema in text for word in ("'uri'", "'url'", "format': 'uri", "href", "://'"))


@ERAS
def test_a_removed_tool_is_listed_no_more_from_the_next_listing_on(tmp_path, era):
    dispatcher = StubDispatcher()
    with running(dispatcher, tmp_path) as server:
        for removed in (frozenset({"create_return"}), frozenset()):
            dispatcher.removed = removed
            result = message_of(server.rpc("tools/list", token=server.issuer.probe(), era=era))["result"]
            assert {tool["name"] for tool in result["tools"]} == set(TOOLS) - removed
            if era == MODERN:
                assert result["ttlMs"] <= 5000


@ERAS
def test_a_store_that_fails_while_listing_is_an_error_with_a_code(tmp_path, era):
    class Failing(StubDispatcher):
        async def disabled(self) -> frozenset[str]:
            raise OSError("secret detail")

    with capture_logs() as lines, running(Failing(), tmp_path) as server:
        response = server.rpc("tools/list", token=server.issuer.probe(), era=era)
    assert message_of(response)["error"]["data"]["code"] == "unavailable"
    assert "listing_failed" in [line["event"] for line in lines]
    assert "secret" not in response.text + repr(lines)


@ERAS
def test_a_session_id_is_no_identity_and_opens_nothing(server, era):
    mine = {"Mcp-Session-Id": "a-session-of-somebody-else"}
    assert server.call(era=era, headers=mine).status_code == 200
    assert server.call(era=era, headers=mine, token=None).status_code == 401
    for method in ("GET", "DELETE"):
        response = server.client.request(method, server.url, headers={**mine, "Accept": "text/event-stream"})
        assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_every_request_is_judged_by_its_own_token(server):
    strong, weak = server.issuer.token(), server.issuer.token(scope="orders:read")
    stale = server.issuer.token(exp=1)
    sequence = [(strong, 200), (weak, 403), (strong, 200), (stale, 401), (strong, 200)]
    for era in (MODERN, LEGACY):
        answers = [server.call("create_return", token=token, era=era).status_code for token, _ in sequence]
        assert answers == [status for _, status in sequence]


def test_the_old_revisions_handshake_needs_no_session(server):
    assert started(server, LEGACY)["protocolVersion"] == LEGACY


@pytest.mark.parametrize("wanted", ["2099-01-01", MODERN, "1.0", ""])
def test_who_begins_with_a_revision_that_has_no_handshake_here_is_offered_the_newest_that_has(server, wanted):
    assert started(server, wanted)["protocolVersion"] == LEGACY


def test_what_is_offered_is_tools_and_nothing_else(server):
    for era in (MODERN, LEGACY):
        for method in ("resources/list", "prompts/list", "completion/complete", "logging/setLevel", "no/such"):
            response = server.rpc(method, {}, token=server.issuer.token(), era=era)
            assert message_of(response)["error"]["code"] in {-32601, -32602}
            assert response.status_code in {200, 400, 404}


def test_a_call_in_plain_json_where_nothing_streams_and_as_a_stream_in_the_old_revision(server):
    assert server.call(era=MODERN).headers["content-type"] == "application/json"
    assert server.call(era=LEGACY).headers["content-type"].startswith("text/event-stream")


def test_the_dispatcher_is_entered_once_and_left_at_the_end(tmp_path):
    dispatcher = StubDispatcher()
    with running(dispatcher, tmp_path) as server:
        assert [server.call().status_code for _ in range(3)] == [200, 200, 200]
        assert dispatcher.entered == 1
    assert dispatcher.entered == 0


def test_two_replicas_answer_alternating_requests_alike(tmp_path):
    with running(StubDispatcher(), tmp_path) as one:
        names = {"allowed_hosts": (f"127.0.0.1:{one.port}",)}
        with running(StubDispatcher(), tmp_path / "two", **names) as two:
            answers = [
                message_of(server.call(era=era))["result"]["structuredContent"]
                for era in (MODERN, LEGACY)
                for server in (one, two, one, two)
            ]
    assert all(answer == ORDER for answer in answers)
