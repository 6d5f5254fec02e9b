"""`kessai-tools approver`: whose signed yes the server accepts. Apart from the rest, which is about the server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from shared_contracts.operator import operator
from shared_contracts.printed import money
from tool_server.terminal import EXITS, Json, owner_dsn, say, write_json, write_table

approver = typer.Typer(help="The people whose signed yes this server accepts.", no_args_is_help=True)


@approver.command("trust", epilog=EXITS)
def trust_approver(
    file: Annotated[Path, typer.Argument(help="An approver's public half, as `kessai approver add` writes it.")],
) -> None:
    """Accept a person's approvals from the next call on; the same file again changes nothing.

    Other terms for a known key replace the old ones, which stay in the record. A person has one key at
    a time, and a revoked key never comes back. Needs KESSAI_TOOLS_MIGRATE_DSN (the owner).
    """
    from tool_server.approvers import Change, read_approver, trust

    trusted = read_approver(file)
    done = asyncio.run(trust(owner_dsn(), trusted, operator()))
    person = trusted.approver
    said = {Change.TRUSTED: "is trusted", Change.CHANGED: "is trusted on other terms than before"}
    say(
        f"{person.name} of {person.tenant_id} {said.get(done, 'was trusted on these terms already')}: "
        f"key {trusted.key.kid}, up to {money(person.limit)}"
    )


@approver.command("list", epilog=EXITS)
def list_approvers(as_json: Json = False) -> None:
    """List whose approvals are accepted, up to which amount, and whose key was revoked."""
    from shared_contracts.base import Money, parse
    from tool_server.approvers import listed, told

    rows = [told(known) for known in asyncio.run(listed(owner_dsn()))]
    if as_json:
        write_json(rows)
        return
    shown = []
    for row in rows:
        by = "trusted" if row["revoked_at"] is None else "revoked"
        after = f" after {row['substitutes_after_seconds']} s" if row["substitutes"] else ""
        shown.append((
            row["name"], row["tenant_id"], money(parse(Money, row["limit"])),
            ", ".join(row["substitutes"]) + after, row["kid"], f"{by} by {row[f'{by}_by']} at {row[f'{by}_at']}",
        ))  # fmt: skip
    write_table(("name", "tenant", "up to", "substitutes", "key", "state"), shown)


# a key's id may begin with a dash
@approver.command(
    "revoke", epilog=EXITS, context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]}
)
def revoke_approver(
    name_or_kid: Annotated[str, typer.Argument(help="The person's name, or the id of the key, as the list writes it.")],
) -> None:
    """Accept nothing that this key signed, from the next call on and for good: not even what it signed before."""
    from tool_server.approvers import Change, revoke

    done, known = asyncio.run(revoke(owner_dsn(), name_or_kid, operator()))
    state = "is revoked" if done is Change.REVOKED else "was revoked already"
    say(f"the key {known.kid} of {known.approver.name} ({known.approver.tenant_id}) {state}")
