"""`kessai backup` and `restore`: what an operator types before something goes wrong, and after."""

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


def restore(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="What `kessai backup` has written.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Make a home of a backup, with keys and passwords of its own. It starts stopped.

    The home is new or empty; a home that is there is refused and left as it is. Reading commands work at once; nothing
    is taken in and no tool is called until `kessai resume` has looked up every effect.

    \b
    KESSAI_HOME=/srv/kessai-restored kessai restore /backups/2026-07-30
    """
    from host import settings
    from host.commands import backup as commands

    launch(commands.restore(settings.load(), directory, as_json=as_json))
