"""`kessai up`, `down`, `status`, `doctor`, `empty`, and `secrets` for several machines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from host.cli.launch import launch
from host.cli.options import Json


def up() -> None:
    """Bring the whole stack of this machine up in the background: database, tool server, worker.

    What already runs is adopted; what is outdated is restarted. `kessai down` stops it. It acts on this machine's home,
    also where KESSAI_DSN is set and commands such as run and list work elsewhere; then it says so.
    """
    from host import settings
    from host.commands import machine

    sys.exit(launch(machine.up(settings.load())))


def down() -> None:
    """Stop everything of this machine's stack; calls in hand are finished first.

    It acts on this machine's home, also where KESSAI_DSN is set and other commands work elsewhere; then it says so.
    """
    from host import settings
    from host.commands import machine

    launch(machine.down(settings.load()))


def status(as_json: Json = False) -> None:
    """Show what runs on this machine, in which mode and why. Nothing is started.

    It also says of each kind whether it acts by itself or only reads and drafts, and then what it lacks.

    It looks at this machine's home. Where KESSAI_DSN is set, other commands work elsewhere; then it says so, and
    `kessai doctor` looks there.
    """
    from host import settings
    from host.commands import machine

    sys.exit(launch(machine.status(settings.load(), as_json=as_json)))


def doctor(as_json: Json = False) -> None:
    """Check settings, keys, clocks, versions and rights, one line each with the mend. Nothing is changed."""
    from host.commands.doctor import doctor as check

    sys.exit(launch(check(as_json=as_json)))


def empty(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Stop this machine's stack and remove all its data: database, keys, mail. Only a home of ours is touched.

    Where KESSAI_DSN, KESSAI_SERVER_URL, KESSAI_ISSUER or KESSAI_SIGNING_KEY_FILE is set it removes nothing and ends
    with 2: whoever set them may mean another place.
    """
    from host import settings
    from host.commands import machine
    from host.commands.asking import confirmed

    read = settings.load()
    machine.refuse_elsewhere(read)
    if not yes and not confirmed(f"Remove everything in {settings.home_root(read)}?"):
        typer.echo("Nothing was removed.", err=True)
        raise typer.Exit(1)
    launch(machine.empty(read))


def secrets(
    directory: Annotated[Path, typer.Argument(help="A directory of our own; made where there is none.")],
    issuer: Annotated[
        str | None,
        typer.Option("--issuer", help="The name under which the worker signs; default: the one that is there."),
    ] = None,
) -> None:
    """Make the passwords and keys of programs that are started one by one, such as those of compose.yaml.

    \b
    kessai secrets secrets
    """
    from host.commands import machine

    machine.secrets(directory, issuer)
