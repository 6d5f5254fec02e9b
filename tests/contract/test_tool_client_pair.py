"""Our client against our own server's edge, over a real socket, with real tokens, in both protocol revisions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from host.domain.outcome import Rejected, Success, Unknown
from host.engine.parts import Request, new_id, new_jti
from host.tool_client import transport
from host.tool_client.client import CallRequest, ToolClient
from host.tool_client.gateway import Gateway
from host.tool_client.mint import Minter, SigningKey
from host.tool_client.pace import Pace, Rates
from host.tool_client.readiness import Listing, NotReady, Ready, Reason, check
from shared_contracts.errors import ERRORS
from shared_contracts.tools import TOOLS
from tests.support.calling import run, told
from tests.support.older_relay import older_relay
from tests.support.results import RESULTS
from tests.support.server import LEGACY, MODERN, Server, StubDispatcher, running
from tool_server import serve
from tool_server.call import Answered, Refused

T = TypeVar("T")
ARGUMENTS = {"order_id": "A-1"}
revisions = pytest.mark.parametrize("revision", [MODERN, LEGACY])


@dataclass(frozen=True)
class Pair:
    """A running server and what the host would have on it."""

    server: Server
    minter: Minter

    def request(self, tool: str, minter: Minter | None = None, **changes: Any) -> CallRequest:
        asked = self.asked(tool)
        token = (self.minter if minter is None else minter).call(replace(asked, **changes))
        return CallRequest(asked.tool, ARGUMENTS, token, asked.timeout_seconds, asked.correlation)

    @staticmethod
    def asked(tool: str) -> Request:
        contract = TOOLS[tool]
        return Request(
            jti=new_jti(), tenant_id="tenant-a", subject="agent-1", workflow_id=new_id(), tool=contract, customer="C-1",
            resource="A-1", arguments=ARGUMENTS, attempt=1, requested_at=datetime.now(UTC), timeout_seconds=10.0,
            idempotency_key=f"wf-1:{tool}" if contract.idempotency_key else None,
            correlation={"dev.kessai/step_id": "s-1"}, approval=None, approved_version=None,
        )  # fmt: skip

    @asynccontextmanager
    async def client(self, revision: str) -> AsyncIterator[ToolClient]:
        def probe() -> str:
            return self.minter.probe()

        if revision == MODERN:
            async with ToolClient(self.server.url, probe) as client:
                yield client
        else:
            async with older_relay(self.server.port) as url, ToolClient(url, probe) as client:
                yield client

    def run(self, revision: str, scene: Callable[[ToolClient], Awaitable[T]]) -> T:
        async def whole() -> T:
            async with self.client(revision) as client:
                return await scene(client)

        return run(whole())


@pytest.fixture
def dispatcher() -> StubDispatcher:
    return StubDispatcher(answer=lambda _caller, name, _arguments: Answered(RESULTS[name]))


def _pair(server: Server) -> Pair:
    key = SigningKey(server.issuer.kid, server.issuer.private)
    return Pair(server, Minter(key, server.issuer.name, server.issuer.resource))


@pytest.fixture
def pair(dispatcher: StubDispatcher, tmp_path: Path) -> Iterator[Pair]:
    with running(dispatcher, tmp_path) as server:
        yield _pair(server)


@revisions
def test_the_pair_is_ready(pair: Pair, revision: str) -> None:
    assert pair.run(revision, lambda client: check(client, TOOLS)) == Ready(revision, frozenset(TOOLS))


@revisions
def test_a_disabled_tool_is_not_available(pair: Pair, dispatcher: StubDispatcher, revision: str) -> None:
    dispatcher.removed = frozenset({"create_return"})
    found = pair.run(revision, lambda client: check(client, TOOLS))
    assert found == Ready(revision, frozenset(TOOLS) - {"create_return"})


@revisions
@pytest.mark.parametrize("tool", ["get_order", "create_return", "find_return"])
def test_a_call_arrives_once_and_its_result_comes_back(
    pair: Pair, dispatcher: StubDispatcher, revision: str, tool: str
) -> None:
    outcome = pair.run(revision, lambda client: client.call(pair.request(tool)))
    assert outcome == Success(RESULTS[tool])
    ((caller, name, arguments),) = dispatcher.calls
    assert (name, arguments) == (tool, ARGUMENTS)
    assert caller.claims.authorization_details[0].tool == tool


@revisions
def test_every_code_that_a_tool_answers_with_arrives_as_that_code(
    pair: Pair, dispatcher: StubDispatcher, revision: str
) -> None:
    async def scene(client: ToolClient) -> None:
        for code in sorted(set(ERRORS) - {"unreachable", "no_answer", "unknown_tool"}):
            dispatcher.answer = lambda *_, code=code: Refused(code, "In words.", {"line_id": "L1"})
            outcome = await client.call(pair.request("create_return"))
            assert isinstance(outcome, Rejected if ERRORS[code].outcome_known else Unknown)
            assert (outcome.error.code, outcome.error.message) == (code, "In words.")
            assert outcome.error.details == {"line_id": "L1"}

    pair.run(revision, scene)


@revisions
@pytest.mark.parametrize("tool", ["get_order", "create_return"])
def test_what_means_another_contract_is_not_executed_and_nothing_more_is_proposed(
    pair: Pair, dispatcher: StubDispatcher, revision: str, tool: str
) -> None:
    ours, request = TOOLS[tool], pair.asked(tool)
    newer = replace(request, tool=replace(ours, version=f"{ours.version}.1"))

    async def scene(client: ToolClient) -> None:
        listing = Listing(client, TOOLS)
        gateway = Gateway(client, pair.minter, listing, Pace(Rates(principal=100.0, tenant=100.0)))
        await listing.refresh()
        outcome = await gateway.call(newer)
        assert isinstance(outcome, Rejected)
        assert (outcome.error.code, outcome.error.details) == ("unavailable", {"contract": ours.mark})
        assert (dispatcher.calls, gateway.available()) == ([], frozenset())
        assert dispatcher.refused == [(tool, "unavailable")]
        await listing.refresh()
        assert gateway.available() == frozenset(TOOLS), "the server is the one that we mean"
        assert await gateway.call(replace(request, jti=new_jti())) == Success(RESULTS[tool])

    pair.run(revision, scene)


@pytest.mark.parametrize(
    ("code", "gone"), [("tool_disabled", {"get_order"}), ("not_found", set()), ("token_invalid", set(TOOLS))]
)
def test_what_a_refusal_says_of_a_tool_or_of_us_takes_it_out_until_the_next_listing(
    pair: Pair, dispatcher: StubDispatcher, code: str, gone: set[str]
) -> None:
    issuer = pair.server.issuer
    elsewhere = Minter(SigningKey(issuer.kid, issuer.private), issuer.name, "http://elsewhere.example/mcp")
    dispatcher.answer = lambda *_: Refused(code, "In words.")

    async def scene(client: ToolClient) -> None:
        listing = Listing(client, TOOLS)
        minter = elsewhere if code == "token_invalid" else pair.minter
        gateway = Gateway(client, minter, listing, Pace(Rates(principal=100.0, tenant=100.0)))
        await listing.refresh()
        outcome = await gateway.call(pair.asked("get_order"))
        assert told(outcome) == ("Rejected", code)
        assert gateway.available() == frozenset(TOOLS) - gone
        await listing.refresh()
        assert gateway.available() == frozenset(TOOLS)

    pair.run(MODERN, scene)


@revisions
def test_a_tool_that_the_server_does_not_know_is_refused(pair: Pair, dispatcher: StubDispatcher, revision: str) -> None:
    request = pair.request("get_order")
    unheard = replace(request, tool=replace(request.tool, name="get_orders"))
    outcome = pair.run(revision, lambda client: client.call(unheard))
    assert told(outcome) == ("Rejected", "unknown_tool")


@revisions
def test_a_handler_that_fails_leaves_a_write_unknown(pair: Pair, dispatcher: StubDispatcher, revision: str) -> None:
    def fail(*_: object) -> Answered:
        raise LookupError("secret detail")

    dispatcher.answer = fail
    outcome = pair.run(revision, lambda client: client.call(pair.request("create_return")))
    assert told(outcome) == ("Unknown", "internal_error")
    assert "secret" not in repr(outcome)


@revisions
def test_a_scope_that_is_missing_is_refused_with_the_challenge(pair: Pair, revision: str) -> None:
    request = replace(pair.request("get_order"), tool=TOOLS["create_return"])
    outcome = pair.run(revision, lambda client: client.call(request))
    assert isinstance(outcome, Rejected)
    assert outcome.error.code == "scope_missing"
    assert outcome.error.details["status"] == 403
    assert outcome.error.details["challenge"]["scope"] == "returns:write"


@revisions
def test_a_token_for_another_resource_is_refused(pair: Pair, revision: str) -> None:
    issuer = pair.server.issuer
    elsewhere = Minter(SigningKey(issuer.kid, issuer.private), issuer.name, "http://elsewhere.example/mcp")
    outcome = pair.run(revision, lambda client: client.call(pair.request("create_return", elsewhere)))
    assert told(outcome) == ("Rejected", "token_invalid")


@revisions
def test_a_probe_token_calls_nothing(pair: Pair, dispatcher: StubDispatcher, revision: str) -> None:
    request = replace(pair.request("get_order"), token=pair.minter.probe())
    outcome = pair.run(revision, lambda client: client.call(request))
    assert isinstance(outcome, Rejected)
    assert dispatcher.calls == []


def test_a_host_that_the_server_does_not_trust_is_not_ready(pair: Pair) -> None:
    stranger = replace(pair, minter=Minter(SigningKey("key-1", pair.server.issuer.private), "https://x.example", "y"))
    found = stranger.run(MODERN, lambda client: check(client, TOOLS))
    assert isinstance(found, NotReady)
    assert found.reason is Reason.REFUSED


@revisions
def test_a_call_over_the_rate_is_refused_with_a_time_to_wait(
    dispatcher: StubDispatcher, tmp_path: Path, revision: str
) -> None:
    with running(dispatcher, tmp_path, rate_principal=2) as server:
        pair = _pair(server)

        async def scene(client: ToolClient) -> list[Any]:
            return [await client.call(pair.request("create_return")) for _ in range(8)]

        refused = [outcome for outcome in pair.run(revision, scene) if not isinstance(outcome, Success)]
    assert refused
    for outcome in refused:
        assert told(outcome) == ("Rejected", "rate_limited")
        assert outcome.error.retry_after_seconds >= 1
    assert len(dispatcher.calls) == 8 - len(refused)


@revisions
def test_fifty_calls_at_once_come_back_each_to_its_own_caller(
    pair: Pair, dispatcher: StubDispatcher, revision: str
) -> None:
    def own(caller: Any, _name: str, _arguments: Any) -> Answered:
        return Answered({**RESULTS["get_order"], "order_id": caller.claims.authorization_details[0].resource})

    dispatcher.answer = own
    orders = [f"A-{number}" for number in range(50)]

    async def scene(client: ToolClient) -> list[Any]:
        requests = [pair.request("get_order", resource=order) for order in orders]
        return list(await asyncio.gather(*map(client.call, requests)))

    outcomes = pair.run(revision, scene)
    assert [outcome.result["order_id"] for outcome in outcomes] == orders


def test_the_host_lets_an_idle_connection_go_before_the_server_closes_it() -> None:
    assert transport.KEEP_ALIVE_SECONDS <= serve.KEEP_ALIVE_SECONDS - 1
