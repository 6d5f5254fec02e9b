"""Kill workers and tool server at random, with work in flight, and show that nothing doubles, gets lost or sticks.

    python -m tests.crash.run --kills 200 [--seed S]

What this proves: with at least 20 workflows in flight at all times, every SIGKILL of a worker or of the tool server
at a random moment, and at moments inside a running write, leaves one return and one notice per case, and every case
goes on by itself. It is judged by the auditors' roles and the files in the Maildir, never by what a program says.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import sys
import time
from uuid import UUID

from tests.crash.audit import judge, read_books
from tests.crash.desk import Desk, desk
from tests.crash.feed import Feeder
from tests.crash.killer import Crew, Kill
from tests.crash.report import Told, faults, lines
from tests.crash.stand import Stand, stand

WORKERS = 2
CONCURRENCY = 8
LEASE_SECONDS = 2.0
SETTLED_SECONDS = 180.0  # the longest chain of waits that a case can still have before it
ORDERS_PER_KILL, ORDERS_MIN = 20, 400
AIMED_SHARE = 0.4  # of the kills wait for a running write; the others take what is there


async def crash(kills: int, seed: int) -> Told:
    """Bring a stack up, kill on, wait until all is quiet, and give what both databases say."""
    settings = {"KESSAI_CONCURRENCY": str(CONCURRENCY), "KESSAI_LEASE_SECONDS": str(LEASE_SECONDS)}
    async with stand(ORDERS_MIN + ORDERS_PER_KILL * kills, settings) as made:
        crew = Crew(made, made.tool_server(), [made.worker(f"worker-{n}") for n in range(1, WORKERS + 1)])
        await crew.begin()
        async with desk(made.links.dsn) as opened:
            return await _run(made, crew, opened, kills, seed)


async def _run(made: Stand, crew: Crew, opened: Desk, kills: int, seed: int) -> Told:
    feeder, begun = Feeder(made, opened), time.monotonic()
    done = await _kill_on(crew, opened, feeder, kills, random.Random(seed))  # noqa: S311 - to be repeated by its seed
    seconds = time.monotonic() - begun
    stuck = await feeder.finish(SETTLED_SECONDS)
    books = read_books(made)
    return Told(seed, seconds, done, books, judge(books, feeder.accepted), stuck, await _recoveries(opened))


async def _kill_on(crew: Crew, opened: Desk, feeder: Feeder, kills: int, chance: random.Random) -> list[Kill]:
    """Feed and kill at the same time; a feeder that fails ends the run. Kills that hit nothing come on top."""
    done: list[Kill] = []
    feeding = asyncio.create_task(feeder.run())
    try:
        while sum(bool(kill.hit) for kill in done) < kills:
            await feeder.full()
            done.append(await crew.kill_one(opened, feeder, chance, aimed=chance.random() < AIMED_SHARE))
            if len(done) % 10 == 0:
                say(f"{len(done)} kills, {len(feeder.accepted)} cases, {feeder.ended} ended")
            if feeding.done():
                feeding.result()
    finally:
        feeding.cancel()
        await asyncio.wait({feeding})
    return done


async def _recoveries(opened: Desk) -> dict[UUID, int]:
    """With the engine's own role: how often each case began again is its budget, not an auditor's."""
    return dict(await opened.rows("SELECT workflow_id, recoveries FROM workflow"))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.run", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how many processes to kill; default 200")
    parser.add_argument("--seed", type=int, default=None, help="of the random choices; default: a new one")
    asked = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    say(f"{asked.kills} kills, seed {seed}")
    told = asyncio.run(crash(asked.kills, seed))
    for line in lines(told):
        say(line)
    sys.exit(1 if faults(told) else 0)


if __name__ == "__main__":
    main()
