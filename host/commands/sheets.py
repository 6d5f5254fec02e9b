"""The reading commands' documents as tables for people. Nothing is computed here; what is shown is in the document."""

from __future__ import annotations

from datetime import timedelta

from rich.console import Console
from rich.text import Text

from host.commands.output import add, fact, moment, table
from host.key_views import KeyList
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
            *((moment(row.review_closed_at),) if closed else ()),
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
        add(made, *cells, call.effect_outcome, call.external_id, moment(call.proposed_at))
    to.print(made if page.calls else Text("none", style="dim"))


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
        until = f"{moment(one.expires_at)}{' (over)' if one.expired else ''}"
        good_for = " ".join(one.scopes) if one.tool is None else one.tool
        cells = (one.jti, one.task_id, one.principal, one.customer, good_for, one.resource)
        add(made, *cells, moment(one.issued_at), one.issued_by, until)
    to.print(made if page.tokens else Text("none", style="dim"))


def keys(to: Console, page: KeyList) -> None:
    """Show which keys verify tokens, and until when."""
    made = table("key", "issuer", "algorithm", "state", "until")
    for one in page.keys:
        add(made, one.kid, one.issuer, one.algorithm, one.state, None if one.ends_at is None else moment(one.ends_at))
    to.print(made if page.keys else Text("none", style="dim"))


def approvers(to: Console, page: ApproverList) -> None:
    """Show who may decide, and whose key counts."""
    made = table("name", "tenant", "up to", "key", "state")
    for one in page.approvers:
        limit = "no right to decide" if one.limit is None else money(one.limit)
        if one.kid is None:
            state = f"no key: kessai approver add {one.name}"
        elif one.revoked_at is not None:
            state = f"revoked by {one.revoked_by} at {moment(one.revoked_at)}"
        else:
            state = f"trusted by {one.added_by} at {moment(one.added_at)}"
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
        fact(to, name, value)
        for effect in seen.effects if name == "effects" else ():
            fact(to, "", f"{effect.tool}: {effect.summary} {_undone(effect)}")


def _undone(effect: PlannedEffect) -> str:
    if effect.undone_with is None:
        return "It cannot be undone."
    how = "Can be cancelled" if effect.risk is Risk.REVERSIBLE_WRITE else "Cannot be taken back; it can be corrected"
    conditions = f", while {' and '.join(effect.undone_if)}" if effect.undone_if else ""
    return f"{how} with {effect.undone_with} until {effect.undone_within_hours} h after it{conditions}."
