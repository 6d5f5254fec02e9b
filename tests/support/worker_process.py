"""A real worker in a process of its own, over tools whose effects lie in a directory and outlive it.

    python -m tests.support.worker_process DSN DIRECTORY LEASE_SECONDS CONCURRENCY

`hold-<tool>` in the directory keeps a call of that tool on the wire, after its effect, until the file is gone;
`busy-<tool>` lets one call of it be refused as one too many.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psycopg_pool import AsyncConnectionPool

from host.domain.outcome import Outcome, Rejected, Success
from host.engine.parts import Request
from host.engine.wake import queue_app, waker
from host.engine.worker import work
from tests.support.engine import parts as parts_over
from tests.support.fake_tools import FakeTools, failure

ROOT = Path(__file__).parents[2]


class DirectoryTools(FakeTools):
    """Honest, and the same for every process that is given the same directory."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory

    async def call(self, request: Request) -> Outcome:
        (self.directory / f"request-{time.monotonic_ns()}-{os.getpid()}").write_text(request.tool.name)
        busy = self.directory / f"busy-{request.tool.name}"
        if busy.exists():
            busy.unlink()
            return Rejected(failure("rate_limited"))
        outcome = self.honest(request)
        while (self.directory / f"hold-{request.tool.name}").exists():  # noqa: ASYNC110 - set by another process
            await asyncio.sleep(0.01)
        return outcome

    def once(self, request: Request, _table: dict[str, Any], new: Callable[..., dict[str, Any]]) -> Outcome:
        name = str(request.idempotency_key).replace(":", "-")
        effect, closed = self.directory / f"effect-{name}", self.directory / f"closed-{name}"
        if effect.exists():
            return Success(json.loads(effect.read_text()))
        if closed.exists() and request.attempt <= int(closed.read_text()):
            return Rejected(failure("attempt_superseded"))
        record = new(request.arguments)
        with effect.open("x") as file:
            json.dump(record, file)
        return Success(record)

    def found(self, request: Request, _table: Any) -> dict[str, Any]:
        name = str(request.idempotency_key).replace(":", "-")
        effect, closed = self.directory / f"effect-{name}", self.directory / f"closed-{name}"
        if not effect.exists():
            closed.write_text(str(request.attempt))
        record = json.loads(effect.read_text()) if effect.exists() else None
        through = int(closed.read_text()) if closed.exists() else 0
        return {"found": record is not None, "record": record, "closed_through": through, "evidence_ref": "key://k"}

    def honest(self, request: Request) -> Outcome:
        if request.tool.name == "get_return":
            records = [json.loads(path.read_text()) for path in self.directory.glob("effect-*create_return")]
            self.returns = {record["return_id"]: record for record in records}
        return super().honest(request)

    def new_return(self, arguments: Any) -> dict[str, Any]:
        return {**super().new_return(arguments), "return_id": f"R-{time.monotonic_ns()}"}

    def new_notice(self, arguments: Any) -> dict[str, Any]:
        return {**super().new_notice(arguments), "message_id": f"<n{time.monotonic_ns()}@shop.example>"}


async def main(dsn: str, directory: Path, lease_seconds: float, concurrency: int) -> None:
    queue = queue_app(dsn)

    async def refresh() -> None:
        (directory / "refreshed").touch()

    options: dict[str, Any] = {"min_size": 1, "max_size": 6, "open": False, "kwargs": {"autocommit": True}}
    async with AsyncConnectionPool(dsn, **options) as pool, queue.open_async():
        parts = await parts_over(pool, DirectoryTools(directory), lease_seconds=lease_seconds, owner=str(os.getpid()))
        (directory / f"ready-{os.getpid()}").touch()
        await work(parts, queue, waker(queue), refresh, concurrency)


Worker = subprocess.Popen[bytes]


@contextmanager
def worker(dsn: str, directory: Path, lease_seconds: float = 15.0, concurrency: int = 2) -> Iterator[Worker]:
    """A worker that is at work; killed at the end if it still is."""
    settings = (dsn, str(directory), str(lease_seconds), str(concurrency))
    argv = [sys.executable, "-m", "tests.support.worker_process", *settings]
    process = subprocess.Popen(argv, cwd=ROOT)
    try:
        until((directory / f"ready-{process.pid}").exists, 30)
        yield process
    finally:
        process.kill()
        process.wait(10)


def until(holds: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Ask again and again, for a bounded time, and give what at last was true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = holds()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {holds}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
