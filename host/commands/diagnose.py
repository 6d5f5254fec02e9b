"""`kessai diagnose`: compare both sides as the auditors, then read one case and name what deviated first.

Invariant: it ends with 0 only where nothing deviates.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from host.commands.auditors import auditing
from host.commands.exits import Exit
from host.commands.lookup import found_id, rows_of, workflow_of
from host.commands.output import COLOURS, add, console, table, write_json
from host.commands.possible import ways
from host.commands.turns_sheet import said
from host.commands.workplace import reading
from host.evaluation.audit import reconciled_case
from host.evaluation.diagnose import diagnose
from host.evaluation.diagnosis import Deviation, Diagnosis, Reconciled, TurnSeen
from host.record import assemble
from host.settings import Settings, SettingsError, lacks
from shared_contracts.base import dump
from shared_contracts.printed import plain


async def diagnosed(settings: Settings, name: str, *, as_json: bool) -> Exit:
    """Diagnose; raises CommandError, SettingsError, NotReadyError."""
    if settings.dsn is None and settings.audit_host_dsn is not None:
        raise SettingsError(lacks("DSN"))  # the record is not this machine's where the ledger is not
    async with auditing(settings) as auditors, reading(settings) as pool:
        workflow_id = await found_id(pool, name)
        compared = await reconciled_case(auditors, str(workflow_id))
        row = await rows_of(pool, workflow_id)
        workflow = workflow_of(row)
        found = diagnose(assemble(row, workflow), row, workflow, compared)
        next_ones = await ways(settings, pool, workflow_id)
    if as_json:
        write_json(dump(found))
    else:
        _show(console(), found, next_ones)
    return Exit.DONE if found.first_deviation is None else Exit.FAILED


def _show(to: Console, found: Diagnosis, next_ones: list[str]) -> None:
    """Write the sheet for people: the sentence first, then what it rests on, then what to type."""
    first = found.first_deviation
    to.print(Text(plain(found.said), style="green" if first is None else "red"), soft_wrap=True)
    lines = {
        "case": f"{found.workflow_id}  {found.kind}",
        "stands": f"{found.state} ({found.reason}), {found.status.value}",
        "both sides": _agreed(found.reconciliation),
    }
    if first is not None:
        place = (f"checkpoint {first.checkpoint}" if first.checkpoint else None, first.step_id, first.code)
        lines |= {
            "at": "unknown" if first.at is None else first.at.isoformat(timespec="milliseconds"),
            "where": ", ".join(one for one in place if one is not None),
            "cause": _cause(first),
            "evidence": " ".join(first.evidence),
        }
        lines |= {} if first.turn is None else _turn(first.turn)
    for name, value in lines.items():
        style = COLOURS.get(found.state, "") if name == "stands" else ""
        to.print(Text(f"{name:<11} ", style="dim"), Text(plain(value), style=style), sep="", soft_wrap=True)
    _list(to, "what followed", found)
    if found.mended:
        to.print(
            f"\nwhat the run itself mended: {', '.join(f'{one.code} ({one.label.value})' for one in found.mended)}"
        )
    to.print()
    for line in next_ones:
        to.print(Text(plain(line)), soft_wrap=True)


def _cause(first: Deviation) -> str:
    if first.cause is None:
        return "not told by what was kept"
    known_by = {"turn": "shown by the turn of the planner", "record": "inferred from the record", None: "not told"}
    return f"{first.cause.value}, {known_by[first.cause_known_by]}"


def _turn(of: TurnSeen) -> dict[str, str]:
    """Show what the planner was sent beside what it gave."""
    sent = "; ".join(f"{one['name']} “{one['description']}”" for one in of.definitions)
    return {
        "was shown": f"{sent or 'no tool'}, definitions {of.definitions_sha256[:16]} at checkpoint {of.checkpoint}",
        "gave": said(of.said),
    }


def _list(to: Console, title: str, found: Diagnosis) -> None:
    if found.consequences:
        rows = table("#", "label", "what", title=f"\n{title}")
        for one in found.consequences:
            add(rows, one.checkpoint, None if one.label is None else one.label.value, one.said)
        to.print(rows)


def _agreed(found: Reconciled) -> str:
    parts = (("untracked", found.untracked), ("missing", found.missing), ("duplicate", found.duplicate))
    told = ", ".join(f"{len(ids)} {name}" for name, ids in parts)
    ids = [one for _, of in parts for one in of]
    return f"{told} among the {found.compared} rows of this case" + (f": {' '.join(ids)}" if ids else "")
