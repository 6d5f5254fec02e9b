"""`kessai tools` and `states`: what the tables of this program say, without a database."""

from __future__ import annotations

from typing import Annotated

import typer

from host.cli import choices
from host.cli.options import Json


def tools(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", autocompletion=choices.tools, help="Only this tool.", show_default=False),
    ] = None,
    as_yaml: Annotated[
        bool,
        typer.Option("--yaml", help="Write the registration forms as YAML: a stream, one document per tool."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show every tool's registration form, what it lacks, and the checklist of a write.

    What --yaml writes of all tools is a stream of several YAML documents, with --- between them: read it with a
    parser's function for streams, such as safe_load_all of PyYAML.

    \b
    kessai tools
    kessai tools create_return
    kessai tools --yaml > tools.yaml
    """
    from host.commands import tables

    tables.tools(name, as_yaml=as_yaml, as_json=as_json)


def states(as_json: Json = False) -> None:
    """Show the state sheet: how each state is entered, what may be called in it, whether it ends, who answers for it.

    \b
    kessai states --json | jq '.kinds[].states[] | select(.terminal)'
    """
    from host.commands import tables

    tables.states(as_json=as_json)
