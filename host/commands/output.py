"""What reaches a terminal: people get text and colour that obeys NO_COLOR, programs get JSON.

Invariant: nothing that came from outside moves a cursor or paints: it is printed without control characters.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from host.settings import Settings, elsewhere
from shared_contracts.printed import json_text, plain
from shared_contracts.record import Result

COLOURS = {
    "COMPLETED": "green", "completed": "green", "verified": "green", "succeeded": "green", "success": "green",
    "REJECTED": "cyan", "EXPIRED": "yellow", "WAITING_APPROVAL": "yellow", "RETRY_WAIT": "yellow", "waiting": "yellow",
    "NEEDS_REVIEW": "magenta", "needs_human": "magenta", "COMPENSATION_REQUIRED": "magenta",
    "failed": "red", "unknown": "red", "rejected": "red",
}  # fmt: skip


def console() -> Console:
    """Write to standard output; a line that is piped is never broken."""
    width = None if sys.stdout.isatty() else 200
    return Console(highlight=False, emoji=False, markup=False, width=width)


def error_console() -> Console:
    """Write to standard error, for what helps a person to ask again."""
    width = None if sys.stderr.isatty() else 200
    return Console(stderr=True, highlight=False, emoji=False, markup=False, width=width)


def shown(value: object) -> Text:
    """Give a cell: empty for nothing, coloured where the word has a colour."""
    text = "" if value is None else plain(value)
    return Text(text, style=COLOURS.get(text, ""))


def table(*columns: str, title: str | None = None) -> Table:
    """Make an empty table."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def add(to: Table, *cells: object) -> None:
    """Add a row of plain cells."""
    to.add_row(*(shown(cell) for cell in cells))


def write_json(value: Any) -> None:
    """Write one JSON value."""
    sys.stdout.write(json_text(value) + "\n")


def fact(to: Console, name: str, value: str, style: str = "") -> None:
    """Show one fact under its name."""
    to.print(Text(f"{name:<9} ", style="dim"), Text(plain(value), style=style), sep="", soft_wrap=True)


def moment(at: datetime | None) -> str:
    """Write a time as it is here, to the millisecond."""
    return "" if at is None else at.astimezone().strftime("%m-%d %H:%M:%S.%f")[:-3]


def say(line: str) -> None:
    """Tell a person something beside the result, on standard error."""
    sys.stderr.write(plain(line) + "\n")


def command(settings: Settings, *arguments: str) -> str:
    """Spell a command that works from here: with the home that is used, and the program as it was started."""
    started = Path(sys.argv[0])
    found = shutil.which("kessai")
    if started.name == "kessai":
        program = "kessai" if found is not None and Path(found).samefile(started) else os.path.relpath(started)
    else:
        program = f"{shlex.quote(sys.executable)} -m host.cli"
    own = None if elsewhere(settings) is not None else settings.home
    home = "" if own is None else f"KESSAI_HOME={shlex.quote(str(own))} "
    return f"{home}{program} {shlex.join(arguments)}"


def own_members(result: Result | None) -> Iterator[tuple[str, str]]:
    """Give what a kind's result tells beside the outcome and its evidence; what there is none of is left out."""
    told = {} if result is None or result.model_extra is None else result.model_extra
    for name, value in told.items():
        if value is not None:
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield name.removesuffix("_id").removesuffix("_codes").replace("_", " "), shown if shown else "none"
