"""Which databases and roles there are, and where each role's password lies.

Each side's directory holds the passwords of its own roles alone; owners' passwords are in neither.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from host.stack.files import read_secret, write_secret
from host.stack.home import Home
from host.stack.initialise import password_in
from host.stack.postgres import Server
from shared_contracts.contract import FAMILIES


class Side(StrEnum):
    """A database and the program that it belongs to."""

    HOST = "host"
    TOOLS = "tools"


OWNER = {Side.HOST: "host_owner", Side.TOOLS: "tools_owner"}
AUDITOR = {Side.HOST: "host_auditor", Side.TOOLS: "tools_auditor"}
SEALER = {Side.HOST: "host_sealer", Side.TOOLS: "tools_sealer"}
LIMITED = {  # made by each side's migrations
    Side.HOST: ("host_rt", SEALER[Side.HOST], AUDITOR[Side.HOST]),
    Side.TOOLS: (*(f"tools_{family}" for family in FAMILIES), SEALER[Side.TOOLS], AUDITOR[Side.TOOLS]),
}


def write_passwords(home: Home) -> None:
    """Make what is missing, for every role; what is there stays, and is refused if others can read it."""
    for side in Side:
        write_passfile(home.passfiles / OWNER[side], OWNER[side], password_in(home.passwords / "owner" / OWNER[side]))
        for role in LIMITED[side]:
            write_passfile(home.passfiles / role, role, password_in(home.passwords / side / role))


def dsn(home: Home, server: Server, side: Side, role: str) -> str:
    """A connection string without a password: it names the file that holds it."""
    return server.conninfo(side, role, passfile=str(home.passfiles / role))


def write_passfile(file: Path, role: str, password: str) -> None:
    """As libpq reads it; written again only where it says something else."""
    escaped = password.strip().replace("\\", r"\\").replace(":", r"\:")  # an operator's own may hold anything
    line = f"*:*:*:{role}:{escaped}\n"
    if not file.exists() or read_secret(file) != line:
        write_secret(file, line)
