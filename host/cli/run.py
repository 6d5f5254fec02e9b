"""`kessai run`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import AsOf, Json, Principal

RUN_HELP = """Run one case until it ends or waits for a person, with a live timeline read from its record.

    CASE is a file, - for standard input, or the id of a workflow that can go on. The same case again answers with the
    same workflow and calls nothing. Without KESSAI_DSN and KESSAI_SERVER_URL it works on this machine's own stack,
    which it brings up for as long as it needs it.

    \b
    Examples
      kessai run examples/returns/normal.json
      kessai run case.json --as-of 2026-07-01T09:00:00+09:00
      kessai run case.json --json | jq .result
      kessai run 0198c2f4-…
    """


def run(
    case: Annotated[str, typer.Argument(metavar="CASE.json|ID", help="A case, or a workflow to go on with.")],
    as_of: AsOf = None,
    principal: Principal = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Empty this machine's home first: what earlier runs left is removed. Not while somebody works there.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Run one case; what `--help` says of it is below."""
    from host import settings
    from host.commands import run as running

    read = settings.load()
    asked = running.prepare(case, principal, as_of)
    sys.exit(launch(running.run(read, asked, fresh=fresh, as_json=as_json)))


run.__doc__ = RUN_HELP  # it holds the table of exit codes
