"""`python -m tests.bench.soak [--count N]`: many returns through a real worker and tool server; does either grow?

The resident size of both is read when a tenth is done and at the end. It exits with 1 where a process is above
200 MB, or has grown by more than a tenth since; a case that did not end COMPLETED fails it too. A stall ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

import psycopg
import uvloop

from host.stack import processes
from host.stack.assembly import WORKER
from host.stack.roles import Side
from host.wiring import runtime
from tests.bench.returns import take
from tests.bench.stand import Stand, settings, stand_with_worker

COUNT, CONCURRENCY, IN_FLIGHT = 10_000, 8, 64
RSS_MB_MAX, GROWTH_MAX = 200.0, 1.1
STALL_SECONDS_MAX = 60.0
LOOK_SECONDS = 0.5


def rss_mb(pid: int) -> float:
    """Give a process's resident size in MB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:  # noqa: PTH123 - a kernel's file
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


async def soak(count: int) -> bool:
    """Feed and watch; gives whether both processes kept their size."""
    async with stand_with_worker(count, CONCURRENCY) as made:
        worker = processes.find(made.home, WORKER)
        if worker is None:
            raise RuntimeError("the worker does not run")
        pids = {"worker": worker.process.pid, "tool server": made.server_pid}
        early: dict[str, float] = {}
        began = moved = time.monotonic()
        accepted = ended = 0
        async with runtime(settings(CONCURRENCY), made.links) as found:
            while ended < count:
                while accepted < count and accepted - ended < IN_FLIGHT:
                    await take(found.driver, made, found.wake)
                    accepted += 1
                await asyncio.sleep(LOOK_SECONDS)
                before, ended = ended, _ended(made)
                moved = time.monotonic() if ended > before else moved
                if time.monotonic() - moved > STALL_SECONDS_MAX:
                    raise RuntimeError(f"nothing has ended for {STALL_SECONDS_MAX:.0f} s; {ended} of {count} are done")
                if not early and ended * 10 >= count:
                    early = {name: rss_mb(pid) for name, pid in pids.items()}
        late = {name: rss_mb(pid) for name, pid in pids.items()}
        spent = time.monotonic() - began
        completed = _ended(made, "COMPLETED")
    return _report(count, completed, spent, early, late)


def _ended(made: Stand, state: str | None = None) -> int:
    query = "SELECT count(*) FROM workflow WHERE control_state IN ('completed', 'needs_human', 'failed', 'stopped')"
    with psycopg.connect(made.role(Side.HOST, "host_rt")) as connection:
        row = connection.execute(query + ("" if state is None else f" AND state = '{state}'")).fetchone()
    return 0 if row is None else int(row[0])


def _report(count: int, completed: int, spent: float, early: dict[str, float], late: dict[str, float]) -> bool:
    print(f"{completed} of {count} COMPLETED in {spent:.0f} s ({count / spent:.1f} a second)")  # noqa: T201
    for name, size in late.items():
        print(f"{name}: {early[name]:.0f} MB at a tenth, {size:.0f} MB at the end (x{size / early[name]:.3f})")  # noqa: T201
    kept = all(size <= RSS_MB_MAX and size <= GROWTH_MAX * early[name] for name, size in late.items())
    print("both kept their size" if kept else f"bounds: {RSS_MB_MAX:.0f} MB, x{GROWTH_MAX}")  # noqa: T201
    return kept and completed == count


def main() -> None:
    """Read the count and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, metavar="N")
    asked = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        kept = runner.run(soak(asked.count))
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
