"""`kessai approve` and `kessai deny`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from host.cli.launch import launch
from host.cli.options import Json, Name

if TYPE_CHECKING:
    from host.commands.approve import Wanted

Approver = Annotated[str, typer.Option("--as", metavar="NAME", help="Who decides; the key of that name signs.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask; needs --digest.")]
Digest = Annotated[
    str | None,
    typer.Option("--digest", metavar="DIGEST", help="The action_digest that `kessai show ID --json` has in approvals."),
]


def approve(
    name: Name,
    approver: Approver,
    yes: Yes = False,
    digest: Digest = None,
    as_json: Json = False,
) -> None:
    """Say yes to what a case waits for: shows it, asks, signs it with your own key, and lets the case go on.

    Shown are the order, the rules, the amount, the effects, whether and until when they can be undone, and the final
    arguments. The yes is good for this alone, once, until its time is up. No worker and no tool server has to run.
    KESSAI_APPROVER_PASSPHRASE_FILE names a file with the key's passphrase, for automation.

    \b
    kessai approve 0198c2f4-… --as tanaka
    kessai approve 0198c2f4-… --as tanaka --yes --digest 5f0c…
    """
    from host.commands.approve import Wanted

    _decide(Wanted(name, approver, "approve", "", yes, digest), as_json=as_json)


def deny(
    name: Name,
    approver: Approver,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the record.")],
    yes: Yes = False,
    digest: Digest = None,
    as_json: Json = False,
) -> None:
    """Say no to what a case waits for: it ends as REJECTED, and nothing is made.

    \b
    kessai deny 0198c2f4-… --as tanaka --reason "The camera is not ours."
    """
    from host.commands.approve import Wanted

    _decide(Wanted(name, approver, "deny", reason, yes, digest), as_json=as_json)


def _decide(wanted: Wanted, *, as_json: bool) -> None:
    """Ask between the two looks at the database, so that nothing waits for a person and Ctrl-C ends what waits."""
    from host import settings
    from host.commands import approve as deciding
    from host.commands.asking import confirmed

    read = settings.load()
    seen = launch(deciding.look(read, wanted))
    deciding.show(seen, as_json=as_json)
    since = time.monotonic()
    if deciding.may_ask(read, wanted, seen) and not confirmed(f"{wanted.decision.capitalize()} this?"):
        typer.echo("Nothing was decided.", err=True)
        raise typer.Exit(2)
    looked_seconds = time.monotonic() - since
    key = deciding.key_of(read, wanted.approver)
    deciding.tell(read, launch(deciding.decide(read, wanted, seen, key, looked_seconds)), as_json=as_json)
