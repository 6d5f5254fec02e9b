"""A whole record as tables for people: apart from the other sheets, as the one that shows every part of a case.

Nothing is computed here; what is shown is in the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from host.commands.output import COLOURS, add, command, fact, moment, own_members, table
from host.commands.turns_sheet import turns
from host.domain.draft import steps
from host.handover.sheet import is_a_persons
from host.settings import Settings
from shared_contracts.printed import money
from shared_contracts.record import Call, CallError, HeldBy, Record


def record(to: Console, settings: Settings, shown: Record, row: Mapping[str, Any]) -> None:
    """Show a whole record, and from its row what identifies the request."""
    _head(to, settings, shown, row)
    _alerts(to, shown)
    _checkpoints(to, shown)
    turns(to, shown)
    _calls(to, shown)
    _decisions(to, shown)
    _approvals(to, shown)
    _acts(to, shown)
    _draft(to, shown)
    to.print()
    for language, words in shown.customer_message:
        to.print(Text(f"customer ({language})  ", style="dim"), Text(words), sep="", soft_wrap=True)


def _head(to: Console, settings: Settings, shown: Record, row: Mapping[str, Any]) -> None:
    w = row["workflow"]
    lines = {
        "workflow": f"{shown.workflow_id}  {shown.kind} {shown.release}, version {shown.version}",
        "stands": f"{shown.state} ({shown.reason}), {shown.status.value}, control {shown.control_state}",
        "held": None if shown.held_by is None else _held(settings, shown.held_by, shown.state),
        "new case": None if shown.superseded_by is None else f"superseded by {shown.superseded_by}",
        "old case": None if shown.supersedes is None else f"supersedes {shown.supersedes}",
        "a person": shown.handover_reason,
        "closed": None if shown.review_closed_at is None else moment(shown.review_closed_at),
        "hand over": command(settings, "handover", str(shown.workflow_id)) if is_a_persons(shown) else None,
        "request": f"{w['request_id']} by {w['principal']} for {w['resource']}",
        "wrote": None if row["message_length"] is None else _wrote(row),
        "versions": " · ".join(shown.versions.told().values()),
    }
    for name, value in (*lines.items(), *own_members(shown.result)):
        if value is not None:
            style = COLOURS.get(shown.state, "") if name == "stands" else ""
            fact(to, name, value, style)


def _held(settings: Settings, scope: HeldBy, state: str) -> str:
    resume = command(settings, "resume", "--as", "NAME", "--reason", "TEXT")
    if scope == "parallel":
        part = f"{resume} --state {state} --limit 10"
        return f"by the stop that was lifted, one case at a time (parallel); it goes on once it is released: {part}"
    return f"by the stop of {scope.replace('_', ' ')} ({scope}), which is lifted by: {resume}"


def _wrote(row: Mapping[str, Any]) -> str:
    return f"{row['message_length']} characters, sha256 {row['message_sha256']}"


def _alerts(to: Console, shown: Record) -> None:
    if shown.alerts:
        made = table("alert", "at", "by", "for", "details", title="\nalerts")
        for one in shown.alerts:
            add(made, one.code, moment(one.at), one.actor, one.resource, _details(one.details))
        to.print(made)


def _details(details: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in details.items())


def _checkpoints(to: Console, shown: Record) -> None:
    made = table("#", "at", "state", "control", "event", "by", "reason", "evidence", title="\ncheckpoints")
    for point in shown.checkpoints:
        reason = "" if point.reason == point.event else point.reason
        at, place = moment(point.at), (point.to.state, point.to.control_state)
        add(made, point.seq, at, *place, point.event, point.actor, reason, " ".join(point.evidence))
    to.print(made)


def _calls(to: Console, shown: Record) -> None:
    made = table("step", "call", "tool", "version", "state", "sent", "reads", "returned", "verified", title="\ncalls")
    for call in shown.calls:
        step = call.step_id.rpartition(".")[2]
        reads = ", ".join(f"{read.purpose} {read.outcome or '…'}" for read in call.engine_reads)
        times = (moment(call.times.returned), moment(call.times.verified))
        add(
            made, step, call.call_id, call.tool, call.contract_version, call.execution_state, _sent(call), reads, *times
        )
    to.print(made)
    if shown.effects:
        made = table("effect", "attempt", "outcome", "id", "verified", "key", title="\neffects")
        for effect in shown.effects:
            outcome = effect.outcome or "none yet"
            verified = moment(effect.verified_at)
            add(made, effect.name, effect.attempt, outcome, effect.external_id, verified, effect.idempotency_key)
        to.print(made)


def _sent(call: Call) -> str:
    codes = (_error(one.error) if one.error is not None else (one.outcome or "under way") for one in call.attempts)
    return ", ".join(f"#{n} {code}" for n, code in enumerate(codes, 1))


def _error(error: CallError) -> str:
    reason = error.details.get("reason")
    return error.code if reason is None else f"{error.code} ({reason})"


def _decisions(to: Console, shown: Record) -> None:
    made = table("#", "subject", "outcome", "reason", "rules", "at", title="\ndecisions")
    for one in shown.decisions:
        add(made, one.n, one.subject, one.outcome, one.reason, one.rule_version, moment(one.at))
    to.print(made)


def _approvals(to: Console, shown: Record) -> None:
    if shown.approvals:
        made = table(
            "version", "what", "amount", "asked", "until", "decision", "by", "at", "reason", title="\napprovals"
        )
        for one in shown.approvals:
            what, amount = f"{one.action.tool} for {one.action.resource}", money(one.action.amount)
            asked = (one.version, what, amount, moment(one.requested_at))
            decided = (one.decision or "none yet", one.approver, moment(one.decided_at), one.reason)
            add(made, *asked, moment(one.expires_at), *decided)
        to.print(made)


def _acts(to: Console, shown: Record) -> None:
    """In their own words, which go no further: the handover sheet, which others read too, has none."""
    if shown.acts:
        made = table("at", "by", "run by", "act", "reason", title="\npeople")
        for one in shown.acts:
            add(made, moment(one.at), one.actor, one.os_user, one.act, one.reason)
        to.print(made)


def _draft(to: Console, shown: Record) -> None:
    if shown.draft is not None:
        made = table("#", "left to a person", title="\ndraft")
        for number, step in enumerate(steps(shown.draft), 1):
            add(made, number, step)
        to.print(made)
