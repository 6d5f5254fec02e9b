"""What an evaluation does that is worse than losing an answer: a commit nobody hears of, and what hurts all cases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import aiohttp
import aiohttp.web
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import Jsonb

from host.evaluation.commit_wire import commit_wire
from host.evaluation.outages import Outages
from host.evaluation.wire import Wire, wire
from shared_contracts.evaluation import FaultKind
from tests.integration.test_evaluation_outside import CLAIMS, ORDER, TOOL, ask, fault, on_the_wire
from tests.support.cluster import create_database, drop_database

WORKFLOW = CLAIMS["task_id"]


@pytest.fixture
def dsn() -> Iterator[str]:
    made = create_database()
    yield made
    drop_database(made)


def port_of(dsn: str) -> int:
    return int(str(conninfo_to_dict(dsn)["port"]))


def test_a_commit_is_kept_by_the_database_and_whoever_made_it_does_not_hear_of_it(dsn: str):
    async def run() -> tuple[list[str], int]:
        said = list[str]()
        async with commit_wire(port_of(dsn), lambda order, what: said.append(f"{order} {what}")) as line:
            async with await psycopg.AsyncConnection.connect(line.dsn(dsn), autocommit=True) as ours:
                await ours.execute("CREATE TABLE kept (row jsonb)")
                line.arm(WORKFLOW, ORDER)
                await ours.execute("SELECT %s::text", (WORKFLOW,))  # a question about it is no commit
                await ours.execute("INSERT INTO kept VALUES (%s)", (Jsonb({"workflow_id": "another"}),))
                with pytest.raises(psycopg.OperationalError):
                    await ours.execute("INSERT INTO kept VALUES (%s)", (Jsonb({"workflow_id": WORKFLOW}),))
            async with await psycopg.AsyncConnection.connect(line.dsn(dsn), autocommit=True) as next_one:
                await next_one.execute("INSERT INTO kept VALUES (%s)", (Jsonb({"workflow_id": WORKFLOW}),))
                cursor = await next_one.execute(
                    "SELECT count(*) FROM kept WHERE row ->> 'workflow_id' = %s", (WORKFLOW,)
                )
                return said, (await cursor.fetchall())[0][0]

    said, kept = asyncio.run(run())
    assert kept == 2  # the one that was lost, and one more, which passes
    (noted,) = said
    assert noted.startswith(f"{ORDER} the database said “INSERT 0 1”")


def test_a_commit_that_the_database_refuses_is_passed_back_and_is_no_lost_one(dsn: str):
    async def run() -> list[str]:
        said = list[str]()
        async with (
            commit_wire(port_of(dsn), lambda _, what: said.append(what)) as line,
            await psycopg.AsyncConnection.connect(line.dsn(dsn), autocommit=True) as ours,
        ):
            line.arm(WORKFLOW, ORDER)
            with pytest.raises(psycopg.errors.UndefinedTable):
                await ours.execute("INSERT INTO nowhere VALUES (%s)", (Jsonb({"workflow_id": WORKFLOW}),))
            with pytest.raises(psycopg.OperationalError):
                await ours.execute("SELECT %s", (Jsonb({"workflow_id": WORKFLOW}),))
        return said

    assert len(asyncio.run(run())) == 1


def test_a_slow_request_reaches_the_server_once_whoever_sent_it_has_asked_something_else():
    async def scene(line: Wire, served: list[str]) -> list[str]:
        with pytest.raises(TimeoutError):
            await ask(line, seconds=0.3)
        before = list(served)
        assert await ask(line, tool="find_return") == 200
        await line.settled()
        return before

    before, line, served = on_the_wire(fault("slow_answer"), scene)

    assert (before, served) == ([], ["find_return", TOOL])
    (struck,) = line.struck
    assert struck.order_id == ORDER
    assert struck.said.endswith("kept the request until whoever asked hung up and asked again; its own answer: 200")


def test_what_hurts_all_is_done_once_for_those_that_wait_for_it_and_again_for_who_comes_later():
    done = list[FaultKind]()

    class Counted(Outages):
        async def _do(self, kind: FaultKind) -> str:
            done.append(kind)
            return "done"

    async def run() -> list[str]:
        outages = Counted(cast("Any", Path()), {}, {}, ())
        outages.expect(3)
        together = await asyncio.gather(*(outages.strike(FaultKind.WORKER_KILLED) for _ in range(3)))
        outages.expect(2)  # of which one never comes
        return [*together, await outages.strike(FaultKind.WORKER_KILLED)]

    assert asyncio.run(run()) == ["done; 3 at once"] * 3 + ["done; 1 at once"]
    assert done == [FaultKind.WORKER_KILLED] * 2


def test_a_list_of_tools_is_counted_by_the_version_that_it_offers():
    async def run() -> Wire:
        async def serve(_: aiohttp.web.BaseRequest) -> aiohttp.web.Response:
            tool = {"name": TOOL, "_meta": {"dev.kessai/contract": {"version": "0"}}}
            return aiohttp.web.json_response({"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool, tool]}})

        server = aiohttp.web.Server(serve)
        listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
        try:
            async with wire({}) as line, aiohttp.ClientSession() as http:
                line.upstream = listening.sockets[0].getsockname()[1]
                async with http.post(line.url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}) as got:
                    await got.read()
                return line
        finally:
            listening.close()
            await server.shutdown(1.0)

    assert asyncio.run(run()).listed == {"0": 1}
