"""How many steps are through, on a terminal, and what is to be said of one; what is piped is not drawn over."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from host.commands.output import plain


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, on standard error."""

    _progress: Progress
    _task: TaskID

    def advance(self, steps: int, total: int | None = None) -> None:
        """Count steps; `total` is said where more of them have become known."""
        self._progress.update(self._task, advance=steps, total=total)

    def tell(self, line: str) -> None:
        """Say something of a step, above the bar."""
        self._progress.console.print(Text(plain(line)), soft_wrap=True)


@contextmanager
def bar(what: str, total: int | None) -> Iterator[Bar]:
    """Show it for as long as the block lasts."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
        yield Bar(progress, progress.add_task(what, total=total))
