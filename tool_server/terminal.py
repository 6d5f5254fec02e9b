"""What every command of `kessai-tools` shares: its option for JSON, the owner's settings, and how it writes.

Invariant: nothing that somebody has typed or stored moves a cursor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shared_contracts.printed import json_text, plain

if TYPE_CHECKING:
    from tool_server.settings import OwnerSettings

EXITS = "Exit codes: 0 done · 2 bad input · 15 not ready (settings, keys, port, database, schema)"
Json = Annotated[bool, typer.Option("--json", help="Write JSON for programs instead of text for people.")]


def owner_settings() -> OwnerSettings:
    """Read the settings of whoever owns the database."""
    from tool_server.settings import OwnerSettings, load

    return load(OwnerSettings)


def owner_dsn() -> str:
    """Give the owner's connection string."""
    return owner_settings().migrate_dsn.get_secret_value()


def write_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table in which nothing is cut short, since its names are typed again; a piped line is not broken."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in head:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(plain, row))
    Console(width=None if sys.stdout.isatty() else 200, markup=False, emoji=False, highlight=False).print(table)


def write_json(value: Any) -> None:
    """Write one document."""
    typer.echo(json_text(value))


def say(message: str, *, err: bool = False) -> None:
    """Write a message."""
    typer.echo("\n".join(map(plain, message.split("\n"))), err=err)
