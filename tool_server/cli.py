"""`kessai-tools`: the tool server's own command line.

Invariant: a user's mistake ends in one clear message and an exit code, never in a traceback.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from shared_contracts.operator import operator
from shared_contracts.printed import json_text, money, plain
from tool_server.errors import ToolServerError

NOT_READY = 15
_EXITS = "Exit codes: 0 done · 2 bad input · 15 not ready (settings, keys, port, database, schema)"

app = typer.Typer(
    help="Kessai's tool server: orders, return rules, returns and notices over MCP.",
    epilog=_EXITS, no_args_is_help=True, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
tools = typer.Typer(help="The tools that this server offers.", no_args_is_help=True)
app.add_typer(tools, name="tools")
approver = typer.Typer(help="The people whose signed yes this server accepts.", no_args_is_help=True)
app.add_typer(approver, name="approver")


def _names() -> list[str]:
    from shared_contracts.tools import TOOLS

    return list(TOOLS)


def _kids() -> list[str]:
    """Name the published keys, as far as the settings tell them."""
    from tool_server.revoke import published
    from tool_server.settings import OwnerSettings
    from tool_server.settings import load as settings_of

    try:
        found = published(settings_of(OwnerSettings).issuers_file)
    except ToolServerError:  # the command itself says what is wrong
        return []
    return [] if isinstance(found, str) else sorted(found)


Json = Annotated[bool, typer.Option("--json", help="Write JSON for programs instead of text for people.")]
ToolName = Annotated[str, typer.Argument(help="The tool's name, as `tools list` writes it.", autocompletion=_names)]


@app.command(epilog=_EXITS)
def serve() -> None:
    """Serve the tools over MCP until SIGTERM, which finishes the calls in hand.

    Settings come from KESSAI_TOOLS_* variables. `/readyz` tells whether calls can be served.
    """
    from tool_server.dispatch import Dispatcher
    from tool_server.serve import run_server
    from tool_server.settings import Settings
    from tool_server.settings import load as settings_of

    settings = settings_of(Settings)
    run_server(settings, Dispatcher(settings))


@app.command(epilog=_EXITS)
def migrate(
    roles_only: Annotated[
        bool, typer.Option("--roles-only", help="Make the roles and nothing else: before pg_restore of a dump.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring the database to this release's schema and its roles to their rights; may be run again at any time.

    Needs KESSAI_TOOLS_MIGRATE_DSN (the owner). KESSAI_TOOLS_ROLE_PASSWORDS names a directory with one file per role.
    """
    from tool_server.settings import OwnerSettings
    from tool_server.settings import load as settings_of
    from tool_server.store.migrate import make_roles
    from tool_server.store.migrate import migrate as bring_up

    owner = settings_of(OwnerSettings)
    if roles_only:
        asyncio.run(make_roles(owner.migrate_dsn.get_secret_value(), owner.role_passwords))
        _say("the tool server's roles are there; its schema is as it was")
        return
    done = asyncio.run(bring_up(owner.migrate_dsn.get_secret_value(), owner.role_passwords))
    if as_json:
        _write_json(asdict(done))
        return
    for name in done.applied:
        _say(f"applied {name}")
    for role in done.roles.created:
        _say(f"created role {role}")
    for role in done.roles.left:
        _say(f"left the password of {role} as it is: this owner may not set it")
    _say(f"schema {done.version}, {len(done.applied)} migrations applied")


@app.command(epilog=_EXITS)
def restored() -> None:
    """Take note that the database was restored from a backup: to be run once, before a tool server works on it.

    A notice that waited when the backup was made may have left since. It is unknown from here on, is never sent by
    itself, and a person finds out. `kessai restore` does this itself.
    """
    from tool_server.restored import doubt_waiting

    _say(f"{asyncio.run(doubt_waiting(_owner_dsn()))} notices waited, and may have left since the backup")


@app.command("load", epilog=_EXITS)
def load(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Seed files: what the tools read, such as orders and rules.")
    ],
    delivered_on: Annotated[
        datetime | None,
        typer.Option(
            "--delivered-on",
            formats=["%Y-%m-%d"],
            help="For a retail shop's file, which has no dates: the day on which all that was delivered came.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Load what the tools read: all of a file or nothing. The same file again changes nothing.

    With several files --json writes one document after the other.
    """
    from tool_server.loads import load_file

    day = None if delivered_on is None else delivered_on.date()
    for file in files:
        done = asyncio.run(load_file(_owner_dsn(), file, day))
        if as_json:
            _write_json(asdict(done))
        else:
            _say(str(done))


@app.command(epilog=_EXITS)
def disable(name: ToolName) -> None:
    """Remove a tool: the server refuses it from its next call on, without a restart."""
    _switch(name, enabled=False)


@app.command(epilog=_EXITS)
def enable(name: ToolName) -> None:
    """Give a removed tool back."""
    _switch(name, enabled=True)


@app.command(epilog=_EXITS)
def revoke(
    kid: Annotated[
        str | None,
        typer.Option(
            autocompletion=_kids,
            help="A signing key's id: every token that it signed. It must be published, or have called.",
        ),
    ] = None,
    jti: Annotated[
        str | None, typer.Option(help="One token's id, as the records have it. Taken as it is: nobody lists ids.")
    ] = None,
) -> None:
    """Refuse a signing key's tokens, or one token, from the next call on and for good.

    The published keys are those of KESSAI_TOOLS_ISSUERS_FILE.
    """
    from tool_server.revoke import revoke_key, revoke_token
    from tool_server.settings import OwnerSettings
    from tool_server.settings import load as settings_of

    if (kid is None) == (jti is None):
        raise typer.BadParameter("name one of --kid and --jti")
    owner = settings_of(OwnerSettings)
    dsn = owner.migrate_dsn.get_secret_value()
    if kid is not None:
        _say(asyncio.run(revoke_key(dsn, kid, owner.issuers_file, operator())))
    if jti is not None:
        _say(asyncio.run(revoke_token(dsn, jti, operator())))


@app.command(epilog=_EXITS.replace("2 bad", "1 not whole, nothing was cut · 2 bad"))
def cut(
    unverified: Annotated[
        bool,
        typer.Option(
            "--unverified", help="Do not look first: what told of a row that is gone is gone then. Export before."
        ),
    ] = False,
) -> None:
    """Take out of the log what is older than KESSAI_TOOLS_RECORD_DAYS days, up to a signed head, which stays.

    It takes out nothing where a line is not what was sealed, or not in its place. Whose keys have signed the heads,
    and what the host has seen, `kessai audit verify` alone can tell. Export first what has to be kept elsewhere.
    """
    from datetime import UTC, timedelta

    from tool_server.settings import OwnerSettings
    from tool_server.settings import load as settings_of
    from tool_server.store import seals

    owner = settings_of(OwnerSettings)
    if owner.record_days is None:
        raise typer.BadParameter("KESSAI_TOOLS_RECORD_DAYS is missing: how many days of the log are kept, such as 730")
    before = datetime.now(UTC) - timedelta(days=owner.record_days)
    dsn = owner.migrate_dsn.get_secret_value()
    last = asyncio.run(seals.cut(dsn, before, operator(), verify_first=not unverified))
    _say(f"the log begins behind line {last}" if last else f"nothing is older than {owner.record_days} days")


@tools.command("list", epilog=_EXITS)
def list_tools(as_json: Json = False) -> None:
    """List the tools, and which of them an operator has removed."""
    rows = _tool_rows()
    if as_json:
        _write_json(rows)
        return
    shown = []
    for row in rows:
        state = "enabled" if row["enabled"] else f"removed by {row['switched_by']} at {row['switched_at']}"
        shown.append((row["name"], row["version"], row["scope"], row["risk"], state))
    _write_table(("tool", "version", "scope", "risk", "state"), shown)


@approver.command("trust", epilog=_EXITS)
def trust_approver(
    file: Annotated[Path, typer.Argument(help="An approver's public half, as `kessai approver add` writes it.")],
) -> None:
    """Accept a person's approvals from the next call on; the same file again changes nothing.

    Other terms for a known key replace the old ones, which stay in the record. A person has one key at
    a time, and a revoked key never comes back. Needs KESSAI_TOOLS_MIGRATE_DSN (the owner).
    """
    from tool_server.approvers import Change, read_approver, trust

    trusted = read_approver(file)
    done = asyncio.run(trust(_owner_dsn(), trusted, operator()))
    person = trusted.approver
    said = {Change.TRUSTED: "is trusted", Change.CHANGED: "is trusted on other terms than before"}
    _say(
        f"{person.name} of {person.tenant_id} {said.get(done, 'was trusted on these terms already')}: "
        f"key {trusted.key.kid}, up to {money(person.limit)}"
    )


@approver.command("list", epilog=_EXITS)
def list_approvers(as_json: Json = False) -> None:
    """List whose approvals are accepted, up to which amount, and whose key was revoked."""
    from shared_contracts.base import Money, parse
    from tool_server.approvers import listed, told

    rows = [told(known) for known in asyncio.run(listed(_owner_dsn()))]
    if as_json:
        _write_json(rows)
        return
    shown = []
    for row in rows:
        by = "trusted" if row["revoked_at"] is None else "revoked"
        after = f" after {row['substitutes_after_seconds']} s" if row["substitutes"] else ""
        shown.append((
            row["name"], row["tenant_id"], money(parse(Money, row["limit"])),
            ", ".join(row["substitutes"]) + after, row["kid"], f"{by} by {row[f'{by}_by']} at {row[f'{by}_at']}",
        ))  # fmt: skip
    _write_table(("name", "tenant", "up to", "substitutes", "key", "state"), shown)


# a key's id may begin with a dash
@approver.command(
    "revoke", epilog=_EXITS, context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]}
)
def revoke_approver(
    name_or_kid: Annotated[str, typer.Argument(help="The person's name, or the id of the key, as the list writes it.")],
) -> None:
    """Accept nothing that this key signed, from the next call on and for good: not even what it signed before."""
    from tool_server.approvers import Change, revoke

    done, known = asyncio.run(revoke(_owner_dsn(), name_or_kid, operator()))
    state = "is revoked" if done is Change.REVOKED else "was revoked already"
    _say(f"the key {known.kid} of {known.approver.name} ({known.approver.tenant_id}) {state}")


def main() -> None:
    """Run the command line; what a user can mend is told on stderr."""
    atexit.register(gc.freeze)  # to take apart what ends anyway takes longer than many a command
    try:
        app()
    except ToolServerError as error:
        _end(error.exit_code, str(error))
    except Exception as error:
        message = _fault_of_database(error)
        if message is None:
            raise
        _end(NOT_READY, message)


def _fault_of_database(error: Exception) -> str | None:
    """Give the sentence for what a database or its address does; None for anything else, which is a bug."""
    import psycopg

    from shared_contracts.told import unconnected

    match error:
        case psycopg.errors.InsufficientPrivilege():
            return f"{error.diag.message_primary}; KESSAI_TOOLS_MIGRATE_DSN must name the owner of the database"
        case psycopg.errors.UndefinedTable() | psycopg.errors.InvalidSchemaName():
            return "the database has no schema of ours yet; run `kessai-tools migrate`"
        case psycopg.OperationalError(sqlstate=None):
            asks = error.pgconn is not None and error.pgconn.needs_password
            return "\n".join(unconnected(str(error), wants_password=asks, setting="KESSAI_TOOLS_MIGRATE_DSN"))
        case psycopg.OperationalError():
            return f"the database gave up: {error.diag.message_primary}; nothing was changed, try again"
        case psycopg.ProgrammingError(sqlstate=None):  # its text quotes the string, which may hold a password
            return "KESSAI_TOOLS_MIGRATE_DSN is no connection string of PostgreSQL; write host=… dbname=… user=…"
        case _:
            return None


def _owner_dsn() -> str:
    from tool_server.settings import OwnerSettings
    from tool_server.settings import load as settings_of

    return settings_of(OwnerSettings).migrate_dsn.get_secret_value()


def _switch(name: str, *, enabled: bool) -> None:
    from tool_server.store.switches import switch_tool

    if name not in _names():
        raise typer.BadParameter(f"there is no tool {name!r}; `kessai-tools tools list` names them")
    asyncio.run(switch_tool(_owner_dsn(), name, operator(), enabled=enabled))
    _say(f"{name} is {'enabled' if enabled else 'removed'}")


def _tool_rows() -> list[dict[str, Any]]:
    from shared_contracts.tools import TOOLS
    from tool_server.store.switches import switched

    newest = asyncio.run(switched(_owner_dsn()))
    return [
        {
            "name": tool.name, "version": tool.version, "scope": tool.scope.value, "risk": tool.risk.value,
            "owner": tool.owner, "enabled": tool.name not in newest or newest[tool.name].enabled,
            "switched_by": newest[tool.name].actor if tool.name in newest else None,
            "switched_at": newest[tool.name].at.isoformat(timespec="seconds") if tool.name in newest else None,
        }
        for tool in TOOLS.values()
    ]  # fmt: skip


def _write_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table in which nothing is cut short, since its names are typed again; a piped line is not broken."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in head:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(plain, row))
    Console(width=None if sys.stdout.isatty() else 200, markup=False, emoji=False, highlight=False).print(table)


def _write_json(value: Any) -> None:
    typer.echo(json_text(value))


def _say(message: str, *, err: bool = False) -> None:
    typer.echo("\n".join(map(plain, message.split("\n"))), err=err)


def _end(code: int, message: str) -> NoReturn:
    _say(message, err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
