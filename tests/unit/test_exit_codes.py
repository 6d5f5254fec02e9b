"""Every command has its exit codes in its help and in the runbook, and both are made from one table."""

from __future__ import annotations

import re

import pytest
import typer
from typer.main import get_command

from host.cli import app
from host.commands.exit_codes import CODES
from host.commands.exits import Exit
from host.runbook import FILE


def every_command() -> dict[str, str]:
    """Its help by what is typed, groups included."""
    whole = get_command(app)
    context = typer.Context(whole)
    found: dict[str, str] = {}
    for name in whole.list_commands(context):  # type: ignore[attr-defined]
        command = whole.get_command(context, name)  # type: ignore[attr-defined]
        below = getattr(command, "commands", None)
        found |= {name: command.help} if below is None else {f"{name} {n}": c.help for n, c in below.items()}
    return found


HELP = every_command()


def test_every_command_has_its_codes_and_no_other_has():
    assert set(CODES) == set(HELP)
    assert {"resume", "token issue", "approver revoke", "restore"} <= set(HELP)


@pytest.mark.parametrize("name", sorted(CODES))
def test_a_commands_help_ends_with_its_codes_and_the_runbook_has_the_same(name: str):
    meanings = CODES[name]
    assert {Exit.DONE, Exit.BAD_INPUT} <= set(meanings), "typer itself ends with 2"
    assert HELP[name].count("Exit codes") == 1
    told = re.findall(r"^ +(\d+)  (.+)$", HELP[name].partition("Exit codes\n")[2], re.MULTILINE)
    assert told == [(str(code.value), meaning) for code, meaning in sorted(meanings.items())]
    (row,) = re.findall(rf"^\| `kessai {name}` \| (.+) \|$", FILE.read_text("utf-8"), re.MULTILINE)
    assert row == "<br>".join(f"**{code.value}** {meanings[code]}" for code in sorted(meanings))
