"""Whether a tool server can be worked with is known before a case is accepted."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from host.tool_client.client import ToolClient
from host.tool_client.readiness import Listing, NotReady, Ready, Reason, check
from shared_contracts.tools import TOOLS
from tests.support.calling import PROBE, READ, pair, request, run, told
from tests.support.hostile_server import LEGACY, LIES, FakeToolServer, hints_of
from tests.support.misbehaviours import MODERN

NEEDED = frozenset(TOOLS)


def _check(**server: Any) -> Ready | NotReady:
    async def scene() -> Ready | NotReady:
        async with pair(**server) as (_, client):
            return await check(client, TOOLS)

    return run(scene())


@pytest.mark.parametrize(("era", "protocol"), [("modern", MODERN), ("legacy", LEGACY), ("session", LEGACY)])
def test_a_server_of_our_contracts_is_ready_in_either_revision(era: str, protocol: str) -> None:
    assert _check(era=era) == Ready(protocol, NEEDED)


def test_a_tool_that_is_not_listed_is_not_available_and_the_server_is_ready() -> None:
    found = _check(unlisted=frozenset({"create_return"}))
    assert found == Ready(MODERN, NEEDED - {"create_return"})


@pytest.mark.parametrize(
    "mark",
    [
        None,
        "1",
        {},
        {"version": "1"},
        {"version": "1", "schema_digest": "0" * 64},
        {"version": "2", "schema_digest": TOOLS["create_return"].schema_digest},
        {"version": 1, "schema_digest": TOOLS["create_return"].schema_digest},
        {"version": "1", "schema_digest": TOOLS["create_return"].schema_digest, "more": True},
    ],
)
def test_a_tool_of_another_contract_makes_the_server_not_ready(mark: Any) -> None:
    found = _check(contracts={"create_return": mark})
    assert isinstance(found, NotReady)
    assert found.reason is Reason.CONTRACT
    assert "create_return" in found.what


@pytest.mark.parametrize("name", sorted(NEEDED))
@pytest.mark.parametrize("change", [{"version": "0"}, {"schema_digest": "0" * 64}], ids=["version", "schema"])
def test_that_holds_of_every_tool_of_every_business(change: dict[str, str], name: str) -> None:
    ours = {"version": TOOLS[name].version, "schema_digest": TOOLS[name].schema_digest}
    found = _check(contracts={name: {**ours, **change}})
    assert isinstance(found, NotReady)
    assert (found.reason, name in found.what) == (Reason.CONTRACT, True)


@pytest.mark.parametrize(("era", "protocol"), [("modern", MODERN), ("legacy", LEGACY)])
@pytest.mark.parametrize("lie", LIES)
def test_what_a_list_says_of_a_tool_beside_its_contract_decides_nothing(lie: str, era: str, protocol: str) -> None:
    assert _check(era=era, annotations=LIES[lie]) == _check(era=era, annotations=hints_of) == Ready(protocol, NEEDED)
    foreign = _check(era=era, annotations=LIES[lie], contracts={"get_order": None})
    assert isinstance(foreign, NotReady)
    assert foreign.reason is Reason.CONTRACT


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_listed_schema_is_not_followed_wherever_it_points_and_no_result_is_held_against_it(era: str) -> None:
    visits = []

    async def visited(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.append("somebody")
        writer.close()

    async def scene() -> tuple[Ready | NotReady, tuple[str, str]]:
        async with await asyncio.start_server(visited, "127.0.0.1", 0) as elsewhere:
            place = f"http://127.0.0.1:{elsewhere.sockets[0].getsockname()[1]}/schema.json"
            pointing = {"$schema": place, "$ref": place, "type": "object", "required": ["what nobody sends"]}
            async with pair(era=era, schema=pointing) as (_, client):
                return await check(client, TOOLS), told(await client.call(request(READ)))

    protocol = {"modern": MODERN, "legacy": LEGACY}[era]
    assert run(scene()) == (Ready(protocol, NEEDED), ("Success", ""))
    assert visits == []


def test_a_foreign_contract_of_a_tool_that_nobody_needs_is_none_of_our_business() -> None:
    async def scene() -> Ready | NotReady:
        async with pair(contracts={"get_return": None}) as (_, client):
            return await check(client, {"get_order": TOOLS["get_order"]})

    assert run(scene()) == Ready(MODERN, frozenset({"get_order"}))


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_server_without_the_tools_capability_is_not_ready(era: str) -> None:
    found = _check(era=era, capabilities={})
    assert isinstance(found, NotReady)
    assert found.reason is Reason.NO_TOOLS


@pytest.mark.parametrize(
    ("trick", "reason"),
    [
        ("status_401", Reason.REFUSED),
        ("own_403", Reason.REFUSED),
        ("status_429", Reason.UNREACHABLE),
        ("status_503", Reason.UNREACHABLE),
        ("own_503", Reason.UNREACHABLE),
        ("status_500", Reason.UNREACHABLE),
        ("closes", Reason.UNREACHABLE),
        ("half_a_body", Reason.UNREACHABLE),
        ("rpc_version", Reason.PROTOCOL),
        ("html", Reason.NOT_MCP),
        ("redirects_away", Reason.NOT_MCP),
        ("wrong_id", Reason.NOT_MCP),
        ("fifty_megabytes", Reason.NOT_MCP),
    ],
)
def test_what_keeps_a_server_from_being_ready_is_named(trick: str, reason: Reason) -> None:
    found = _check(negotiate=trick)
    assert isinstance(found, NotReady)
    assert found.reason is reason
    assert found.what
    assert not re.search(r"\w+\(\w+=", found.what), "an object's own spelling is for nobody to read"
    assert found.mend


def test_a_server_that_does_not_answer_in_time_is_unreachable() -> None:
    async def scene() -> Ready | NotReady:
        async with pair() as (server, client):
            server.opened.clear()
            found = await check(client, TOOLS, timeout_seconds=0.2)
            server.opened.set()
            return found

    found = run(scene())
    assert isinstance(found, NotReady)
    assert found.reason is Reason.UNREACHABLE


def test_readiness_is_asked_with_a_probe_token_alone() -> None:
    async def scene() -> FakeToolServer:
        async with pair() as (server, client):
            assert isinstance(await check(client, TOOLS), Ready)
            return server

    server = run(scene())
    assert server.methods() == ["server/discover", "tools/list"]
    assert {entry.headers["authorization"] for entry in server.received} == {f"Bearer {PROBE}"}


def test_a_listing_follows_what_the_server_offers() -> None:
    async def scene() -> list[frozenset[str]]:
        async with pair() as (server, client):
            listing = Listing(client, TOOLS)
            seen = [listing.available]
            for unlisted in ({"create_return"}, set()):
                server.unlisted = frozenset(unlisted)
                await listing.refresh()
                seen.append(listing.available)
            listing.drop("get_order")
            return [*seen, listing.available]

    assert run(scene()) == [frozenset(), NEEDED - {"create_return"}, NEEDED, NEEDED - {"get_order"}]


def test_a_restart_of_the_server_leaves_the_last_listing_standing() -> None:
    async def scene() -> tuple[frozenset[str], frozenset[str]]:
        async with FakeToolServer() as server:
            client = await ToolClient(server.url, lambda: PROBE).__aenter__()
            listing = Listing(client, TOOLS)
            await listing.refresh()
        found = await listing.refresh()
        assert isinstance(found, NotReady)
        down = listing.available
        async with FakeToolServer(port=server.port, unlisted=frozenset({"get_order"})):
            await listing.refresh()
            up = listing.available
            await client.__aexit__(None, None, None)
        return down, up

    assert run(scene()) == (NEEDED, NEEDED - {"get_order"})


def test_another_contract_empties_the_listing() -> None:
    async def scene() -> frozenset[str]:
        async with pair() as (server, client):
            listing = Listing(client, TOOLS)
            await listing.refresh()
            server.contracts["get_order"] = None
            await listing.refresh()
            return listing.available

    assert run(scene()) == frozenset()


def test_listing_and_calls_go_on_beside_one_another() -> None:
    async def scene() -> list[tuple[str, str]]:
        async with pair() as (_, client):
            listing = Listing(client, TOOLS)
            results = await asyncio.gather(
                *[client.call(request(READ)) for _ in range(10)], *[listing.refresh() for _ in range(3)]
            )
            return [told(result) for result in results if not isinstance(result, Ready | NotReady)]

    assert run(scene()) == [("Success", "")] * 10
