"""`kessai reconcile`: compare as the auditors, say what differs by its id, and keep it as a file where one is wanted.

Invariant: it ends with 0 only where rows were compared and nothing differs, and never writes over a report.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from rich.text import Text

from host.commands.auditors import auditing
from host.commands.exits import CommandError, Exit
from host.commands.output import add, console, plain, say, table, write_json
from host.evaluation.audit import reconciled
from host.evaluation.documents import Discrepancy, Reconciliation
from host.evaluation.reconcile import MEANINGS, Comparison, Kind
from host.settings import Settings
from host.stack.files import write_new
from shared_contracts.base import dump

REPORT = "reconcile.json"


async def reconcile(settings: Settings, report: Path | None, *, as_json: bool) -> Exit:
    """Compare; raises CommandError, SettingsError, NotReadyError."""
    file = None if report is None else _place(report)
    async with auditing(settings) as auditors:
        view = _view(await reconciled(auditors))
    if file is not None:
        _write(file, view)
    if as_json:
        write_json(dump(view))
    else:
        _show(view)
    if file is not None:
        say(f"report  {file}")
    if view.compared == 0:
        return Exit.NOTHING_COMPARED
    return Exit.DONE if view.agree else Exit.FAILED


def _view(found: Comparison) -> Reconciliation:
    differences = tuple(
        Discrepancy(
            kind=one.kind.value,
            id=one.id,
            tool=one.tool,
            why=one.why.value,
            meaning=MEANINGS[one.why],
            case=one.case,
            idempotency_key=one.key,
        )
        for one in found.findings
    )
    compared = found.as_compared()
    return Reconciliation(
        **dict(compared),
        at=datetime.now(UTC),
        agree=differences == (),
        under_way=found.under_way,
        differences=differences,
    )


def _place(directory: Path) -> Path:
    """Name the report's file before anything is compared; one that is there is evidence, and stays."""
    file = directory / REPORT
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = file.exists()
    except OSError as error:
        raise _unwritable(directory, error) from error
    if there:
        raise CommandError(Exit.BAD_INPUT, f"{file} is there already", "Nothing was compared. Name another directory.")
    return file


def _write(file: Path, view: Reconciliation) -> None:
    try:
        write_new(file, json.dumps(dump(view), ensure_ascii=False, indent=2) + "\n")
    except OSError as error:
        raise _unwritable(file, error) from error


def _unwritable(path: Path, error: OSError) -> CommandError:
    return CommandError(
        Exit.BAD_INPUT, f"no report can be written to {path}: {error.strerror}", "Name a directory of your own."
    )


def _show(view: Reconciliation) -> None:
    to = console()
    outside = f"{view.external} calls of tokens that were issued outside of a case"
    to.print(f"compared  {view.compared} rows of both sides; {outside}; {view.under_way} under way", soft_wrap=True)
    for kind in Kind:
        ids = getattr(view, kind.value)
        to.print(Text(f"{kind.value:<9} "), Text(str(len(ids)), style="red" if ids else "green"), sep="")
    if view.differences:
        rows = table("", "id", "tool", "case", "what is wrong")
        for one in view.differences:
            add(rows, one.kind, one.id, one.tool, one.case, one.meaning)
        to.print(rows)
        to.print(
            plain("kessai show takes an id or a case that the ledger knows; see “When both sides differ” in RUNBOOK.md")
        )
