"""How the server starts, how it ends, and what a caller's going away does to the call in hand."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.support.server import (
    LEGACY,
    MODERN,
    ORDER,
    Server,
    StubDispatcher,
    listens,
    message_of,
    request,
    running,
    running_process,
    wait_until,
)
from tests.support.tokens import Issuer
from tool_server.call import Answer, Answered, Caller
from tool_server.errors import AddressError, PortInUseError
from tool_server.serve import bind

SECONDS = 20


class Holding(StubDispatcher):
    """Holds every call until it is let go, and tells how each one ended."""

    def __init__(self) -> None:
        super().__init__()
        self.started, self.cancelled = threading.Event(), threading.Event()
        self.release = asyncio.Event()

    async def dispatch(self, caller: Caller, name: str, arguments: Mapping[str, Any] | None) -> Answer:
        self.calls.append((caller, name, arguments))
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return Answered(ORDER)


def test_a_caller_that_goes_away_cancels_its_call_and_no_other(tmp_path):
    dispatcher = Holding()
    with running(dispatcher, tmp_path) as server:
        body, headers = request("tools/call", {"name": "get_order", "arguments": {}}, token=server.issuer.token())
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(server.url, content=body, headers=headers, timeout=0.3, trust_env=False, verify=False)
        assert dispatcher.cancelled.wait(SECONDS)
        assert server.client.get(f"{server.origin}/healthz").status_code == 200


def readiness(port: int) -> int | None:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/readyz", timeout=5, trust_env=False, verify=False).status_code
    except httpx2.TransportError:
        return None


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_finishes_the_call_in_hand_says_so_and_takes_no_other(tmp_path, era, number):
    with running_process(tmp_path) as server, ThreadPoolExecutor(1) as pool:
        call = pool.submit(server.call, arguments={"order_id": "slow"}, era=era)
        wait_until((tmp_path / "started").exists)
        assert readiness(server.port) == 200
        server.process.send_signal(number)
        wait_until(lambda: readiness(server.port) == 503)
        refused = httpx2.post(server.url, content="{}", timeout=5, trust_env=False, verify=False)
        assert (refused.status_code, refused.json()["error"]["data"]["code"]) == (503, "unavailable")
        assert refused.json()["error"]["data"]["outcome_known"]
        assert server.process.poll() is None
        (tmp_path / "go").touch()
        answer = call.result(SECONDS)
        assert message_of(answer)["result"]["structuredContent"] == ORDER
        assert server.process.wait(SECONDS) == 0
        assert not listens(server.port)


def test_told_to_stop_with_nothing_in_hand_it_ends_at_once_and_open_connections_do_not_hold_it(tmp_path):
    with running_process(tmp_path) as server:
        with socket.create_connection(("127.0.0.1", server.port)):
            assert server.call().status_code == 200  # the client keeps its connection too
            code, stderr = server.end()
        assert code == 0
        assert [word for word in ("draining", "stopped", "drain_cut_short") if word in stderr] == [
            "draining",
            "stopped",
        ]


def test_a_port_in_use_is_told_in_one_sentence(tmp_path):
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUseError, match=f"127.0.0.1:{port} is in use"):
            bind("127.0.0.1", port)
        Issuer.at(tmp_path)
        command = [sys.executable, "-m", "tests.support.serve_stub", str(tmp_path), str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 15
    assert (
        done.stderr
        == f"127.0.0.1:{port} is in use; stop what listens there, or set KESSAI_TOOLS_PORT to another port\n"
    )


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_that_is_not_this_machines_is_told_in_one_sentence(host):
    with pytest.raises(AddressError, match=host):
        bind(host, 8801)


def test_keys_that_cannot_be_trusted_keep_the_server_from_starting(tmp_path):
    (tmp_path / "issuers.json").write_text("[]")
    command = [sys.executable, "-m", "tests.support.serve_stub", str(tmp_path), "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 15
    assert "leads to no key" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_keeps_the_inner_half_from_opening_is_raised_to_whoever_starts_the_server(tmp_path):
    class Closed(StubDispatcher):
        async def __aenter__(self) -> Any:
            raise ConnectionError("the database does not answer")

    with pytest.raises(ConnectionError, match="does not answer"), running(Closed(), tmp_path) as server:
        wait_until(lambda: not listens(server.port))


def test_fifty_calls_at_once_are_answered_each_with_its_own_id(server: Server):
    with ThreadPoolExecutor(25) as pool:
        answers = list(pool.map(lambda n: message_of(server.call(rpc_id=n, era=(MODERN, LEGACY)[n % 2])), range(50)))
    assert [answer["id"] for answer in answers] == list(range(50))
    assert all(answer["result"]["structuredContent"] == ORDER for answer in answers)


@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_two_calls_with_one_id_are_two_calls_though_both_are_in_flight(tmp_path, era):
    both = threading.Barrier(2, timeout=10)

    class Meeting(StubDispatcher):
        async def dispatch(self, caller: Caller, name: str, arguments: Mapping[str, Any] | None) -> Answer:
            await asyncio.to_thread(both.wait)
            return Answered({**ORDER, "order_id": dict(arguments or {})["order_id"]})

    with running(Meeting(), tmp_path) as server, ThreadPoolExecutor(2) as pool:
        asked = [{"order_id": name} for name in ("A-1", "A-2")]
        answers = list(pool.map(lambda one: message_of(server.call(arguments=one, era=era, rpc_id=7)), asked))
    assert [answer["id"] for answer in answers] == [7, 7]
    assert [answer["result"]["structuredContent"]["order_id"] for answer in answers] == ["A-1", "A-2"]
