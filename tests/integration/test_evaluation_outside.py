"""What an evaluation does outside of the programs, at its wire and its mail server, and what it notes of it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from email.message import EmailMessage
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from host.evaluation.mail import mail_server
from host.evaluation.wire import Wire, wire
from shared_contracts.base import parse
from shared_contracts.evaluation import Fault
from tool_server.mail import Delivery, Rejected, Sent, Smtp, SmtpServer

Scene = Callable[[Wire, list[str]], Awaitable[Any]]
TOOL, ORDER = "create_return", "A-1"
CLAIMS = {"jti": "token-1", "task_id": "0190d5a0-0000-7000-8000-000000000001"}


def fault(kind: str, **where: int) -> Fault:
    return parse(Fault, {"kind": kind, "tool": TOOL, "retries": 0, "told_ja": "。", **where})


def on_the_wire(done: Fault, scene: Scene) -> tuple[Any, Wire, list[str]]:
    """Run a scene between us and a server that notes the tool of each request that reaches it."""
    served = list[str]()

    async def serve(request: web.BaseRequest) -> web.Response:
        served.append(request.headers["Mcp-Name"])
        return web.json_response({"by": "the server"})

    async def run() -> tuple[Any, Wire]:
        server = web.Server(serve)
        listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
        try:
            async with wire({ORDER: done}) as line:
                line.upstream = listening.sockets[0].getsockname()[1]
                return await asyncio.wait_for(scene(line, served), 20), line
        finally:
            listening.close()
            await server.shutdown(1.0)

    result, line = asyncio.run(run())
    return result, line, served


async def ask(line: Wire, order: str = ORDER, tool: str = TOOL, seconds: float = 5.0) -> int:
    """Call a tool; gives the status."""
    claims = base64.urlsafe_b64encode(json.dumps(CLAIMS).encode()).decode().rstrip("=")
    headers = {"Mcp-Name": tool, "Authorization": f"Bearer e30.{claims}.c2ln"}
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": {"order_id": order}},
    }
    timeout = aiohttp.ClientTimeout(total=seconds)
    async with aiohttp.ClientSession(timeout=timeout) as http, http.post(line.url, json=body, headers=headers) as got:
        await got.read()
        return got.status


def test_a_request_that_is_refused_with_429_never_reaches_the_server_and_the_next_one_does():
    async def scene(line: Wire, _: list[str]) -> list[int]:
        return [await ask(line), await ask(line), await ask(line)]

    statuses, line, served = on_the_wire(fault("rate_limited", times=2), scene)

    assert statuses == [429, 429, 200]
    assert served == [TOOL]
    assert [one.order_id for one in line.struck] == [ORDER, ORDER]
    assert "token-1" in line.struck[0].said


def test_a_broken_connection_comes_after_the_server_has_done_its_part():
    async def scene(line: Wire, _: list[str]) -> int:
        with pytest.raises(aiohttp.ClientError):
            await ask(line)
        return await ask(line)

    status, line, served = on_the_wire(fault("disconnect"), scene)

    assert (status, served, len(line.struck)) == (200, [TOOL, TOOL], 1)


@pytest.mark.parametrize("kind", ["commit_lost", "worker_killed", "version_conflict"])
def test_a_fault_that_the_wire_was_given_no_means_for_is_no_broken_connection(kind: str):
    async def scene(line: Wire, _: list[str]) -> int:
        return await ask(line)

    status, line, _ = on_the_wire(fault(kind), scene)

    assert (status, line.struck) == (500, [])


def test_an_answer_is_held_until_whoever_asked_has_given_up():
    async def scene(line: Wire, _: list[str]) -> None:
        with pytest.raises(TimeoutError):
            await ask(line, seconds=0.3)
        for _ in range(500):
            if line.struck:
                return
            await asyncio.sleep(0.01)

    _, line, served = on_the_wire(fault("timeout"), scene)

    assert served == [TOOL]
    assert "hung up" in line.struck[0].said


def test_a_row_moves_while_the_answer_waits_and_the_answer_arrives():
    async def scene(line: Wire, served: list[str]) -> tuple[int, list[str]]:
        moved = list[str]()

        async def move(workflow_id: str) -> str:
            assert served == [TOOL]
            moved.append(workflow_id)
            return "the row went to version 8"

        line.conflict = move
        return await ask(line), moved

    (status, moved), line, _ = on_the_wire(fault("version_conflict"), scene)

    assert (status, moved) == (200, [CLAIMS["task_id"]])
    assert "version 8" in line.struck[0].said


def test_another_order_another_tool_and_an_earlier_request_pass():
    async def scene(line: Wire, _: list[str]) -> list[int]:
        return [await ask(line, order="A-2"), await ask(line, tool="get_order"), await ask(line)]

    statuses, line, served = on_the_wire(fault("rate_limited", nth=2), scene)

    assert (statuses, len(served), line.struck) == ([200, 200, 200], 3, [])


def letter(order: str) -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Message-ID"] = "returns@shop.example", "c@example.com", f"<{order}@shop.example>"
    mail.set_content(f"返品番号: R-1\nご注文番号: {order}\n", cte="base64")
    return mail.as_bytes()


def test_the_mail_server_refuses_one_orders_notice_for_good_and_counts_the_others():
    async def run() -> tuple[list[Delivery], Any]:
        async with mail_server(frozenset({"A-1", "A-12"}), frozenset({"A-1"})) as mail:
            sender = Smtp(SmtpServer("127.0.0.1", mail.port, "none", "shop.example", None, None))
            given = [await sender.deliver("", letter(order)) for order in ("A-1", "A-12", "A-12")]
            return given, mail

    given, mail = asyncio.run(run())

    assert given == [Rejected("smtp 550"), Sent(), Sent()]
    assert (mail.of("A-12"), mail.of("A-1")) == ({"<A-12@shop.example>": 2}, {})
    assert [(one.order_id, one.message_id) for one in mail.turned] == [("A-1", "<A-1@shop.example>")]
    assert mail.named("A-12") == {"<A-12@shop.example>": ("A-12", "R-1")}
    assert mail.astray("A-12", "c@example.com") == ()
    assert mail.astray("A-12", "d@example.com") == mail.astray("A-12", None) == ("<A-12@shop.example>",)
