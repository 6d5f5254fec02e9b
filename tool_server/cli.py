"""`kessai-tools`: the tool server's own command line.

Invariant: a user's mistake ends in one clear message and an exit code, never in a traceback.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import psycopg
import typer
from rich.console import Console
from rich.table import Table

from shared_contracts.tools import TOOLS
from tool_server.dispatch import Dispatcher
from tool_server.errors import ToolServerError
from tool_server.load import SeedError, load, read_seed
from tool_server.serve import run_server
from tool_server.settings import OwnerSettings, Settings
from tool_server.settings import load as settings_of
from tool_server.store import switches
from tool_server.store.migrate import migrate as bring_up

BAD_INPUT, NOT_READY = 2, 15
_EXITS = "Exit codes: 0 done · 2 bad input · 15 not ready (settings, keys, port, database, schema)"

app = typer.Typer(
    help="Kessai's tool server: orders, return rules, returns and notices over MCP.",
    epilog=_EXITS, no_args_is_help=True, pretty_exceptions_enable=False,
)  # fmt: skip
tools = typer.Typer(help="The tools that this server offers.", no_args_is_help=True)
app.add_typer(tools, name="tools")

Json = Annotated[bool, typer.Option("--json", help="Write JSON for programs instead of text for people.")]
ToolName = Annotated[
    str, typer.Argument(help="The tool's name, as `tools list` writes it.", autocompletion=lambda: list(TOOLS))
]


@app.command(epilog=_EXITS)
def serve() -> None:
    """Serve the tools over MCP until SIGTERM, which finishes the calls in hand.

    Settings come from KESSAI_TOOLS_* variables. `/readyz` tells whether calls can be served.
    """
    settings = settings_of(Settings)
    run_server(settings, Dispatcher(settings))


@app.command(epilog=_EXITS)
def migrate(as_json: Json = False) -> None:
    """Bring the database to this release's schema and its roles to their rights; may be run again at any time.

    Needs KESSAI_TOOLS_MIGRATE_DSN (the owner). KESSAI_TOOLS_ROLE_PASSWORDS names a directory with one file per role.
    """
    owner = settings_of(OwnerSettings)
    done = asyncio.run(bring_up(owner.migrate_dsn.get_secret_value(), owner.role_passwords))
    if as_json:
        _write_json(asdict(done))
        return
    for name in done.applied:
        typer.echo(f"applied {name}")
    for role in done.roles.created:
        typer.echo(f"created role {role}")
    for role in done.roles.left:
        typer.echo(f"left the password of {role} as it is: this owner may not set it")
    typer.echo(f"schema {done.version}, {len(done.applied)} migrations applied")


@app.command("load", epilog=_EXITS)
def load_file(
    file: Annotated[Path, typer.Argument(help="A seed file: orders, rules and recipients of one snapshot.")],
    as_json: Json = False,
) -> None:
    """Load orders, rules and recipients: all of the file or nothing. The same file again changes nothing."""
    owner = settings_of(OwnerSettings)
    done = asyncio.run(load(owner.migrate_dsn.get_secret_value(), read_seed(file)))
    if as_json:
        _write_json(asdict(done))
        return
    typer.echo(
        f"orders: {done.orders_new} new, {done.orders_updated} updated, {done.orders_unchanged} unchanged; "
        f"policy versions: {done.policies} new; returns: {done.returns} new; recipients: {done.recipients} changed"
    )


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
    kid: Annotated[str | None, typer.Option(help="A signing key's id: every token that it signed.")] = None,
    jti: Annotated[str | None, typer.Option(help="One token's id.")] = None,
) -> None:
    """Refuse a signing key's tokens, or one token, from the next call on and for good."""
    match kid, jti:
        case str(value), None:
            _revoke("kid", value)
        case None, str(value):
            _revoke("jti", value)
        case _:
            raise typer.BadParameter("name one of --kid and --jti")


@tools.command("list", epilog=_EXITS)
def list_tools(as_json: Json = False) -> None:
    """List the tools, and which of them an operator has removed."""
    switched = asyncio.run(switches.switched(settings_of(OwnerSettings).migrate_dsn.get_secret_value()))
    rows = [_tool_row(name, switched.get(name)) for name in TOOLS]
    if as_json:
        _write_json(rows)
        return
    table = Table("tool", "version", "scope", "risk", "state")
    for row in rows:
        state = "enabled" if row["enabled"] else f"removed by {row['switched_by']} at {row['switched_at']}"
        table.add_row(row["name"], row["version"], row["scope"], row["risk"], state)
    Console().print(table)


def main() -> None:
    """Run the command line; what a user can mend is told on stderr."""
    try:
        app()
    except SeedError as error:
        _end(BAD_INPUT, str(error))
    except ToolServerError as error:
        _end(NOT_READY, str(error))
    except psycopg.errors.InsufficientPrivilege as error:
        _end(NOT_READY, f"{error.diag.message_primary}; KESSAI_TOOLS_MIGRATE_DSN must name the owner of the database")
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        _end(NOT_READY, "the database has no schema of ours yet; run `kessai-tools migrate`")
    except psycopg.OperationalError as error:
        _end(NOT_READY, f"the database does not answer: {str(error).strip()}")
    except psycopg.ProgrammingError:  # its text quotes the string, which may hold a password
        _end(NOT_READY, "KESSAI_TOOLS_MIGRATE_DSN is no connection string of PostgreSQL")


def _revoke(kind: Literal["kid", "jti"], value: str) -> None:
    dsn = settings_of(OwnerSettings).migrate_dsn.get_secret_value()
    asyncio.run(switches.revoke(dsn, kind, value, getpass.getuser()))
    typer.echo(f"revoked {kind} {value}")


def _switch(name: str, *, enabled: bool) -> None:
    if name not in TOOLS:
        raise typer.BadParameter(f"there is no tool {name!r}; `kessai-tools tools list` names them")
    dsn = settings_of(OwnerSettings).migrate_dsn.get_secret_value()
    asyncio.run(switches.switch_tool(dsn, name, getpass.getuser(), enabled=enabled))
    typer.echo(f"{name} is {'enabled' if enabled else 'removed'}")


def _tool_row(name: str, switch: switches.Switched | None) -> dict[str, Any]:
    tool = TOOLS[name]
    return {
        "name": name, "version": tool.version, "scope": tool.scope.value, "risk": tool.risk.value, "owner": tool.owner,
        "enabled": switch is None or switch.enabled, "switched_by": None if switch is None else switch.actor,
        "switched_at": None if switch is None else switch.at.isoformat(timespec="seconds"),
    }  # fmt: skip


def _write_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _end(code: int, message: str) -> NoReturn:
    typer.echo(message, err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
