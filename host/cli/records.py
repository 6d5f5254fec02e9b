"""`kessai show`, `list`, `explain` and `ledger`, which change nothing."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from host.cli import choices
from host.cli.launch import launch
from host.cli.options import Json, Most, Name


def show(name: Name, as_json: Json = False) -> None:
    """Show the whole record of one workflow.

    \b
    kessai show R-XV7Q-JDGT-0HW7
    kessai show 0198c2f4-… --json | jq .checkpoints
    """
    from host import settings
    from host.commands import records

    launch(records.show(settings.load(), name, as_json=as_json))


def list_workflows(
    state: Annotated[
        str | None,
        typer.Option(
            "--state", autocompletion=choices.states, help="Only those in this state, such as WAITING_APPROVAL."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", autocompletion=choices.kinds, help="Only those of this kind, such as claims."),
    ] = None,
    exceptions: Annotated[
        bool, typer.Option("--exceptions", help="The exception queue: what a person has, the oldest first.")
    ] = False,
    before: Annotated[UUID | None, typer.Option("--before", help="Go on before this workflow.")] = None,
    most: Most = 50,
    as_json: Json = False,
) -> None:
    """List workflows, the newest first: what is where, and why.

    \b
    kessai list --state WAITING_APPROVAL
    kessai list --exceptions
    """
    from host import settings
    from host.commands import records

    launch(records.listed(settings.load(), records.Selection(state, kind, exceptions, before, most), as_json=as_json))


def explain(
    name: Name,
    everything: Annotated[
        bool, typer.Option("--all", help="Also the six questions of an incident and the seven of an audit.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Explain a run: was there a real call, what was recorded, is the completion condition met.

    \b
    kessai explain 0198c2f4-…
    kessai explain R-XV7Q-JDGT-0HW7 --all
    """
    from host import settings
    from host.commands import records

    launch(records.explained(settings.load(), name, everything=everything, as_json=as_json))


def ledger(
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Only the calls of this workflow.", show_default=False)
    ] = None,
    most: Most = 50,
    as_json: Json = False,
) -> None:
    """Export the tool execution ledger: one row per call, with its key, its effect and its tokens' ids.

    \b
    kessai ledger --json --limit 1000 > ledger.json
    """
    from host import settings
    from host.commands import records

    launch(records.ledger(settings.load(), name, most, as_json=as_json))
