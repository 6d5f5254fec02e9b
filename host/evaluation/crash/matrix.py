"""The whole matrix: each path counted without a kill, then killed on both sides of each of its commits, some at a time.

    lane 1 ─ databases, programs ─ count, cells, cells …      <home>-crash-matrix-1
    lane 2 ─ databases, programs ─ cells, count, cells …      <home>-crash-matrix-2

Invariant: nothing outlives it, however it ends, and it passed only where every cell of every path is right and both
sides agree in every lane.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path as File

from host.evaluation.audit import reconciled
from host.evaluation.crash import cell
from host.evaluation.crash.documents import CrashCell, CrashMatrix, CrashPath
from host.evaluation.crash.forks import HOST_MODULES, NURSERY, TOOLS_MODULES, nursery
from host.evaluation.crash.lane import TAKEOVER_SECONDS, Lane, LateError, Nurseries, opened
from host.evaluation.crash.names import SIDES, Boundary, When
from host.evaluation.crash.paths import Path
from host.evaluation.crash.people import stocked, trust_approver
from host.stack.build import installed_build
from host.stack.postgres import PostgresChoice
from host.store import crash
from shared_contracts.evaluation_report import Compared

CHUNK = 6  # cells that one lane makes at a time
Told = Callable[[int, CrashCell | CrashPath], None]  # how many there are by now, and what is through


@dataclass(frozen=True, slots=True)
class _Job:
    """Cells of a path; none: it is to be counted."""

    path: Path
    cells: tuple[tuple[Boundary, When], ...] = ()


@dataclass
class _Board:
    """What is to be done and what was done, by all lanes."""

    told: Told
    jobs: asyncio.Queue[_Job | None] = field(default_factory=asyncio.Queue)
    open: int = 0
    total: int = 0
    paths: dict[str, CrashPath] = field(default_factory=dict)
    cells: dict[tuple[str, str, When], CrashCell] = field(default_factory=dict)
    compared: list[Compared] = field(default_factory=list)
    stray: list[str] = field(default_factory=list)

    def add(self, job: _Job) -> None:
        self.open += 1
        self.total += len(job.cells)
        self.jobs.put_nowait(job)

    def counted(self, path: Path, boundaries: Sequence[Boundary], wrong: tuple[str, ...]) -> None:
        named = tuple(map(str, boundaries))
        self.paths[path.name] = CrashPath(
            path=path.name, victim=path.victim, what=path.what, boundaries=named, wrong=wrong
        )
        points = [(boundary, when) for boundary in boundaries for when in SIDES]
        for first in range(0, len(points), CHUNK):
            self.add(_Job(path, tuple(points[first : first + CHUNK])))
        self.told(self.total, self.paths[path.name])

    def through(self, made: CrashCell) -> None:
        self.cells[made.path, made.boundary, made.when] = made
        self.told(self.total, made)

    def done(self, lanes: int) -> None:
        self.open -= 1
        if self.open == 0:
            for _ in range(lanes):
                self.jobs.put_nowait(None)


def home_of(root: File, lane: int) -> File:
    """Name a lane's home by the user's."""
    return root.with_name(f"{root.name}-crash-matrix-{lane}")


async def crash_matrix(
    root: File, choice: PostgresChoice, paths: Sequence[Path], concurrency: int, told: Told, born_of: str = NURSERY
) -> CrashMatrix:
    """Run it. Raises StackError, NotReadyError."""
    began, made_at, board = time.monotonic(), datetime.now(UTC), _Board(told)
    lanes = min(concurrency, 2 * len(paths))
    for path in paths:
        board.add(_Job(path))
    with ExitStack() as born:
        host = born.enter_context(nursery(HOST_MODULES, born_of))
        tools = born.enter_context(nursery(TOOLS_MODULES, born_of))
        nurseries = Nurseries(host, tools)
        async with asyncio.TaskGroup() as group:
            for number in range(1, lanes + 1):
                group.create_task(_lane(home_of(root, number), choice, nurseries, board, lanes))
    return _document(board, paths, lanes, made_at, time.monotonic() - began)


async def _lane(root: File, choice: PostgresChoice, nurseries: Nurseries, board: _Board, lanes: int) -> None:
    async with opened(root, choice, nurseries) as lane:
        await trust_approver(lane)
        while (job := await board.jobs.get()) is not None:
            await _stock(lane, job)
            await (_cells(lane, job, board) if job.cells else _count(lane, job, board))
            board.done(lanes)
        await lane.clear(all_of_it=True)
        board.compared.append((await reconciled(lane.auditors)).as_compared())
        known = await crash.messages(lane.auditors.tools)
        board.stray += [one for one in cell.mails(lane) if one not in known]


async def _stock(lane: Lane, job: _Job) -> None:
    if job.path.stock is not None:
        await lane.fresh()
        await stocked(lane, job.path.stock, max(1, len(job.cells)))


async def _count(lane: Lane, job: _Job, board: _Board) -> None:
    try:
        boundaries, wrong = await cell.count(lane, job.path)
    except LateError as error:
        boundaries, wrong = (), (str(error),)
        await lane.clear(all_of_it=True)
    board.counted(job.path, boundaries, wrong)


async def _cells(lane: Lane, job: _Job, board: _Board) -> None:
    for boundary, when in job.cells:
        try:
            made = await cell.crashed(lane, job.path, boundary, when)
        except LateError as error:
            made = cell.unreached(job.path, boundary, when, str(error))
        if not made.right:
            await lane.clear(all_of_it=True)  # the next begins with programs of its own
        board.through(made)


def _document(board: _Board, paths: Sequence[Path], lanes: int, made_at: datetime, seconds: float) -> CrashMatrix:
    counted = tuple(board.paths[path.name] for path in paths)
    cells = tuple(
        board.cells[path.path, boundary, when] for path in counted for boundary in path.boundaries for when in SIDES
    )
    agree = all(not (one.untracked or one.missing or one.duplicate) for one in board.compared)
    passed = (
        all(not path.wrong and path.boundaries for path in counted)
        and all(one.right for one in cells)
        and agree
        and not board.stray
        and sum(one.compared for one in board.compared) > 0
    )
    return CrashMatrix(
        format="kessai-crash-matrix/1", made_at=made_at, build=installed_build().code, seconds=round(seconds, 3),
        takeover_seconds=TAKEOVER_SECONDS, concurrency=lanes, paths=counted, cells=cells,
        compared=tuple(board.compared), stray_mails=tuple(board.stray), passed=passed,
    )  # fmt: skip
