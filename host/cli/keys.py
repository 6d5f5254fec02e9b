"""`kessai keys`: the signing key, what follows it, and what is trusted beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import Json

Directory = Annotated[
    Path | None,
    typer.Option("--in", metavar="DIRECTORY", help="The keys that `kessai secrets` made there; default: this home's."),
]


def list_keys(directory: Directory = None, as_json: Json = False) -> None:
    """List the keys that verify tokens: ours with what each is for, and other issuers' that an operator trusts.

    \b
    kessai keys list
    kessai keys list --in secrets
    """
    from host import settings
    from host.commands import keys

    keys.listed(settings.load(), directory, as_json=as_json)


def rotate(
    directory: Directory = None,
    published: Annotated[
        bool,
        typer.Option("--published", help="With --in: every tool server has the new jwks.json; sign with its key now."),
    ] = False,
) -> None:
    """Sign with a new key. No call is refused by it, and nothing is restarted.

    The new public key is published first. It signs once the tool server takes it, and the old one stays published until
    its last token has run out. What a killed command began, the next one finishes.

    For other machines there are two steps, since somebody brings the files there in between: see “Rotate keys and
    passwords” in the runbook.

    \b
    kessai keys rotate
    kessai keys rotate --in secrets
    kessai keys rotate --in secrets --published
    """
    from host import settings
    from host.commands import keys

    launch(keys.rotate(settings.load(), directory, published=published))


def revoke(
    kid: Annotated[str, typer.Argument(metavar="KID", help="As `kessai keys list` writes it.", show_default=False)],
    directory: Directory = None,
) -> None:
    """Refuse every token of a key, at once and for good; where it is the one that signs, a new one signs from now on.

    A call that is on its way under that key is refused with the others, and its case goes to a person.

    \b
    kessai keys revoke KID
    """
    from host import settings
    from host.commands import keys

    launch(keys.revoke(settings.load(), kid, directory))
