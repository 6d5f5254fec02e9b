"""How many steps are through, on standard error: a bar on a terminal, else a line now and then; and a word at an end.

Invariant: what is piped is not drawn over, and standard output has nothing of it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from host.commands.output import say
from shared_contracts.printed import plain

LINE_SECONDS = 10.0  # without a terminal


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, or the lines in its place."""

    _progress: Progress
    _task: TaskID

    def advance(self, steps: int, total: int | None = None, what: str | None = None) -> None:
        """Count steps; `total` is said where more of them have become known, `what` where they are called otherwise."""
        self._progress.update(self._task, advance=steps, total=total, description=what)

    def line(self) -> None:
        """Say how many are through."""
        task = self._progress.tasks[self._task]
        of = "" if task.total is None else f" of {task.total:.0f}"
        say(f"{task.description} {task.completed:.0f}{of}, {task.elapsed or 0:.0f} s")

    def tell(self, line: str) -> None:
        """Say something of a step, above the bar."""
        self._progress.console.print(Text(plain(line)), soft_wrap=True)


@contextmanager
def bar(what: str, total: int | None) -> Iterator[Bar]:
    """Show it for as long as the block, which a task is in, lasts."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
        shown = Bar(progress, progress.add_task(what, total=total))
        saying = asyncio.create_task(_lines(shown)) if progress.disable else None
        try:
            yield shown
        finally:
            if saying is not None:
                saying.cancel()


async def _lines(of: Bar) -> None:
    while True:
        of.line()
        await asyncio.sleep(LINE_SECONDS)


@contextmanager
def interruptible(said: str) -> Iterator[None]:
    """Say what becomes of the work in the block where a signal ends it, once it has cleaned up."""
    try:
        yield
    except (asyncio.CancelledError, SystemExit):  # either is what a signal becomes
        say(f"interrupted: {said}")
        raise
