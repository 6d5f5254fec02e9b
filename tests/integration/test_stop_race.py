"""A stop against many drivers that commit at once, together and apart: after it has committed nothing begins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, LiteralString

from psycopg_pool import AsyncConnectionPool

from host.engine.drive import drive
from host.engine.parts import Parts, Request
from host.store import stops
from host.store.errors import OneAtATimeError, StoppedError
from tests.support.engine import asynchronous, engine, owners, rows, take
from tests.support.engine import parts as parts_over
from tests.support.fake_tools import FakeTools
from tests.support.stops import OPERATOR, REASON, engaged, stop

ROUNDS = 100
CASES = 6
COUNTS: LiteralString = """
SELECT (SELECT count(*) FROM effect), (SELECT count(*) FROM workflow),
       (SELECT count(*) FROM attempt JOIN call USING (workflow_id, step)
         WHERE purpose = 'call' AND call.tool IN ('create_return', 'send_return_notice')),
       (SELECT count(*) FROM attempt WHERE purpose = 'call')
"""
FIRST_SEEN: LiteralString = (
    "SELECT (SELECT count(*) FROM stop_log WHERE stop_id > %(after)s), (SELECT count(*) FROM effect)"
)


@dataclass
class CountingTools(FakeTools):
    """Says when the request of a chosen number comes by."""

    at: int = 0
    seen: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def wait_for(self, at: int) -> None:
        self.at, self.seen, self.reached = at, 0, asyncio.Event()

    async def call(self, request: Request) -> Any:
        self.seen += 1
        if self.seen >= self.at:
            self.reached.set()
        await asyncio.sleep(0)  # whoever else can go on does
        return await super().call(request)


@asynccontextmanager
async def two_hosts(tools: FakeTools) -> AsyncIterator[tuple[Parts, Parts]]:
    """Two processes' worth of drivers, each with commits that travel together."""
    async with (
        engine(tools) as one,
        AsyncConnectionPool(one.pool.conninfo, min_size=1, max_size=4, open=False, kwargs={"autocommit": True}) as pool,
    ):
        yield one, await parts_over(pool, tools, owner="another-driver")


async def begun(hosts: tuple[Parts, Parts], number: int) -> list[asyncio.Task[Any]]:
    """Cases in the hands of both hosts, and somebody who keeps on bringing new ones."""
    names = [f"{number}-{n}" for n in range(CASES)]
    ids = [await take(hosts[0], request_id=name, order_id=f"A-{name}") for name in names]
    driving = [asyncio.create_task(_driven(hosts[n % 2], one)) for n, one in enumerate(ids)]
    return [*driving, asyncio.create_task(_taking(hosts[0], number))]


async def _driven(parts: Parts, workflow_id: Any) -> None:
    with suppress(OneAtATimeError):  # its first commit came after the stop
        await drive(parts, workflow_id)


async def _taking(parts: Parts, number: int) -> None:
    for n in range(50):
        try:
            await take(parts, request_id=f"new-{number}-{n}", order_id=f"N-{number}-{n}")
        except StoppedError:
            return


def go_on(parts: Parts) -> None:
    """Between two rounds: as if there had been no stop, and whoever was halted stays where it is."""
    with owners(parts) as sql:
        sql.execute("UPDATE stop SET engaged = false")
        sql.execute("UPDATE workflow SET wake_at = 'infinity' WHERE wake_at IS NOT NULL")


async def stopped(parts: Parts, *, reads: bool) -> tuple[int, ...]:
    """Stop, and count while it holds its lock: whatever had begun has committed, and nothing else may any more."""
    scopes = stops.EVERYTHING if reads else (stops.NEW_WORK, stops.UPDATES)
    async with parts.pool.connection() as connection, connection.transaction():
        await stops.engage(connection, scopes, OPERATOR, REASON, "operator")
        (counted,) = await (await connection.execute(COUNTS)).fetchall()
    return tuple(counted)


@asynchronous
async def test_in_a_hundred_races_nothing_begins_after_the_stop_and_what_had_begun_is_recorded():
    tools = CountingTools()
    met = 0
    async with two_hosts(tools) as hosts:
        for number in range(ROUNDS):
            tools.wait_for(1 + number % (CASES * 5))
            tasks = await begun(hosts, number)
            await asyncio.wait_for(tools.reached.wait(), 10)
            reads = number % 4 == 3
            at_stop = await stopped(hosts[number % 2], reads=reads)
            await asyncio.gather(*tasks)
            (after,) = await rows(hosts[0], COUNTS)
            compared = 4 if reads else 3
            assert after[:compared] == at_stop[:compared], f"round {number}"
            assert await rows(hosts[0], "SELECT count(*) FROM effect WHERE verified_at IS NULL") == [(0,)]
            halted = "SELECT count(*) FROM workflow WHERE wake_reason IN ('stopped', 'stopped_reads')"
            met += (await rows(hosts[0], halted))[0][0] > 0
            go_on(hosts[0])
        made = await rows(hosts[0], "SELECT count(*) FROM effect WHERE outcome = 'succeeded'")
    assert made == [(len(tools.executed),)]
    assert met > ROUNDS / 2  # a race that the stop never won would show nothing


@asynchronous
async def test_what_travels_with_a_finding_is_stopped_by_it_or_had_committed_before():
    """Of steps that share a statement with the finding, none may open an effect after it."""
    tools = CountingTools()
    async with two_hosts(tools) as hosts:
        for number in range(20):
            (after,) = (await rows(hosts[0], "SELECT coalesce(max(stop_id), 0) FROM stop_log"))[0]
            tools.script["check_return_policy"] = [*[None] * (number % CASES), tools.but(order_id="A-0")]
            tasks = await begun(hosts, number)
            seen: tuple[int, int] = (0, 0)
            while seen[0] == 0:
                seen = (await rows(hosts[0], FIRST_SEEN, after=after))[0]  # one snapshot
            await asyncio.gather(*tasks)
            assert (await rows(hosts[0], FIRST_SEEN, after=after))[0] == seen, f"round {number}"
            assert await engaged(hosts[0]) == {"new_work", "updates", "reads", "parallel"}
            assert await rows(hosts[0], "SELECT count(*) FROM effect WHERE verified_at IS NULL") == [(0,)]
            go_on(hosts[0])


@asynchronous
async def test_a_stop_whose_row_is_missing_puts_it_there():
    async with engine(FakeTools()) as parts:
        with owners(parts) as sql:
            sql.execute("DELETE FROM stop WHERE scope IN ('updates', 'parallel')")
        await stop(parts)
        scopes = await rows(parts, "SELECT scope, engaged, actor FROM stop WHERE scope <> 'reads' ORDER BY scope")
    assert scopes == [(scope, True, "sato") for scope in ("new_work", "parallel", "updates")]


@asynchronous
async def test_two_stops_at_once_are_both_recorded_and_stop_what_either_names():
    async with engine(FakeTools()) as parts:
        await asyncio.gather(stop(parts), stop(parts, reads=True), stop(parts))
        logged = await rows(parts, "SELECT scopes FROM stop_log WHERE act = 'stop'")
        assert await engaged(parts) == {"new_work", "updates", "reads", "parallel"}
    assert sorted(len(scopes) for (scopes,) in logged) == [2, 2, 3]
