"""A handover sheet laid out as titled sections, before it is written in any markup. Pure; nothing is found out here."""

from __future__ import annotations

from collections.abc import Iterable

from host.handover.blocks import Cell, Note, Pairs, Section, Table, Verbatim, at
from shared_contracts.digest import canonical_json
from shared_contracts.handover import Fault, HandedAttempt, HandedCall, HandedEffect, HandedRead, Handover, OtherCase
from shared_contracts.printed import money


def sections(h: Handover) -> tuple[Section, ...]:
    """Lay the sheet out: first what a person needs to act, then what it rests on."""
    return (
        Section("Why", (Note(h.why.sentence), Note(h.why.advice), _why(h))),
        Section("What you can do now", (Pairs(tuple((Verbatim(p.command), p.does) for p in h.possible)),)),
        Section("Where it stands", (_standing(h),)),
        Section("How far it reaches", _impact(h)),
        *_draft(h),
        Section("Effects", (_agreement(h), _effects(h))),
        Section("Compensation", (Pairs((("state", h.compensation.state),)), _compensation(h))),
        Section("Calls", (_calls(h), _requests(h))),
        Section("Refused proposals", (_refused(h),)),
        Section("Limits", (_spent(h),)),
        Section("Approvals", (_approvals(h),)),
        Section("Stops", (_engaged(h), _operations(h))),
        Section("What people did", (_acts(h),)),
        Section("Alerts", (_alerts(h),)),
    )


def _some(text: str | None) -> Cell:
    return "-" if text is None else Verbatim(text)


def _all(texts: Iterable[str]) -> Cell:
    joined = ", ".join(texts)
    return Verbatim(joined) if joined else "-"


def _why(h: Handover) -> Pairs:
    return Pairs((("reason", h.why.code), ("class", h.why.handover_reason or "-"), ("since", at(h.since))))


def _standing(h: Handover) -> Pairs:
    closed: tuple[tuple[Cell, Cell], ...] = (("review closed", at(h.review_closed_at)),)
    return Pairs(
        (
            ("workflow", Verbatim(str(h.workflow_id))),
            ("kind, release", f"{h.kind}, {h.release}"),
            ("state", f"{h.state}, control {h.control_state}, version {h.version}"),
            ("answers for it", h.owner),
            ("request", Verbatim(h.request_id)),
            ("supersedes", _some(None if h.supersedes is None else str(h.supersedes))),
            *_asked_anew(h),
            ("tenant", Verbatim(h.tenant_id)),
            ("customer", Verbatim(h.customer)),
            ("about", Verbatim(h.resource)),
            *((name, Verbatim(version)) for name, version in h.versions.told().items()),
            ("taken in", at(h.accepted_at)),
            *(closed if h.review_closed_at is not None else ()),
            ("sheet made", at(h.made_at)),
        )
    )


def _asked_anew(h: Handover) -> tuple[tuple[Cell, Cell], ...]:
    return () if h.superseded_by is None else (("superseded by", Verbatim(str(h.superseded_by))),)


def _impact(h: Handover) -> tuple[Pairs | Table | Note, ...]:
    outside = tuple(
        (one.name, one.verification, one.id_kind, _some(one.external_id), Verbatim(one.step_id))
        for one in h.impact.outside
    )
    more = h.impact.other_cases_in_all - len(h.impact.other_cases)
    return (
        Pairs((("units", _all(h.impact.units)),)),
        Table(("effect", "verification", "kind of id", "id", "step"), outside, "Nothing stands outside."),
        Table(_OTHERS, tuple(map(_other, h.impact.other_cases)), "No other open case is about the same."),
        *((Note(f"{more} more are not listed."),) if more else ()),
    )


_OTHERS = ("other open case", "state", "reason", "same lines", "bearing")


def _other(one: OtherCase) -> tuple[Cell, ...]:
    said = {"held back by this case": one.held_back_by_this, "holds this case back": one.holds_this_back}
    bearing = ", ".join(words for words, true in said.items() if true)
    return (Verbatim(str(one.workflow_id)), one.state, one.reason, _all(one.units), bearing if bearing else "-")


def _draft(h: Handover) -> tuple[Section, ...]:
    if h.draft is None:
        return ()
    rows = tuple(
        (
            call.tool,
            _all(f"{name}={canonical_json(value).decode()}" for name, value in call.arguments.items()),
            _all(call.open_arguments),
            "yes" if call.needs_approval else "no",
        )
        for call in h.draft.calls
    )
    about = Note("The rules had allowed this, and nobody has done it.")
    return (
        Section(
            "What is left to do", (about, Table(("update", "arguments", "still open", "needs a yes"), rows, "Nothing."))
        ),
    )


def _agreement(h: Handover) -> Table:
    rows = tuple((one.step_id.rpartition(".")[2], one.what) for one in h.disagreements)
    none = "The history of calls and the ledger of effects agree at every step."
    return Table(("step", "here calls and effects do not agree: trust neither, ask the tool server"), rows, none)


def _effects(h: Handover) -> Table:
    head = (
        "step",
        "effect",
        "attempt",
        "outcome",
        "kind of id",
        "id",
        "sent",
        "known",
        "verified",
        "differs",
        "undone by",
        "key",
    )
    return Table(head, tuple(map(_effect, h.effects)), "No effect was begun.")


def _effect(one: HandedEffect) -> tuple[Cell, ...]:
    undone = _some(one.undone_by)
    times = (at(one.opened_at), at(one.closed_at), "not verified" if one.verified_at is None else at(one.verified_at))
    known = (one.outcome or "nobody knows", one.id_kind, _some(one.external_id))
    return (
        Verbatim(one.step_id),
        one.name,
        str(one.attempt),
        *known,
        *times,
        _all(one.mismatch),
        undone,
        Verbatim(one.idempotency_key),
    )


def _compensation(h: Handover) -> Table:
    head = ("#", "state", "ordered by", "at", "due", "ended", "let through by", "at", "steps")
    rows = tuple(
        (
            str(one.n), one.state, Verbatim(one.ordered_by), at(one.ordered_at), at(one.due_at), at(one.ended_at),
            _some(one.released_by), at(one.released_at), _all(one.steps),
        )
        for one in h.compensation.orders
    )  # fmt: skip
    return Table(head, rows, "Nothing was ordered to be undone.")


def _calls(h: Handover) -> Table:
    head = ("step", "call", "tool", "contract", "state", "error", "undoes", "proposed", "verified")
    rows = tuple(
        (
            Verbatim(call.step_id), Verbatim(call.call_id), call.tool, call.contract_version, call.execution_state,
            _fault(call.error), _some(call.undoes), at(call.times.proposed), at(call.times.verified),
        )
        for call in h.calls
    )  # fmt: skip
    return Table(head, rows, "Nothing was called.")


def _requests(h: Handover) -> Table:
    """List every request that left: a call's sends, then the engine's own reads for it."""
    rows = tuple(row for call in h.calls for row in _sent(call))
    return Table(("step", "request", "tool", "at", "outcome", "error"), rows, "No request left the host.")


def _sent(call: HandedCall) -> tuple[tuple[Cell, ...], ...]:
    step = call.step_id.rpartition(".")[2]
    return (
        *((step, *_request("send" if one.n == 1 else f"retry {one.n - 1}", call.tool, one)) for one in call.attempts),
        *((step, *_request(one.purpose, one.tool, one)) for one in call.engine_reads),
    )


def _request(what: str, tool: str, one: HandedAttempt | HandedRead) -> tuple[Cell, ...]:
    return (what, tool, at(one.at), one.outcome or "under way", _fault(one.error))


def _fault(error: Fault | None) -> str:
    if error is None:
        return "-"
    return f"{error.code} ({error.category}{'' if error.reason is None else f', {error.reason}'})"


def _refused(h: Handover) -> Table:
    rows = tuple((str(one.n), one.code, one.tool or "-", _some(one.call_id), at(one.at)) for one in h.refused)
    return Table(("#", "code", "tool", "call", "at"), rows, "No proposal was refused.")


def _spent(h: Handover) -> Table:
    rows = tuple((one.what, _number(one.used), "-" if one.limit is None else _number(one.limit)) for one in h.spent)
    return Table(("what", "used", "limit"), rows, "Nothing was used.")


def _number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _approvals(h: Handover) -> Table:
    head = ("version", "tool", "amount", "asked", "until", "decision", "by", "at", "looked, s", "event", "digest")
    rows = tuple(
        (
            str(one.version), one.tool, money(one.amount), at(one.requested_at), at(one.expires_at),
            one.decision or "none", _some(one.approver), at(one.decided_at),
            "-" if one.approval_seconds is None else _number(one.approval_seconds), _some(one.event_id),
            Verbatim(one.action_digest),
        )
        for one in h.approvals
    )  # fmt: skip
    return Table(head, rows, "Nobody was asked.")


def _engaged(h: Handover) -> Table:
    rows = tuple((one.scope, _some(one.actor), at(one.at), _some(one.reason)) for one in h.stops.engaged)
    return Table(("engaged now", "by", "since", "reason"), rows, "No stop is engaged.")


def _operations(h: Handover) -> Table:
    head = ("#", "act", "scope", "by", "at", "cause", "found in this case", "reason")
    rows = tuple(
        (
            str(one.stop_id), one.act, _all(one.scopes), Verbatim(one.actor), at(one.at), one.cause,
            "yes" if one.of_this_case else "no", Verbatim(one.reason),
        )
        for one in h.stops.operations
    )  # fmt: skip
    return Table(head, rows, "Nobody has stopped or released anything in its time.")


def _acts(h: Handover) -> Table:
    rows = tuple((at(one.at), Verbatim(one.actor), one.action, one.result) for one in h.acts)
    return Table(("at", "by", "act", "result"), rows, "No person has acted on it.")


def _alerts(h: Handover) -> Table:
    return Table(("alert", "at"), tuple((one.code, at(one.at)) for one in h.alerts), "None.")
