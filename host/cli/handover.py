"""`kessai handover`, which changes nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import Json, Name


def handover(
    name: Name,
    as_html: Annotated[
        bool, typer.Option("--html", help="Write one HTML page that needs nothing beside itself.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the handover sheet of a case that a person has to take over: why, what to do now, and all that was done.

    There is one for every case in NEEDS_REVIEW, EXPIRED or COMPENSATION_REQUIRED, and for every open case while work is
    stopped. It names the customer by the shop's identifier alone and repeats nobody's message. Without options it is
    Markdown.

    \b
    kessai handover 0198c2f4-…
    kessai handover 0198c2f4-… --html > case.html
    """
    from host import settings
    from host.commands import handover as writing

    launch(writing.written(settings.load(), name, as_html=as_html, as_json=as_json))
