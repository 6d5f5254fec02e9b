"""`kessai baseline`."""

from __future__ import annotations

from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import AsOf, Json, Principal


def baseline(
    case: Annotated[str, typer.Argument(metavar="CASE.json", help="A case, or - for standard input.")],
    as_of: AsOf = None,
    principal: Principal = None,
    as_json: Json = False,
) -> None:
    """Judge a case from structured fields alone: no planner, no case taken in, nothing changed outside.

    It reads through the tool server as a run does, compares, and drafts what the customer would be told. A kind may
    have no baseline.

    \b
    kessai baseline examples/claims/C-102.json
    """
    from host import settings
    from host.commands import baseline as judging

    launch(judging.judge(settings.load(), case, principal, as_of, as_json=as_json))
