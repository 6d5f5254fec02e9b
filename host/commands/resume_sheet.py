"""What `resume` prints for a person: what was reconciled, why the stop stays or what goes on, and what to do next."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from host.commands.output import add, command, console, fact, table
from host.commands.resume_next import next_part
from host.commands.stop import IDS_SHOWN
from host.settings import Settings
from host.stop_views import EffectCounts, OutsideWrite, ReconciliationView, ResumeView, StoppedAgain
from shared_contracts.printed import plain

_COUNTS = {
    "verified": "verified",
    "made_unverified": "made, not verified",
    "rejected": "rejected",
    "absent": "proved absent",
    "unknown": "unknown",
    "accepted": "unknown, accepted",
}


def show(settings: Settings, view: ResumeView) -> None:
    """Show it all."""
    to = console()
    if view.reconciliation is not None:
        _reconciliation(to, settings, view.reconciliation)
    for stop in view.again:
        _stopped_again(to, settings, stop)
    asked_to_lift = view.reconciliation is not None and not view.lifted
    for why in view.refused:
        to.print(Text(f"NOT lifted: {plain(why)}" if asked_to_lift else plain(why), style="red"), soft_wrap=True)
    if view.refused and asked_to_lift:
        to.print(f"The stop stays. Settle what is named above, then again: {view.next}", style="dim", soft_wrap=True)
        return
    if view.lifted:
        to.print(Text("lifted: new cases are taken in, and one case is driven at a time", style="green"))
    if view.released:
        to.print(f"released {len(view.released)}: {_ids([str(one) for one in view.released])}", soft_wrap=True)
    _held(to, settings, view)


def _reconciliation(to: Console, settings: Settings, found: ReconciliationView) -> None:
    title = f"reconciliation {found.reconciliation_id}: cases, and their effects by what is known"
    made = table("state", "cases", *_COUNTS.values(), title=title)
    total, cases = dict.fromkeys(_COUNTS, 0), 0
    for row in found.states:
        counts = _counts(row.effects)
        add(made, row.state, row.cases, *counts.values())
        total, cases = {name: total[name] + n for name, n in counts.items()}, cases + row.cases
    add(made, "all", cases, *total.values())
    to.print(made)
    for one in found.unsettled:
        look = command(settings, "review", str(one.workflow_id), "adopt", "--as", "NAME")
        fact(to, "unsettled", f"{one.workflow_id} {one.state}: {one.effect}; look at it: {look}")
    for accepted in found.accepted:
        fact(to, "accepted", f"{accepted.workflow_id}: {accepted.effect} unknown, accepted by {accepted.by or '?'}")
    for undo in found.to_undo:
        through = command(settings, "compensate", str(undo.workflow_id), "--as", "NAME")
        by = (
            f"let it through: {through}"
            if undo.released_by is None
            else f"let through by {undo.released_by}, under way"
        )
        fact(to, "to undo", f"{undo.workflow_id} until {undo.due_at.astimezone():%Y-%m-%d %H:%M}; {by}")
    for write in found.outside:
        _outside(to, write)


def _outside(to: Console, one: OutsideWrite) -> None:
    until = f"{one.expires_at.astimezone():%Y-%m-%d %H:%M:%S}"
    said = f"{one.jti}: {one.tool} on {one.resource} until {until}, issued by {one.issued_by}"
    fact(to, "outside", f"{said}; nothing here can look it up, the tool server's log has its calls under this id")


def _stopped_again(to: Console, settings: Settings, one: StoppedAgain) -> None:
    said = f"{one.cause}, by {one.actor}: {one.reason}"
    if one.workflow_id is not None:
        case = str(one.workflow_id)
        undone = command(settings, "review", case, "compensate", "--as", "NAME", "--reason", "TEXT")
        said = f"{case}, {said}; read {command(settings, 'handover', case)}; have it undone: {undone}"
    fact(to, "stopped", said)


def _counts(effects: EffectCounts) -> dict[str, int]:
    return {name: getattr(effects, name) for name in _COUNTS}


def _held(to: Console, settings: Settings, view: ResumeView) -> None:
    for one in view.held:
        fact(to, "held", f"{one.cases} in {one.state}; the next part: {next_part(settings, one.state)}")
    if not view.held and view.one_at_a_time:
        fact(to, "held", f"none; when all goes well, several at a time again: {view.next}")
    if not view.one_at_a_time:
        to.print("several cases are driven at a time again")


def _ids(names: list[str]) -> str:
    more = len(names) - IDS_SHOWN
    return " ".join(names[:IDS_SHOWN]) + (f" … and {more} more" if more > 0 else "")
