"""Negotiation, restarts, lost sessions and isolation: nobody notices more than the outcome of an own call."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from host.domain.outcome import Rejected, Success
from host.tool_client.client import ToolClient
from tests.support.calling import PROBE, READ, WRITE, client_of, pair, request, run, told
from tests.support.hostile_server import FakeToolServer

GOOD = ("Success", "")
ROOT = Path(__file__).parents[2]


async def _start(port: int, behaviour: str = "answers") -> tuple[asyncio.subprocess.Process, int]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.hostile_server", str(port), behaviour,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    return process, int((await _line(process))[1])


async def _line(process: asyncio.subprocess.Process) -> list[str]:
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), 20)).decode().split()


async def _kill(process: asyncio.subprocess.Process) -> None:
    process.send_signal(signal.SIGKILL)
    await process.wait()


def test_after_a_kill_and_a_restart_the_next_call_works() -> None:
    async def scene() -> list[tuple[str, str]]:
        process, port = await _start(0)
        async with ToolClient(f"http://127.0.0.1:{port}/mcp", lambda: PROBE) as client:
            outcomes = [told(await client.call(request(WRITE)))]
            await _kill(process)
            outcomes.append(told(await client.call(request(WRITE))))
            process, _ = await _start(port)
            outcomes.append(told(await client.call(request(WRITE))))
            await _kill(process)
        return outcomes

    before, between, after = run(scene())
    assert before == after == GOOD
    # Whether the dead connection was noticed before it was used again is the kernel's to say.
    assert between in {("Rejected", "unreachable"), ("Unknown", "connection_lost")}


def test_a_kill_during_a_write_leaves_it_unknown_and_the_client_alive() -> None:
    async def scene() -> list[tuple[str, str]]:
        process, port = await _start(0, "hangs")
        async with ToolClient(f"http://127.0.0.1:{port}/mcp", lambda: PROBE) as client:
            written = asyncio.create_task(client.call(request(WRITE)))
            read = asyncio.create_task(client.call(request(READ)))
            for _ in range(2):
                assert await _line(process) == ["call"]
            await _kill(process)
            outcomes = [told(await written), told(await read)]
            process, _ = await _start(port)
            outcomes.append(told(await client.call(request(WRITE))))
            await _kill(process)
        return outcomes

    assert run(scene()) == [("Unknown", "connection_lost"), ("Rejected", "no_answer"), GOOD]


def test_no_call_leaves_before_negotiation_has_ended() -> None:
    async def scene() -> tuple[list[str], tuple[str, str]]:
        async with FakeToolServer() as server, client_of(server) as client:
            server.opened.clear()
            waiting = asyncio.create_task(client.call(request(WRITE)))
            await server.until(lambda: len(server.received) == 1)
            given_up = told(await client.call(request(READ, timeout_seconds=0.2)))
            assert given_up == ("Rejected", "unreachable")
            methods = server.methods()
            server.opened.set()
            return methods, told(await waiting)

    assert run(scene()) == (["server/discover"], GOOD)


@pytest.mark.parametrize(
    ("era", "first"),
    [
        ("modern", ["server/discover"]),
        ("legacy", ["server/discover", "initialize", "notifications/initialized"]),
        ("session", ["server/discover", "initialize", "notifications/initialized"]),
    ],
)
def test_calls_come_after_the_whole_handshake_of_their_revision(era: str, first: list[str]) -> None:
    async def scene() -> list[str]:
        async with pair(era=era) as (server, client):
            results = await asyncio.gather(*[client.call(request(READ)) for _ in range(5)])
            assert all(isinstance(result, Success) for result in results)
            return server.methods()

    assert run(scene()) == [*first, *["tools/call"] * 5]


@pytest.mark.parametrize(
    "trick",
    [
        "status_401",
        "status_503",
        "status_500",
        "html",
        "closes",
        "wrong_id",
        "not_json",
        "fifty_megabytes",
        "half_a_head",
    ],
)
def test_a_failed_negotiation_is_not_mistaken_for_an_older_server(trick: str) -> None:
    async def scene() -> tuple[tuple[str, str], list[str], tuple[str, str]]:
        async with pair(negotiate=trick) as (server, client):
            outcome = told(await client.call(request(WRITE)))
            methods = server.methods()
            server.negotiate = None
            return outcome, methods, told(await client.call(request(WRITE)))

    assert run(scene()) == (("Rejected", "unreachable"), ["server/discover"], GOOD)


def test_a_server_of_an_unknown_revision_gets_no_call() -> None:
    async def scene() -> tuple[tuple[str, str], list[str]]:
        async with pair(negotiate="rpc_version") as (server, client):
            return told(await client.call(request(WRITE))), server.methods()

    assert run(scene()) == (("Rejected", "version_mismatch"), ["server/discover"])


@pytest.mark.parametrize("notice", ["hangs", "closes", "status_500", "html", "drips", "status_401"])
def test_a_handshake_whose_last_notice_fails_holds_nobody_up(notice: str) -> None:
    async def scene() -> tuple[tuple[str, str], float]:
        async with pair(era="legacy", notice=notice) as (server, client):
            start = asyncio.get_running_loop().time()
            outcome = told(await client.call(request(WRITE, timeout_seconds=4.0)))
            assert len(server.calls()) == 1
            return outcome, asyncio.get_running_loop().time() - start

    outcome, seconds = run(scene())
    assert outcome == GOOD
    assert seconds < 3


def test_a_call_whose_time_ends_behind_the_handshake_is_never_sent() -> None:
    async def scene() -> tuple[tuple[str, str], int]:
        async with pair(era="legacy", notice="hangs") as (server, client):
            outcome = told(await client.call(request(WRITE, timeout_seconds=0.3)))
            assert told(await client.call(request(READ))) == GOOD
            return outcome, len(server.calls())

    assert run(scene()) == (("Rejected", "unreachable"), 1)


def test_a_closed_client_sends_nothing() -> None:
    async def scene() -> tuple[tuple[str, str], int]:
        async with pair() as (server, client):
            await client.__aexit__(None, None, None)
            return told(await client.call(request(WRITE))), server.connections

    assert run(scene()) == (("Rejected", "unreachable"), 0)


def test_a_forgotten_session_is_opened_anew_for_the_next_call() -> None:
    async def scene() -> tuple[tuple[str, str], tuple[str, str], int]:
        async with pair(era="session") as (server, client):
            assert told(await client.call(request(READ))) == GOOD
            server.forget_sessions()
            lost = told(await client.call(request(WRITE)))
            return lost, told(await client.call(request(WRITE))), server.methods().count("initialize")

    assert run(scene()) == (("Unknown", "connection_lost"), GOOD, 2)


def test_a_server_that_keeps_forgetting_is_asked_once_per_call() -> None:
    async def scene() -> tuple[list[tuple[str, str]], int]:
        async with pair(era="session", forgetful=True) as (server, client):
            return [told(await client.call(request(READ))) for _ in range(3)], len(server.calls())

    assert run(scene()) == ([("Rejected", "no_answer")] * 3, 3)


def test_a_server_that_breaks_the_protocol_is_renegotiated_once_and_then_left_alone() -> None:
    async def scene() -> FakeToolServer:
        async with pair(behaviour="wrong_id") as (server, client):
            for _ in range(2):
                assert told(await client.call(request(WRITE))) == ("Unknown", "bad_answer")
            isolated = await client.call(request(WRITE))
            assert isinstance(isolated, Rejected)
            assert isolated.error.details == {"why": "isolated"}
            return server

    server = run(scene())
    assert server.methods() == ["server/discover", "tools/call"] * 2


def test_a_sound_answer_clears_the_suspicion() -> None:
    async def scene() -> list[tuple[str, str]]:
        async with pair(by_order={"bad": "wrong_id"}) as (_, client):
            return [told(await client.call(request(READ, order))) for order in ("bad", "A-1", "bad", "A-1")]

    assert run(scene()) == [("Rejected", "bad_answer"), GOOD] * 2


def test_renegotiation_leaves_the_calls_under_way_alone() -> None:
    async def scene() -> tuple[list[tuple[str, str]], list[str]]:
        async with pair(by_order={"slow": "answers_slowly", "bad": "wrong_id"}) as (server, client):
            slow = asyncio.create_task(client.call(request(WRITE, "slow")))
            await server.until(lambda: len(server.calls()) == 1)
            outcomes = [told(await client.call(request(READ, order))) for order in ("bad", "A-1")]
            server.released.set()
            return [*outcomes, told(await slow)], server.methods()

    outcomes, methods = run(scene())
    assert outcomes == [("Rejected", "bad_answer"), GOOD, GOOD]
    assert methods.count("server/discover") == 2
