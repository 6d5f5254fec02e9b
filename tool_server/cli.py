"""`kessai-tools`: the tool server's own command line.

Invariant: a user's mistake ends in one clear message and an exit code, never in a traceback.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from shared_contracts.operator import operator
from tool_server.cli_approver import approver
from tool_server.errors import ToolServerError
from tool_server.terminal import EXITS, Json, owner_dsn, owner_settings, say, write_json, write_table

NOT_READY = 15
app = typer.Typer(
    help="Kessai's tool server: orders, return rules, returns and notices over MCP.",
    epilog=EXITS, no_args_is_help=True, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
tools = typer.Typer(help="The tools that this server offers.", no_args_is_help=True)
app.add_typer(tools, name="tools")
app.add_typer(approver, name="approver")


def _names() -> list[str]:
    from shared_contracts.tools import TOOLS

    return list(TOOLS)


def _kids() -> list[str]:
    """Name the published keys, as far as the settings tell them."""
    from tool_server.revoke import published

    try:
        found = published(owner_settings().issuers_file)
    except ToolServerError:  # the command itself says what is wrong
        return []
    return [] if isinstance(found, str) else sorted(found)


ToolName = Annotated[str, typer.Argument(help="The tool's name, as `tools list` writes it.", autocompletion=_names)]


@app.command(epilog=EXITS)
def serve(
    check: Annotated[
        bool, typer.Option("--check", help="Look at the settings and end: nothing is served or written.")
    ] = False,
) -> None:
    """Serve the tools over MCP until SIGTERM, which finishes the calls in hand.

    Settings come from KESSAI_TOOLS_* variables. `/readyz` tells whether calls can be served.
    """
    from tool_server.dispatch import Dispatcher
    from tool_server.serve import run_server
    from tool_server.settings import Settings
    from tool_server.settings import load as settings_of

    settings = settings_of(Settings)
    dispatcher = Dispatcher(settings)  # refuses what its mail cannot be sent with
    if not check:
        run_server(settings, dispatcher)


@app.command(epilog=EXITS)
def migrate(
    roles_only: Annotated[
        bool, typer.Option("--roles-only", help="Make the roles and nothing else: before pg_restore of a dump.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring the database to this release's schema and its roles to their rights; may be run again at any time.

    Needs KESSAI_TOOLS_MIGRATE_DSN (the owner). KESSAI_TOOLS_ROLE_PASSWORDS names a directory with one file per role.
    """
    from tool_server.store.migrate import make_roles
    from tool_server.store.migrate import migrate as bring_up

    owner = owner_settings()
    if roles_only:
        asyncio.run(make_roles(owner.migrate_dsn.get_secret_value(), owner.role_passwords))
        say("the tool server's roles are there; its schema is as it was")
        return
    done = asyncio.run(bring_up(owner.migrate_dsn.get_secret_value(), owner.role_passwords))
    if as_json:
        write_json(asdict(done))
        return
    for name in done.applied:
        say(f"applied {name}")
    for role in done.roles.created:
        say(f"created role {role}")
    for role in done.roles.left:
        say(f"left the password of {role} as it is: this owner may not set it")
    say(f"schema {done.version}, {len(done.applied)} migrations applied")


@app.command(epilog=EXITS)
def restored() -> None:
    """Take note that the database was restored from a backup: to be run once, before a tool server works on it.

    A notice that waited when the backup was made may have left since. It is unknown from here on, is never sent by
    itself, and a person finds out. `kessai restore` does this itself.
    """
    from tool_server.restored import doubt_waiting

    say(f"{asyncio.run(doubt_waiting(owner_dsn()))} notices waited, and may have left since the backup")


@app.command("load", epilog=EXITS)
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
        done = asyncio.run(load_file(owner_dsn(), file, day))
        if as_json:
            write_json(asdict(done))
        else:
            say(str(done))


@app.command(epilog=EXITS)
def disable(name: ToolName) -> None:
    """Remove a tool: the server refuses it from its next call on, without a restart."""
    _switch(name, enabled=False)


@app.command(epilog=EXITS)
def enable(name: ToolName) -> None:
    """Give a removed tool back."""
    _switch(name, enabled=True)


@app.command(epilog=EXITS)
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

    if (kid is None) == (jti is None):
        raise typer.BadParameter("name one of --kid and --jti")
    owner = owner_settings()
    dsn = owner.migrate_dsn.get_secret_value()
    if kid is not None:
        say(asyncio.run(revoke_key(dsn, kid, owner.issuers_file, operator())))
    if jti is not None:
        say(asyncio.run(revoke_token(dsn, jti, operator())))


@app.command(epilog=EXITS.replace("2 bad", "1 not whole, nothing was cut · 2 bad"))
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

    from tool_server.store import seals

    owner = owner_settings()
    if owner.record_days is None:
        raise typer.BadParameter("KESSAI_TOOLS_RECORD_DAYS is missing: how many days of the log are kept, such as 730")
    before = datetime.now(UTC) - timedelta(days=owner.record_days)
    dsn = owner.migrate_dsn.get_secret_value()
    last = asyncio.run(seals.cut(dsn, before, operator(), verify_first=not unverified))
    say(f"the log begins behind line {last}" if last else f"nothing is older than {owner.record_days} days")


@tools.command("list", epilog=EXITS)
def list_tools(as_json: Json = False) -> None:
    """List the tools, and which of them an operator has removed."""
    rows = _tool_rows()
    if as_json:
        write_json(rows)
        return
    shown = []
    for row in rows:
        state = "enabled" if row["enabled"] else f"removed by {row['switched_by']} at {row['switched_at']}"
        shown.append((row["name"], row["version"], row["scope"], row["risk"], state))
    write_table(("tool", "version", "scope", "risk", "state"), shown)


def main() -> None:
    """Run the command line; what a user can mend is told on stderr."""
    atexit.register(gc.freeze)  # to take apart what ends anyway takes longer than many a command
    try:
        app()
    except ToolServerError as error:
        say(str(error), err=True)
        sys.exit(error.exit_code)
    except Exception as error:
        message = _fault_of_database(error)
        if message is None:
            raise
        say(message, err=True)
        sys.exit(NOT_READY)


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


def _switch(name: str, *, enabled: bool) -> None:
    from tool_server.store.switches import switch_tool

    if name not in _names():
        raise typer.BadParameter(f"there is no tool {name!r}; `kessai-tools tools list` names them")
    asyncio.run(switch_tool(owner_dsn(), name, operator(), enabled=enabled))
    say(f"{name} is {'enabled' if enabled else 'removed'}")


def _tool_rows() -> list[dict[str, Any]]:
    from shared_contracts.tools import TOOLS
    from tool_server.store.switches import switched

    newest = asyncio.run(switched(owner_dsn()))
    return [
        {
            "name": tool.name, "version": tool.version, "scope": tool.scope.value, "risk": tool.risk.value,
            "owner": tool.owner, "enabled": tool.name not in newest or newest[tool.name].enabled,
            "switched_by": newest[tool.name].actor if tool.name in newest else None,
            "switched_at": newest[tool.name].at.isoformat(timespec="seconds") if tool.name in newest else None,
        }
        for tool in TOOLS.values()
    ]  # fmt: skip


if __name__ == "__main__":
    main()
