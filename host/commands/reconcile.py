"""`kessai reconcile`: compare as the auditors, say what differs by its id, and keep it as a file where one is wanted.

Invariant: it ends with 0 only where rows were compared and nothing differs, and never writes over a report.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rich.text import Text

from host.commands import report_file
from host.commands.auditors import auditing
from host.commands.exits import Exit
from host.commands.output import add, console, table, write_json
from host.evaluation.audit import reconciled
from host.evaluation.documents import Discrepancy, Reconciliation
from host.evaluation.reconcile import MEANINGS, Comparison, Kind
from host.settings import Settings
from shared_contracts.base import dump
from shared_contracts.printed import plain

REPORT = "reconcile.json"


async def reconcile(settings: Settings, report: Path | None, *, as_json: bool) -> Exit:
    """Compare; raises CommandError, SettingsError, NotReadyError."""
    file = None if report is None else report_file.place(report, REPORT, report_file.OURS)
    async with auditing(settings) as auditors:
        view = _view(await reconciled(auditors))
    with report_file.written(file, dump(view), report_file.OURS):
        if as_json:
            write_json(dump(view))
        else:
            _show(view)
    if view.agree:
        return Exit.DONE
    return Exit.FAILED if view.compared else Exit.NOTHING_COMPARED


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
        agree=compared.compared > 0 and not differences,
        under_way=found.under_way,
        differences=differences,
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
