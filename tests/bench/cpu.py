"""CPU time by the kernel's clocks, and the yardstick that makes two moments of one machine comparable."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

QUIET_MS = 14.0  # the yardstick on a quiet machine of the kind that the targets were set on
_ROUNDS = 390_000
_SCHEDULED = 2  # CPUCLOCK_SCHED: all threads of a process, those that ended too


def yardstick() -> float:
    """Give the CPU milliseconds that a fixed piece of Python takes at this moment."""
    began, total = time.thread_time_ns(), 0
    for number in range(_ROUNDS):
        total += number * number % 7
    return (time.thread_time_ns() - began) / 1e6


def cpu_ms(pid: int) -> float:
    """Give the CPU milliseconds of a process so far (Linux: MAKE_PROCESS_CPUCLOCK)."""
    return time.clock_gettime_ns((~pid << 3) | _SCHEDULED) / 1e6


def children(pid: int) -> list[int]:
    """List a process's children by everybody's parent: the kernel's own list of children is racy."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):  # it ended while we looked
                continue
            if parent == pid:
                found.append(int(entry.name))
    return found


def family_ms(pid: int) -> dict[int, float]:
    """Give the CPU milliseconds of a process and of each of its children."""
    found = {}
    for one in (pid, *children(pid)):
        try:
            found[one] = cpu_ms(one)
        except OSError:
            continue
    return found


def queued_ms(pid: int) -> dict[int, float]:
    """Give the milliseconds for which a process and each of its children was ready, and had no processor."""
    found = {}
    for one in (pid, *children(pid)):
        try:
            found[one] = int(Path(f"/proc/{one}/schedstat").read_text(encoding="ascii").split()[1]) / 1e6
        except OSError:
            continue
    return found


def spent(before: dict[int, float], after: dict[int, float]) -> float:
    """Give what a family spent in between; who was born meanwhile counts whole."""
    return sum(ms - before.get(pid, 0.0) for pid, ms in after.items())


def rss_mb(pid: int) -> float:
    """Give the memory that a process holds now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@dataclass
class Spent:
    """CPU ms by whose it is, summed over batches; the yardstick is taken between them."""

    host: float = 0.0
    server: float = 0.0
    postgres: float = 0.0
    queued: float = 0.0  # of all three, while others had the processors
    yardsticks: list[float] = field(default_factory=list)

    def quiet(self, ms: float) -> float:
        """Scale a figure of this measure to a quiet machine."""
        return ms * QUIET_MS / median(self.yardsticks)


class Meter:
    """Counts the CPU of the host (this process), the tool server and PostgreSQL while its block lasts."""

    def __init__(self, spent_so_far: Spent, server_pid: int, postgres_pid: int) -> None:
        self._spent, self._server, self._postgres = spent_so_far, server_pid, postgres_pid

    def __enter__(self) -> None:
        self._spent.yardsticks.append(yardstick())
        self._queued_before = self._queued()
        self._postgres_before = family_ms(self._postgres)
        self._server_before = cpu_ms(self._server)
        self._host_before = cpu_ms(os.getpid())

    def __exit__(self, *_: object) -> None:
        self._spent.host += cpu_ms(os.getpid()) - self._host_before
        self._spent.server += cpu_ms(self._server) - self._server_before
        self._spent.postgres += spent(self._postgres_before, family_ms(self._postgres))
        self._spent.queued += spent(self._queued_before, self._queued())

    def _queued(self) -> dict[int, float]:
        return {**queued_ms(os.getpid()), **queued_ms(self._server), **queued_ms(self._postgres)}


def percentile(values: Iterable[float], share: float) -> float:
    """Give the value below which a share of all lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
