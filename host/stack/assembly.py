"""Each program of the stack with the settings that are its own: the one place that says who gets what.

The tool server gets no connection, key or password of the host; the worker none of the tool server's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from host.stack.build import Build
from host.stack.home import Home
from host.stack.keys import KeyFiles, issuer_of
from host.stack.links import Links, Sealing
from host.stack.ports import LOOPBACK
from host.stack.postgres import PostgresChoice, Server
from host.stack.processes import Program, python_module
from host.stack.roles import AUDITOR, OWNER, SEALER, Side, dsn
from shared_contracts.contract import FAMILIES

HOST, TOOLS = "host.cli", "tool_server.cli"
TOOL_SERVER, WORKER = "tool_server", "worker"
TOOL_SERVER_DRAIN_SECONDS = 25.0  # above the longest that it gives the calls in hand
WORKER_DRAIN_SECONDS = 30.0  # the call in hand, its read-back and its commit


@dataclass(frozen=True, slots=True)
class StackChoice:
    """What a person decides. `tool_server_port` None: a free one, remembered.

    The two mappings are further settings by their variables' names, such as those for SMTP or leases.
    """

    postgres: PostgresChoice
    tool_server_port: int | None
    tool_server_settings: Mapping[str, str]
    worker_settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StackParts:
    """What the programs' settings are made from."""

    home: Home
    server: Server
    keys: KeyFiles
    build: Build
    choice: StackChoice


def resource_at(port: int) -> str:
    """The tool server's canonical address, which is every token's audience."""
    return f"http://{LOOPBACK}:{port}/mcp"


def host_dsn(parts: StackParts) -> str:
    """The engine's own connection."""
    return dsn(parts.home, parts.server, Side.HOST, "host_rt")


def host_owner_dsn(parts: StackParts) -> str:
    """The owner's connection of the host's side, for an operator's acts."""
    return owner_dsn(parts, Side.HOST)


def owner_dsn(parts: StackParts, side: Side) -> str:
    """The same of either side."""
    return dsn(parts.home, parts.server, side, OWNER[side])


def auditor_dsn(parts: StackParts, side: Side) -> str:
    """The connection of the role that compares; no program of the stack gets it."""
    return dsn(parts.home, parts.server, side, AUDITOR[side])


def links_of(parts: StackParts, port: int) -> Links:
    """What the engine needs to work against the tool server on that port."""
    url = resource_at(port)
    return Links(host_dsn(parts), url, url, issuer_of(parts.home), parts.keys.signing, sealing_of(parts))


def sealing_of(parts: StackParts) -> Sealing:
    """What seals the host's record."""
    sealer = dsn(parts.home, parts.server, Side.HOST, SEALER[Side.HOST])
    return Sealing(sealer, parts.keys.seal_host, parts.keys.seal_keys)


def tool_server(parts: StackParts, port: int) -> Program:
    """One role per tool family, the issuers' public keys, and the Maildir."""
    own = {
        **{f"KESSAI_TOOLS_{name.upper()}_DSN": _tools_dsn(parts, f"tools_{name}") for name in FAMILIES},
        "KESSAI_TOOLS_SEALER_DSN": _tools_dsn(parts, SEALER[Side.TOOLS]),
        "KESSAI_TOOLS_SEAL_KEY_FILE": str(parts.keys.seal_tools),
        "KESSAI_TOOLS_SEAL_KEYS_FILE": str(parts.keys.seal_keys),
        "KESSAI_TOOLS_RESOURCE": resource_at(port),
        "KESSAI_TOOLS_ISSUERS_FILE": str(parts.keys.issuers),
        "KESSAI_TOOLS_HOST": LOOPBACK,
        "KESSAI_TOOLS_PORT": str(port),
    }
    mail = {} if "KESSAI_TOOLS_SMTP_HOST" in parts.choice.tool_server_settings else _maildir(parts)
    settings = mail | dict(parts.choice.tool_server_settings) | own
    command, code = python_module(TOOLS, "serve"), parts.build.code
    return Program(TOOL_SERVER, command, settings, code, port, pulse=None, drain_seconds=TOOL_SERVER_DRAIN_SECONDS)


def check_tool_server(parts: StackParts, port: int) -> Program:
    """A look at the settings that it would have, which is all that it does."""
    return _command(
        parts, "check_tool_server", python_module(TOOLS, "serve", "--check"), tool_server(parts, port).settings
    )


def worker(parts: StackParts, port: int) -> Program:
    """Drives workflows against the tool server on that port, and touches a file while it does."""
    pulse = parts.home.run / "worker.pulse"
    links = links_of(parts, port)
    own = {
        "KESSAI_DSN": links.dsn,
        "KESSAI_SERVER_URL": links.server_url,
        "KESSAI_ISSUER": links.issuer,
        "KESSAI_SIGNING_KEY_FILE": str(links.signing_key_file),
        "KESSAI_SEALER_DSN": sealing_of(parts).dsn,
        "KESSAI_SEAL_KEY_FILE": str(parts.keys.seal_host),
        "KESSAI_SEAL_KEYS_FILE": str(parts.keys.seal_keys),
        "KESSAI_PULSE_FILE": str(pulse),
    }
    settings = dict(parts.choice.worker_settings) | own
    command, code = python_module(HOST, "worker"), parts.build.code
    return Program(WORKER, command, settings, code, port=None, pulse=pulse, drain_seconds=WORKER_DRAIN_SECONDS)


def migrate_host(parts: StackParts) -> Program:
    """As the owner, with the passwords of the roles that it makes."""
    settings = {
        "KESSAI_MIGRATE_DSN": host_owner_dsn(parts),
        "KESSAI_ROLE_PASSWORDS": str(parts.home.passwords / Side.HOST),
    }
    return _command(parts, "migrate_host", python_module(HOST, "migrate", "--without-rollout"), settings)


def migrate_tools(parts: StackParts) -> Program:
    """The same for the other side."""
    return _command(parts, "migrate_tools", python_module(TOOLS, "migrate"), _tools_owner(parts))


def load_demo(parts: StackParts) -> Program:
    """The packaged data: the shop's orders and rules, and what the other families have."""
    files = map(str, parts.build.demo_files)
    return _command(parts, "load_demo", python_module(TOOLS, "load", *files), _tools_owner(parts))


def load_file(parts: StackParts, file: Path, delivered_on: date | None = None) -> Program:
    """One more file of such data; the day is for one that has no dates."""
    more = () if delivered_on is None else ("--delivered-on", delivered_on.isoformat())
    return _command(parts, "load_file", python_module(TOOLS, "load", str(file), *more), _tools_owner(parts))


def dump(parts: StackParts, side: Side, program: Path, file: Path) -> Program:
    """pg_dump as the owner, into a file. Its connection string names the file of the password.

    Any role may make a large object, which the owner may not read; none is ours.
    """
    command = (str(program), "--format=custom", "--no-blobs", "--no-password", f"--file={file}")
    return _command(parts, f"dump_{side}", (*command, f"--dbname={owner_dsn(parts, side)}"), {})


def contents(parts: StackParts, side: Side, program: Path, file: Path, to: Path) -> Program:
    """pg_restore's own list of what a dump holds, into a file."""
    return _command(parts, f"list_{side}", (str(program), "--list", f"--file={to}", str(file)), {})


def fill(parts: StackParts, side: Side, program: Path, file: Path, listed: Path) -> Program:
    """pg_restore as the owner, whole or not at all: what a dump holds can do no more than the owner can."""
    command = (str(program), "--exit-on-error", "--single-transaction", "--no-owner", "--no-password")
    target = (f"--use-list={listed}", f"--dbname={owner_dsn(parts, side)}", str(file))
    return _command(parts, f"fill_{side}", (*command, *target), {})


def describe(parts: StackParts, side: Side, program: Path, file: Path) -> Program:
    """pg_dump as the owner, of everything but rows."""
    command = (str(program), "--schema-only", "--no-password", f"--file={file}")
    return _command(parts, f"describe_{side}", (*command, f"--dbname={owner_dsn(parts, side)}"), {})


def note_restored(parts: StackParts) -> Program:
    """What waited to be sent may have left since the backup: the tool server's own affair."""
    return _command(parts, "note_restored", python_module(TOOLS, "restored"), _tools_owner(parts))


def cut_log(parts: StackParts, days: int, *, verify_first: bool) -> Program:
    """The tool server's own operator's act on its log."""
    settings = _tools_owner(parts) | {"KESSAI_TOOLS_RECORD_DAYS": str(days)}
    looked = () if verify_first else ("--unverified",)
    return _command(parts, "cut_log", python_module(TOOLS, "cut", *looked), settings)


def trust_approver(parts: StackParts, file: Path) -> Program:
    """An operator's act at the tool server, in a process of its own that gets nothing of the host's."""
    command = python_module(TOOLS, "approver", "trust", str(file))
    return _command(parts, "trust_approver", command, _tools_owner(parts))


def disable_tool(parts: StackParts, name: str) -> Program:
    """Remove a tool: the tool server offers it no more, and refuses it."""
    return _command(parts, f"disable_{name}", python_module(TOOLS, "disable", name), _tools_owner(parts))


def revoke_key(parts: StackParts, kid: str) -> Program:
    """Refuse a signing key for good, whoever publishes it again; a key's id may begin with a dash."""
    settings = _tools_owner(parts) | {"KESSAI_TOOLS_ISSUERS_FILE": str(parts.keys.issuers)}
    return _command(parts, "revoke_key", python_module(TOOLS, "revoke", f"--kid={kid}"), settings)


def revoke_approver(parts: StackParts, kid: str) -> Program:
    """The opposite; a key's id may begin with a dash."""
    command = python_module(TOOLS, "approver", "revoke", "--", kid)
    return _command(parts, "revoke_approver", command, _tools_owner(parts))


def _tools_owner(parts: StackParts) -> dict[str, str]:
    return {
        "KESSAI_TOOLS_MIGRATE_DSN": _tools_dsn(parts, OWNER[Side.TOOLS]),
        "KESSAI_TOOLS_ROLE_PASSWORDS": str(parts.home.passwords / Side.TOOLS),
    }


def _tools_dsn(parts: StackParts, role: str) -> str:
    return dsn(parts.home, parts.server, Side.TOOLS, role)


def _maildir(parts: StackParts) -> dict[str, str]:
    return {"KESSAI_TOOLS_MAILDIR": str(parts.home.mail)}


def maildir_of(parts: StackParts) -> Path | None:
    """Tell where the tool server's mail lies; None where it leaves by SMTP."""
    chosen = parts.choice.tool_server_settings
    if "KESSAI_TOOLS_SMTP_HOST" in chosen:
        return None
    return Path((_maildir(parts) | dict(chosen))["KESSAI_TOOLS_MAILDIR"])


def _command(parts: StackParts, name: str, command: tuple[str, ...], settings: Mapping[str, str]) -> Program:
    """One that does one thing and ends."""
    return Program(name, command, settings, parts.build.code, port=None, pulse=None, drain_seconds=0.0)
