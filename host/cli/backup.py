"""`kessai backup`: what an operator types before something goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import Json


def backup(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A directory that is new or empty.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Write both databases of this machine's stack into a directory, while it works or while it is down.

    What customers said and ordered is in it, so it is made for your eyes alone; no key, no password and no mail of the
    home is. Where KESSAI_DSN or KESSAI_MIGRATE_DSN is set it does nothing and ends with 2: those databases are another
    server's.

    \b
    kessai backup /backups/$(date +%F)
    """
    from host import settings
    from host.commands import backup as commands

    launch(commands.backup(settings.load(), directory, as_json=as_json))
