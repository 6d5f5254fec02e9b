"""`python -m tests.bench.soak [--count N] [--seconds S]`: what a worker and a tool server hold after many workflows.

Cases are accepted as fast as the worker takes them, with a bounded number under way. The memory of each process is
read when a tenth of the workflows has ended, by when all caches are full, and at the end: what grows by then, leaks.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping

import uvloop

from host.stack import processes
from host.stack.assembly import WORKER
from host.wiring import Runtime, runtime
from tests.bench.cpu import rss_mb
from tests.bench.figures import Figure, show
from tests.bench.returns import take
from tests.bench.stand import Stand, settings, stand_with_worker

COUNT, SECONDS, CONCURRENCY = 10_000, 1800.0, 8
WAITING_MAX, CHUNK = 200, 25  # below the bound above which the engine makes no retries
STALLED_SECONDS = 60.0
RSS_MB_MAX, GROWTH_MAX = 200.0, 1.1
LOOK_SECONDS = 0.1


async def soak(count: int, seconds_max: float) -> bool:
    """Run, for so many workflows or so long; tell whether every workflow completed that was accepted."""
    began = time.monotonic()
    until = began + seconds_max
    async with stand_with_worker(count, CONCURRENCY) as made:
        pids = {"worker": _worker(made), "tool server": made.server_pid}
        async with runtime(settings(CONCURRENCY), made.links) as found:
            early = await _through(found, made, count // 10, until, pids)
            late = await _through(found, made, count, until, pids)
            accepted, completed = await _count(found, "true"), await _count(found, "state = 'COMPLETED'")
    figures = [Figure(f"workflows completed of {accepted:,} accepted", completed, "", "=", accepted)]
    for name in pids:
        figures += [
            Figure(f"memory of the {name} at 10 %", early[name], "MB", "≤", RSS_MB_MAX),
            Figure("  at the end", late[name], "MB", "≤", RSS_MB_MAX),
            Figure("  end / 10 %", late[name] / early[name], "", "≤", GROWTH_MAX),
        ]
    seconds = time.monotonic() - began
    show(f"{accepted:,} workflows in {seconds:.0f} s, {accepted / seconds:.1f} a second with everything", figures)
    return completed == accepted


def _worker(made: Stand) -> int:
    running = processes.find(made.home, WORKER)
    if running is None:
        raise RuntimeError("the stack came up without its worker")
    return running.process.pid


async def _through(found: Runtime, made: Stand, count: int, until: float, pids: Mapping[str, int]) -> dict[str, float]:
    """Accept until `count` were accepted or time is up, wait until all ended, and give each process's memory."""
    accepted = await _count(found, "true")
    ended, progress = accepted, time.monotonic()
    while ended < count:
        if time.monotonic() > until:
            count = accepted
        more = min(CHUNK, count - accepted)
        if more > 0 and accepted - ended <= WAITING_MAX - CHUNK:
            for _ in range(more):
                await take(found.driver, made, found.wake)
            accepted += more
        else:
            await asyncio.sleep(LOOK_SECONDS)
        now = await _count(found, "control_state IN ('completed', 'needs_human', 'stopped', 'failed')")
        if now > ended:
            ended, progress = now, time.monotonic()
        elif time.monotonic() - progress > STALLED_SECONDS:
            raise RuntimeError(f"{accepted - ended} workflows did not end within {STALLED_SECONDS:.0f} s")
    return {name: rss_mb(pid) for name, pid in pids.items()}


async def _count(found: Runtime, which: str) -> int:
    query = f"SELECT count(*) FROM workflow WHERE {which}"  # noqa: S608 - conditions of this file
    async with found.driver.parts.pool.connection() as connection:
        row = await (await connection.execute(query.encode())).fetchone()
    return 0 if row is None else int(row[0])


def main() -> None:
    """Read the arguments and run; exit code 1 where a workflow did not complete."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help=f"how many workflows ({COUNT:,})")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="S", help=f"at most so long ({SECONDS:.0f})")
    asked = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(0 if runner.run(soak(asked.count, asked.seconds)) else 1)


if __name__ == "__main__":
    main()
