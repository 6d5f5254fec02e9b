"""The reading commands' documents as tables for people. Nothing is computed here; what is shown is in the document."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console
from rich.text import Text

from host.commands.acts_sheet import acts
from host.commands.output import COLOURS, add, command, own_members, table
from host.commands.turns_sheet import turns
from host.domain.draft import steps
from host.handover.sheet import is_a_persons
from host.key_views import KeyList
from host.settings import Settings
from host.store.record import Match
from host.views import (
    ApprovalView,
    ApproverList,
    ClassCount,
    Explanation,
    Ledger,
    PlannedEffect,
    TokenList,
    WorkflowList,
)
from shared_contracts.base import dump
from shared_contracts.contract import Risk
from shared_contracts.digest import canonical_json
from shared_contracts.printed import money, plain
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
    acts(to, shown.acts)
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
        "closed": None if shown.review_closed_at is None else _at(shown.review_closed_at),
        "hand over": command(settings, "handover", str(shown.workflow_id)) if is_a_persons(shown) else None,
        "request": f"{w['request_id']} by {w['principal']} for {w['resource']}",
        "wrote": None if row["message_length"] is None else _wrote(row),
        "versions": " · ".join(shown.versions.told().values()),
    }
    for name, value in (*lines.items(), *own_members(shown.result)):
        if value is not None:
            style = COLOURS.get(shown.state, "") if name == "stands" else ""
            to.print(Text(f"{name:<9} ", style="dim"), Text(plain(value), style=style), sep="", soft_wrap=True)


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
            add(made, one.code, _at(one.at), one.actor, one.resource, _details(one.details))
        to.print(made)


def _details(details: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in details.items())


def _checkpoints(to: Console, shown: Record) -> None:
    made = table("#", "at", "state", "control", "event", "by", "reason", "evidence", title="\ncheckpoints")
    for point in shown.checkpoints:
        reason = "" if point.reason == point.event else point.reason
        place, evidence = point.to, " ".join(point.evidence)
        add(
            made, point.seq, _at(point.at), place.state, place.control_state, point.event, point.actor, reason, evidence
        )
    to.print(made)


def _calls(to: Console, shown: Record) -> None:
    made = table("step", "call", "tool", "version", "state", "sent", "reads", "returned", "verified", title="\ncalls")
    for call in shown.calls:
        step = call.step_id.rpartition(".")[2]
        reads = ", ".join(f"{read.purpose} {read.outcome or '…'}" for read in call.engine_reads)
        times = (_at(call.times.returned), _at(call.times.verified))
        add(
            made, step, call.call_id, call.tool, call.contract_version, call.execution_state, _sent(call), reads, *times
        )
    to.print(made)
    if shown.effects:
        made = table("effect", "attempt", "outcome", "id", "verified", "key", title="\neffects")
        for effect in shown.effects:
            outcome = effect.outcome or "none yet"
            verified = _at(effect.verified_at)
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
        add(made, one.n, one.subject, one.outcome, one.reason, one.rule_version, _at(one.at))
    to.print(made)


def _approvals(to: Console, shown: Record) -> None:
    if shown.approvals:
        made = table(
            "version", "what", "amount", "asked", "until", "decision", "by", "at", "reason", title="\napprovals"
        )
        for one in shown.approvals:
            what, amount = f"{one.action.tool} for {one.action.resource}", money(one.action.amount)
            asked = (one.version, what, amount, _at(one.requested_at))
            decided = (one.decision or "none yet", one.approver, _at(one.decided_at), one.reason)
            add(made, *asked, _at(one.expires_at), *decided)
        to.print(made)


def _draft(to: Console, shown: Record) -> None:
    if shown.draft is not None:
        made = table("#", "left to a person", title="\ndraft")
        for number, step in enumerate(steps(shown.draft), 1):
            add(made, number, step)
        to.print(made)


def workflows(to: Console, page: WorkflowList) -> None:
    """Show a list."""
    queue = any(row.effects is not None for row in page.workflows)
    held = any(row.held_by is not None for row in page.workflows)
    closed = any(row.review_closed_at is not None for row in page.workflows)
    heads = ("status", *(("held by stop",) if held else ()), "reason", "class" if queue else "", "age")
    made = table("workflow", "kind", "for", "state", *heads)
    if closed:
        made.add_column("review closed", overflow="fold")
    if queue:
        made.add_column("effects", overflow="fold")
        made.add_column("alerts", overflow="fold")
    for row in page.workflows:
        effects = [f"{e.name}: {e.external_id or e.outcome or 'no outcome'}" for e in row.effects or ()]
        stands = (row.status.value, *((row.held_by,) if held else ()), row.reason, row.handover_reason)
        cells = (row.workflow_id, row.kind, row.resource, row.state, *stands)
        more = (
            *((_at(row.review_closed_at),) if closed else ()),
            *((", ".join(effects), ", ".join(row.alerts or ())) if queue else ()),
        )
        add(made, *cells, _age(row.age_seconds), *more)
    if page.classes:
        to.print(Text("most frequent  ", style="dim"), Text(_classes(page.classes)), sep="", soft_wrap=True)
    to.print(made if page.workflows else Text("none", style="dim"))
    if held:
        words = "an operator lifts the stop and releases what it holds by parts (parallel: it is lifted): kessai resume"
        to.print(words, style="dim", soft_wrap=True)
    if page.next_before is not None:
        to.print(f"more: kessai list --before {page.next_before}", style="dim", soft_wrap=True)


def _classes(classes: tuple[ClassCount, ...]) -> str:
    """Write the classes in one line, each with its reasons."""
    reasons = (", ".join(f"{one.reason} {one.cases}" for one in of.reasons) for of in classes)
    return "; ".join(f"{of.handover_reason} {of.cases} ({said})" for of, said in zip(classes, reasons, strict=True))


def explanation(to: Console, answers: Explanation) -> None:
    """Show questions and answers."""
    for answer in (*answers.closing, *answers.incident, *answers.trace):
        to.print(Text(answer.question, style="bold"))
        to.print(Text(f"  {plain(answer.answer)}", style="green" if answer.answer.startswith("yes") else ""))
        for detail in answer.details:
            to.print(Text(f"    {plain(detail)}", style="dim"), soft_wrap=True)


def ledger(to: Console, page: Ledger) -> None:
    """Show calls."""
    made = table("step", "tool", "subject", "state", "error", "sent", "latency", "effect", "id", "proposed")
    for call in page.calls:
        latency = "" if call.latency_ms is None else f"{call.latency_ms:.0f} ms"
        error = call.error if call.execution_state != "verified" else None
        cells = (call.step_id, call.tool, call.subject, call.execution_state, error, call.attempts, latency)
        add(made, *cells, call.effect_outcome, call.external_id, _at(call.proposed_at))
    to.print(made if page.calls else Text("none", style="dim"))


def _at(at: datetime | None) -> str:
    return "" if at is None else at.astimezone().strftime("%m-%d %H:%M:%S.%f")[:-3]


def _age(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))


def matches(to: Console, found: list[Match], *, more: bool) -> None:
    """Show which workflows share a name."""
    made = table("workflow", "state", "step_id", "tool")
    for one in found:
        add(made, one.workflow_id, one.state, one.step_id, one.tool)
    if more:
        add(made, "…")
    to.print(made)


def tokens(to: Console, page: TokenList) -> None:
    """Show what tokens of outside hosts were issued for."""
    made = table("token id", "task", "principal", "customer", "good for", "order", "issued", "by", "until")
    for one in page.tokens:
        until = f"{_at(one.expires_at)}{' (over)' if one.expired else ''}"
        good_for = " ".join(one.scopes) if one.tool is None else one.tool
        cells = (one.jti, one.task_id, one.principal, one.customer, good_for, one.resource)
        add(made, *cells, _at(one.issued_at), one.issued_by, until)
    to.print(made if page.tokens else Text("none", style="dim"))


def keys(to: Console, page: KeyList) -> None:
    """Show which keys verify tokens, and until when."""
    made = table("key", "issuer", "algorithm", "state", "until")
    for one in page.keys:
        add(made, one.kid, one.issuer, one.algorithm, one.state, None if one.ends_at is None else _at(one.ends_at))
    to.print(made if page.keys else Text("none", style="dim"))


def approvers(to: Console, page: ApproverList) -> None:
    """Show who may decide, and whose key counts."""
    made = table("name", "tenant", "up to", "key", "state")
    for one in page.approvers:
        limit = "no right to decide" if one.limit is None else money(one.limit)
        if one.kid is None:
            state = f"no key: kessai approver add {one.name}"
        elif one.revoked_at is not None:
            state = f"revoked by {one.revoked_by} at {_at(one.revoked_at)}"
        else:
            state = f"trusted by {one.added_by} at {_at(one.added_at)}"
        add(made, one.name, one.tenant_id, limit, one.kid, state)
    to.print(made if page.approvers else Text("none", style="dim"))


def approval(to: Console, seen: ApprovalView) -> None:
    """Show what an approver decides on."""
    action = seen.action
    arguments = canonical_json(dump(action)["arguments"]).decode()
    lines = {
        "workflow": f"{seen.workflow_id}, version {seen.version}",
        "order": f"{action.resource} of {action.tenant_id}, order version {action.order_version}",
        "rules": action.policy_version,
        "amount": money(action.amount),
        "goes to": action.destination_ref,
        "requester": f"{seen.requester}, request {seen.request_id}",
        "call": f"{action.tool} (contract {action.contract_version}) {arguments}",
        "effects": ", then ".join(effect.tool for effect in seen.effects),
        "asked": seen.requested_at.astimezone().isoformat(timespec="seconds"),
        "until": seen.expires_at.astimezone().isoformat(timespec="seconds"),
        "digest": seen.action_digest,
    }
    for name, value in lines.items():
        line(to, name, value)
        for effect in seen.effects if name == "effects" else ():
            line(to, "", f"{effect.tool}: {effect.summary} {_undone(effect)}")


def _undone(effect: PlannedEffect) -> str:
    if effect.undone_with is None:
        return "It cannot be undone."
    how = "Can be cancelled" if effect.risk is Risk.REVERSIBLE_WRITE else "Cannot be taken back; it can be corrected"
    conditions = f", while {' and '.join(effect.undone_if)}" if effect.undone_if else ""
    return f"{how} with {effect.undone_with} until {effect.undone_within_hours} h after it{conditions}."


def line(to: Console, name: str, value: str) -> None:
    """Show one fact under its name."""
    to.print(Text(f"{name:<9} ", style="dim"), Text(plain(value)), sep="", soft_wrap=True)
