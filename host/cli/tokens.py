"""`kessai token`: tokens for outside MCP hosts, each written into the host's record before it exists."""

from __future__ import annotations

from typing import Annotated

import typer

from host.cli import choices
from host.cli.launch import launch
from host.cli.options import Json, Most

MINUTES_MAX = 15


def issue(
    customer: Annotated[str, typer.Option("--customer", metavar="ID", help="Whose orders the token is good for.")],
    principal: Annotated[
        str | None,
        typer.Option(
            "--principal",
            metavar="NAME",
            autocompletion=choices.principals,
            help="On whose behalf; see the authorization set.",
        ),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            autocompletion=choices.reading_scopes,
            help="Only these, such as orders:read; default: every read held.",
        ),
    ] = None,
    resource: Annotated[str | None, typer.Option("--resource", metavar="ORDER", help="Only this order.")] = None,
    allow_write: Annotated[
        str | None,
        typer.Option(
            "--allow-write",
            metavar="TOOL",
            autocompletion=choices.writes,
            help="Only this write; needs --resource.",
        ),
    ] = None,
    minutes: Annotated[
        int, typer.Option("--minutes", min=1, max=MINUTES_MAX, help="How long it is good.")
    ] = MINUTES_MAX,
    issued_by: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Who issues it; default: the user who runs this.")
    ] = None,
) -> None:
    """Issue a token for an outside MCP host. Standard output gets the token and nothing else.

    It reads by default. A write needs its name and one order, and carries one idempotency key. What is done with it
    stands in the tool server's log under the token's id, which the host's record holds first.

    \b
    TOKEN=$(kessai token issue --customer C-2001)
    kessai token issue --customer C-2001 --allow-write create_return --resource A-1001
    """
    from host import settings
    from host.commands import tokens

    scopes = None if scope is None else frozenset(scope)
    wanted = tokens.TokenRequest(customer, principal, scopes, resource, allow_write, minutes, issued_by)
    launch(tokens.issue(settings.load(), wanted))


def list_tokens(most: Most = 50, as_json: Json = False) -> None:
    """List what tokens were issued for, the newest first: to whom, by whom, for which customer, until when.

    \b
    kessai token list --json | jq '.tokens[] | select(.tool)'
    """
    from host import settings
    from host.commands import tokens

    launch(tokens.listed(settings.load(), most, as_json=as_json))
