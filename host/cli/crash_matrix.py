"""`kessai crash-matrix`, which works in homes of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from host.cli import choices
from host.cli.launch import launch
from host.cli.options import Json

CONCURRENCY, CONCURRENCY_MAX = 4, 8


def crash_matrix(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            autocompletion=choices.crash_paths,
            help="Only these ways of writing, such as return/worker; else all.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[
        int,
        typer.Option("--concurrency", metavar="N", min=1, max=CONCURRENCY_MAX, help="How many cells at a time."),
    ] = CONCURRENCY,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="DIR", help="Also write crash-matrix.json there; one that is there is not written over."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Kill a worker, the tool server or a command at every commit of every way of writing, and see what comes of it.

    Each way is run once without a kill, which counts its commits; then once for either side of each of them. Whoever
    dies is killed with SIGKILL, another is started or the command is typed again, and the case has to come to its one
    end with its effects, each of them once. It prints what was made, the state that was reached and the time from the
    death to there. A kill that did not happen is as wrong as a doubled return.

    It has homes of its own beside yours, made for the run and removed after it, so that nothing real is touched.

    \b
    kessai crash-matrix
    kessai crash-matrix return/worker undoing/tool-server
    kessai crash-matrix --json | jq '.cells[] | select(.right | not)'
    """
    from host import settings
    from host.commands import crash_matrix as crashing

    sys.exit(launch(crashing.crash_matrix(settings.load(), paths, concurrency, report, as_json=as_json)))
