"""`kessai eval`: what an evaluation shows, and what came of a change. Both commands only read files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from host.cli.options import Json


def gate(
    report: Annotated[Path, typer.Argument(metavar="REPORT", help="A report.json of an evaluation.")],
    as_json: Json = False,
) -> None:
    """Decide by a report whether this release may touch a customer: six conditions, each with what it is known by.

    Every case is scored again and every number computed again; what the report says of itself is not taken over. One
    severe finding fails all of it. A report that proves too little is refused: too few cases, a fault that nothing
    shows to have happened, a cost of nothing.

    \b
    kessai eval gate report.json
    kessai eval gate report.json --json | jq '.conditions[] | select(.held | not)'
    """
    from host.commands import evaluate

    sys.exit(evaluate.gate(report, as_json=as_json))


def compare(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="The report.json before the change.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The report.json after it.")],
    as_json: Json = False,
) -> None:
    """Say what one change mended and what it broke: the cases that had failed, their neighbours, and the others.

    The groups are chosen from the report before. Data, cases, faults and where they strike, seed, limits and how many
    run at a time have to be equal, and AFTER has to name the one part that was changed.

    \b
    kessai eval compare before/report.json after/report.json
    """
    from host.commands import evaluate

    sys.exit(evaluate.compare(before, after, as_json=as_json))
