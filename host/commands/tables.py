"""`tools` and `states`: registration forms and the state sheet, generated from the one source of each."""

from __future__ import annotations

import sys

from rich.text import Text

from host.commands.exits import CommandError, Exit
from host.commands.output import add, console, table, write_json
from host.statesheet import allowed_states, sheet
from host.views import Catalogue, ChecklistItem, StateSheets, ToolRow
from host.workflows.catalogue import CURRENT
from shared_contracts.base import dump
from shared_contracts.contract import Tool, offerable
from shared_contracts.form import form
from shared_contracts.form_checks import checklist, lint
from shared_contracts.form_yaml import dump_forms
from shared_contracts.tools import TOOLS


def tools(name: str | None, *, as_yaml: bool, as_json: bool) -> None:
    """Write all tools, or one."""
    if name is not None and name not in TOOLS:
        raise CommandError(Exit.BAD_INPUT, f"there is no tool {name!r}", f"The tools are: {', '.join(TOOLS)}.")
    if as_yaml and as_json:
        raise CommandError(Exit.BAD_INPUT, "--yaml and --json exclude each other")
    rows = tuple(_row(tool) for tool in TOOLS.values() if name in {None, tool.name})
    if as_yaml:
        sys.stdout.write(dump_forms([row.form for row in rows]))
    elif as_json:
        write_json(dump(Catalogue(tools=rows)))
    elif name is None:
        _overview(rows)
    else:
        _one(rows[0])


def _row(tool: Tool) -> ToolRow:
    filled = form(tool, allowed_states(tool.name, CURRENT.values()))
    checks = checklist(tool, TOOLS) if tool.writes else ()
    return ToolRow(
        name=tool.name,
        scope=tool.scope,
        risk=tool.risk,
        offered=offerable(tool),
        form=filled,
        missing=lint(filled),
        checklist=tuple(ChecklistItem(item=check.item, passed=check.passed) for check in checks),
    )


def _overview(rows: tuple[ToolRow, ...]) -> None:
    made = table("tool", "version", "risk", "scope", "states", "owner", "form", "checklist")
    for row in rows:
        filled = "complete" if not row.missing else f"lacks {', '.join(row.missing)}"
        passed = f"{sum(item.passed for item in row.checklist)} of {len(row.checklist)}" if row.checklist else ""
        states = ", ".join(row.form.allowed_states)
        add(made, row.name, row.form.version, row.risk.value, row.scope.value, states, row.form.owner, filled, passed)
    console().print(made)


def _one(row: ToolRow) -> None:
    sys.stdout.write(dump_forms([row.form]))
    to = console()
    for item in row.checklist:
        to.print(
            Text("pass  " if item.passed else "FAIL  ", style="green" if item.passed else "red"), item.item, sep=""
        )


def states(*, as_json: bool) -> None:
    """Write the sheet of every kind."""
    sheets = tuple(sheet(workflow) for workflow in CURRENT.values())
    if as_json:
        write_json(dump(StateSheets(kinds=sheets)))
        return
    to = console()
    for one in sheets:
        made = table(
            "group", "state", "entered by", "allowed tools", "ends", "owner", title=f"{one.kind} ({one.release})"
        )
        for row in one.states:
            ends = "yes" if row.terminal else ""
            add(
                made,
                row.group,
                row.state,
                "; ".join(row.entry),
                ", ".join(row.allowed_tools) or "none",
                ends,
                row.owner,
            )
        to.print(made)
