"""`kessai stop` and `kessai resume`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import Json

Operator = Annotated[str, typer.Option("--as", metavar="NAME", help="Who acts: an operator of the authorization set.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the record.")]


def stop(
    by: Operator,
    reason: Reason,
    reads: Annotated[
        bool, typer.Option("--reads", help="Reads too: where nobody knows how far somebody's data got.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Stop everything that could begin: no new case, no update, from this moment on, whatever runs where.

    What is under way is finished and recorded. It works with nothing up, and says what it met. Engaged again it is
    recorded again; --reads adds to it.

    \b
    kessai stop --as ito --reason "Two returns for one parcel."
    """
    from host import settings
    from host.commands import stop as acting

    launch(acting.stop(settings.load(), by, reason, reads=reads, as_json=as_json))


def resume(
    by: Operator,
    reason: Reason,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="Release cases that are held in this state.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="How many of them at most.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Several cases at a time again: when nothing is held.")] = False,
    as_json: Json = False,
) -> None:
    """Go on after a stop: look up every effect in doubt, record what is known, and lift it if nothing is unknown.

    From then on one case is driven at a time, and what was halted is held until it is released by parts. Only the owner
    of the database lifts: set KESSAI_MIGRATE_DSN, or do it on the machine whose stack it is.

    \b
    kessai resume --as sato --reason "The double parcel was a test."
    kessai resume --as sato --reason "First part." --state ELIGIBLE --limit 10
    kessai resume --as sato --reason "All went well." --full
    """
    from host import settings
    from host.commands import resume as acting
    from host.commands.resume_next import Wanted

    wanted = Wanted(by, reason, state, limit, full)
    sys.exit(launch(acting.resume(settings.load(), wanted, as_json=as_json)))
