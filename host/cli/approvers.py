"""`kessai approver`: whose signed yes or no the host takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import Json

Person = Annotated[
    str, typer.Argument(metavar="NAME", help="An approver's name in the authorization set.", show_default=False)
]


def add(
    name: Person,
    no_passphrase: Annotated[
        bool, typer.Option("--no-passphrase", help="Leave the private half unencrypted, for tests and machines.")
    ] = False,
) -> None:
    """Make a person's own key and let it count: at the host, and on one machine at the tool server too.

    The private half stays with the person, encrypted with a passphrase, in a directory apart from the home:
    KESSAI_APPROVERS, or ~/.config/kessai/approvers. The host's owner alone lets it count (KESSAI_MIGRATE_DSN); a tool
    server of another machine is told by its own operator, with the command that is printed.

    \b
    kessai approver add tanaka
    """
    from host import settings
    from host.commands import approvers

    read = settings.load()
    files, _ = approvers.prepare(read, name, locked=not no_passphrase)
    launch(approvers.trust(read, files.public))


def trust(
    file: Annotated[Path, typer.Argument(help="A public half, as `kessai approver add` writes it.")],
) -> None:
    """Let a key count that was made before, or elsewhere; the same file again changes nothing.

    \b
    kessai approver trust ~/.config/kessai/approvers/tanaka.json
    """
    from host import settings
    from host.commands import approvers

    launch(approvers.trust(settings.load(), file.absolute()))


def list_approvers(as_json: Json = False) -> None:
    """List who may decide, up to which amount, and whose key counts or was revoked.

    \b
    kessai approver list --json | jq '.approvers[] | select(.kid)'
    """
    from host import settings
    from host.commands import approvers

    launch(approvers.listed(settings.load(), as_json=as_json))


def revoke(name: Person) -> None:
    """Let a person's key count no more, from now on and for good: not even what it signed before.

    \b
    kessai approver revoke tanaka
    """
    from host import settings
    from host.commands import approvers

    launch(approvers.revoke(settings.load(), name))
