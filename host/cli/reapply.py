"""`kessai withdraw` and `kessai reapply`."""

from __future__ import annotations

from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import Json, Name


def withdraw(
    name: Name,
    by: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Who takes it back; default: the user who runs this.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Take back a case that waits for an approval: it ends as REJECTED, and nothing is made.

    \b
    kessai withdraw 0198c2f4-…
    """
    from host import settings
    from host.commands import reapply as acting

    launch(acting.take_back(settings.load(), name, by, as_json=as_json))


def reapply(
    name: Name,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help="When the customer asked, with its offset, by which the case is judged; default: now.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask anew for a case that ended with nothing done: a new workflow, with the rules and prices of the day.

    The old case stays as it ended; each of the two names the other. Approvals are asked for anew. Done twice, it is one
    case. It counts as asked for now: where a time limit has passed since the first, such as the return window, it is
    rejected unless --as-of gives the time of the first. The demo's orders lie in July 2026, so they need it.

    \b
    kessai reapply 0198c2f4-…
    kessai reapply 0198c2f4-… --as-of 2026-07-30T09:00:00+09:00
    """
    from host import settings
    from host.commands import reapply as acting

    launch(acting.ask_anew(settings.load(), name, as_of, as_json=as_json))
