"""The commands that work: `run`, and the parts for several machines, `worker` and `migrate`."""

from __future__ import annotations

import sys
from textwrap import indent
from typing import Annotated

import typer

from host.commands.exits import table
from host.commands.options import Json

RUN_HELP = f"""Run one case until it ends or waits for a person, with a live timeline read from its record.

    CASE is a file, - for standard input, or the id of a workflow that can go on. The same case again answers with the
    same workflow and calls nothing. Without KESSAI_DSN and KESSAI_SERVER_URL it works on this machine's own stack,
    which it brings up for as long as it needs it.

    \b
    Examples
      kessai run examples/returns/normal.json
      kessai run case.json --as-of 2026-07-01T09:00:00+09:00
      kessai run case.json --json | jq .result
      kessai run 0198c2f4-…

    \b
    Exit codes
{indent(table(), "    ")}
    """


def run(
    case: Annotated[str, typer.Argument(metavar="CASE.json|ID", help="A case, or a workflow to go on with.")],
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="When the customer asked, with its offset; overrides the case."),
    ] = None,
    principal: Annotated[
        str | None, typer.Option("--principal", metavar="NAME", help="Who asks; see the authorization set.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Empty this machine's home first: what earlier runs left there is removed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run one case; what `--help` says of it is below."""
    from host import settings
    from host.commands import run as running
    from host.commands.launch import launch

    read = settings.load()
    asked = running.prepare(case, read.principal if principal is None else principal, as_of)
    sys.exit(launch(running.run(read, asked, fresh=fresh, as_json=as_json)))


run.__doc__ = RUN_HELP  # it holds the table of exit codes


def worker(
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, max=256, help="Workflows at the same time; default 1.")
    ] = None,
) -> None:
    """Take wake-ups off the queue and drive workflows until SIGTERM, which finishes the calls in hand.

    Start as many as you like, on as many machines: a workflow has one driver at a time, and what a killed worker had
    in hand goes on with another. Needs KESSAI_DSN, KESSAI_SERVER_URL, KESSAI_ISSUER and KESSAI_SIGNING_KEY_FILE;
    without them it works on this machine's own stack.

    \b
    kessai worker --concurrency 8
    """
    from host import settings
    from host.commands import serving
    from host.commands.launch import launch

    read = settings.load()
    chosen = read if concurrency is None else read.model_copy(update={"concurrency": concurrency})
    launch(serving.worker(chosen))


def migrate(as_json: Json = False) -> None:
    """Bring the host's database to this program's schema and its roles to their rights; may be run at any time.

    Needs KESSAI_MIGRATE_DSN, the owner's; KESSAI_ROLE_PASSWORDS names a directory with one file per role. Without them
    it prepares this machine's own stack.
    """
    from host import settings
    from host.commands import serving
    from host.commands.launch import launch

    launch(serving.migrate(settings.load(), as_json=as_json))
