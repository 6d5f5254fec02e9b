"""`crash-matrix`: bring up places of its own, kill at every commit, show what came of each, write it down.

Invariant: it ends with 0 only where every cell of every path is right; the user's own stack stays shut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from host.commands import report_file
from host.commands.exits import CommandError, Exit
from host.commands.output import add, console, say, table, write_json
from host.commands.progress import Bar, bar, interruptible
from host.evaluation.crash.documents import CrashCell, CrashMatrix, CrashPath, Effects
from host.settings import Settings, home_root
from host.stack.postgres import PostgresChoice
from shared_contracts.base import dump
from shared_contracts.printed import plain

if TYPE_CHECKING:
    from host.evaluation.crash.paths import Path as Way

REPORT = "crash-matrix.json"
CELLS = "cells"


async def crash_matrix(
    settings: Settings, names: Sequence[str] | None, concurrency: int, report: Path | None, *, as_json: bool
) -> Exit:
    """Run it; raises CommandError, StackError, NotReadyError."""
    ways = _ways(names)
    file = None if report is None else report_file.place(report, REPORT, report_file.OURS)
    from host.commands.log import configure  # here, since the engine and the wire take a second to import
    from host.evaluation.crash import matrix

    configure()
    choice = PostgresChoice(settings.postgres_bin, settings.postgres_os_user)
    with (
        interruptible("what worked was stopped, its homes removed, and no report written."),
        bar(f"counting commits, {CELLS}", None) as shown,
    ):
        view = await matrix.crash_matrix(home_root(settings), choice, ways, concurrency, _teller(shown))
    with report_file.written(file, dump(view), report_file.OURS):
        if as_json:
            write_json(dump(view))
        else:
            _show(view)
    return Exit.DONE if view.passed else Exit.FAILED


def _ways(names: Sequence[str] | None) -> tuple[Way, ...]:
    from host.evaluation.crash.paths import BY_NAME, TABLE

    if not names:
        return TABLE
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        what = f"there is no path {plain(unknown[0])!r}"
        raise CommandError(Exit.BAD_INPUT, what, f"The paths are: {', '.join(BY_NAME)}.")
    return tuple(way for way in TABLE if way.name in names)


def _teller(shown: Bar) -> Callable[[int, CrashCell | CrashPath], None]:
    """Show how many are through, and what is wrong as soon as it is."""

    def through(total: int, made: CrashCell | CrashPath) -> None:
        shown.advance(int(isinstance(made, CrashCell)), total, CELLS)  # the first that comes is a path's count
        if made.wrong:
            place = f"{made.when} {made.boundary}" if isinstance(made, CrashCell) else "without a kill"
            shown.tell(f"{made.path}, {place}: {'; '.join(made.wrong)}")

    return through


def _show(view: CrashMatrix) -> None:
    to = console()
    for way in view.paths:
        cells = [one for one in view.cells if one.path == way.path]
        rows = table("killed", "", "effects", "reached", "resumed", "", title=f"{way.path}  {way.what}")
        for one in cells:
            seconds = "never" if one.resume_seconds is None else f"{one.resume_seconds:.1f} s"
            add(rows, one.when, one.boundary, _effects(one.effects), one.reached, seconds, "; ".join(one.wrong))
        to.print(rows)
        if way.wrong:
            to.print(Text(plain(f"without a kill: {'; '.join(way.wrong)}"), style="red"), soft_wrap=True)
    _end(view)


def _effects(made: Effects) -> str:
    return ", ".join(f"{name} {count}" for name, count in made if count) or "none"


def _end(view: CrashMatrix) -> None:
    to = console()
    for one in view.compared:
        sides = ", ".join(f"{name} {len(getattr(one, name))}" for name in ("untracked", "missing", "duplicate"))
        to.print(f"compared  {one.compared} rows of both sides: {sides}", soft_wrap=True)
    if view.stray_mails:
        to.print(Text(plain(f"mails that no table knows: {', '.join(view.stray_mails)}"), style="red"), soft_wrap=True)
    wrong = sum(not one.right for one in view.cells)
    slowest = max((one.resume_seconds for one in view.cells if one.resume_seconds is not None), default=0.0)
    say(
        f"{len(view.cells)} cells of {len(view.paths)} paths in {view.seconds:.0f} s, {view.concurrency} at a time; "
        f"the slowest went on to its end within {slowest:.1f} s, takeover after {view.takeover_seconds:g} s"
    )
    word = "passed" if view.passed else f"not passed: {wrong} of {len(view.cells)} cells are wrong"
    to.print(Text(word, style="green" if view.passed else "red"))
