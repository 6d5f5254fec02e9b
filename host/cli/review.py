"""`kessai review` and `kessai compensate`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from host.cli.launch import launch
from host.cli.options import Json, Name

Operator = Annotated[str, typer.Option("--as", metavar="NAME", help="Who acts: an operator of the authorization set.")]


def review(
    name: Name,
    act: Annotated[
        Literal["adopt", "compensate", "close"],
        typer.Argument(metavar="adopt|compensate|close", help="What is done with it."),
    ],
    by: Operator,
    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", help="Why; compensate and close need it. It stands in the record."),
    ] = "",
    accept_unknown: Annotated[
        bool,
        typer.Option("--accept-unknown", help="close: although nobody knows what became of an effect of the case."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Decide on a case that was handed over to a person (NEEDS_REVIEW). These three are the only ways out of it.

    adopt: look up by its key what the case has made; where it is there as it was asked for, the case goes on from it.
    compensate: have what it has made undone within a day: the return is cancelled, who was told is corrected.
    close: say why it stays as it is; it leaves the exception queue. One that has made nothing can be asked for anew.
    Read first: kessai handover ID

    \b
    kessai review 0198c2f4-… adopt --as sato
    kessai review 0198c2f4-… compensate --as sato --reason "The wrong camera."
    kessai review 0198c2f4-… close --as sato --reason "Settled by telephone."
    """
    from host import settings
    from host.commands import review as acting

    wanted = acting.Wanted(name, act, by, reason, accept_unknown)
    raise typer.Exit(launch(acting.review(settings.load(), wanted, as_json=as_json)))


def compensate(name: Name, by: Operator, as_json: Json = False) -> None:
    """Let one case be undone although a stop is engaged (COMPENSATION_REQUIRED). Nothing else goes on by it.

    \b
    kessai compensate 0198c2f4-… --as sato
    """
    from host import settings
    from host.commands import review as acting

    launch(acting.release_one(settings.load(), name, by, as_json=as_json))
