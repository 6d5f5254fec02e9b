"""What the commands' signatures share: options, and help texts that flow to the terminal's width."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer

from host.cli import choices

Json = Annotated[bool, typer.Option("--json", help="Write JSON for programs instead of text for people.")]
Name = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The id of a workflow, a request, a step, a call, a return or a message.", show_default=False
    ),
]
Most = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")]

KEPT = "\b"  # a paragraph that begins with it keeps its lines


def flowing(text: str | None) -> str:
    """Join the lines of each paragraph, so that the terminal breaks them; a kept one stays as it is."""
    paragraphs = inspect.cleandoc(text if text is not None else "").split("\n\n")
    return "\n\n".join(one if one.startswith(KEPT) else " ".join(one.split()) for one in paragraphs)


AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="When the customer asked, with its offset; overrides the case."),
]
Principal = Annotated[
    str | None,
    typer.Option(
        "--principal",
        metavar="NAME",
        autocompletion=choices.principals,
        help="Who asks; see the authorization set.",
    ),
]
ReportKeys = Annotated[
    list[Path] | None,
    typer.Option(
        "--keys",
        metavar="FILE",
        help="Believe reports signed by these: a home's seal-keys.json. May be given again; else this machine's own.",
    ),
]
