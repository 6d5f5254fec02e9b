"""`kessai contract-test`, which works in a home of its own."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from host.cli import choices
from host.cli.launch import launch
from host.cli.options import Json


def contract_test(
    tool: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOOL]",
            autocompletion=choices.writes,
            help="Only this tool; else every one that updates.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Try every tool that updates against a running tool server: six tests each, made from its contract.

    A normal call, a member that is not declared, somebody who may only read, the same intention twice, an answer that
    is lost after the thing was made, and an answer of HTTP 200 that is no success. It prints what each is known by and
    the checklist of nine items; whatever is counted was counted in the tool server's database by its auditor.

    It has a home of its own beside yours, made for the run and removed after it, so that nothing real is touched.

    \b
    kessai contract-test
    kessai contract-test create_return
    kessai contract-test --json | jq '.tools[].items[] | select(.held | not)'
    """
    from host import settings
    from host.commands import contract_test as testing

    sys.exit(launch(testing.contract_test(settings.load(), tool, as_json=as_json)))
