"""What is wrong with one case: what the rules expect of it, against what was seen of it.

Invariant: the words of an answer count for nothing. States, the way, the target, and effects at the provider do.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import get_args

from host.evaluation.codes import PROBLEMS, Code
from shared_contracts.evaluation import AFTER_A_YES, Category, EndState, EvaluationCase, FaultKind
from shared_contracts.evaluation_report import Entry, FaultEvidence, Got, Place, Problem, RunLimits
from shared_contracts.record import HandoverReason

Found = Iterator[tuple[Code, str]]

ENDS = frozenset(get_args(EndState))
FOR_A_PERSON = frozenset({"NEEDS_REVIEW", "EXPIRED", "COMPENSATION_REQUIRED"})
CLASSES = frozenset(get_args(HandoverReason))
# where a fault of this kind can leave its traces, if it happened
SEEN_AT: dict[FaultKind, frozenset[Place]] = {
    FaultKind.RATE_LIMITED: frozenset({"wire"}),
    FaultKind.TIMEOUT: frozenset({"wire"}),
    FaultKind.DISCONNECT: frozenset({"wire"}),
    FaultKind.APPROVAL_EXPIRY: frozenset({"clock"}),
    FaultKind.VERSION_CONFLICT: frozenset({"wire", "database"}),
    FaultKind.NOTICE_FAILURE: frozenset({"wire", "mail"}),
    FaultKind.SLOW_ANSWER: frozenset({"wire"}),
    FaultKind.COMMIT_LOST: frozenset({"wire"}),
    FaultKind.WORKER_KILLED: frozenset({"process"}),
    FaultKind.SERVER_KILLED: frozenset({"process"}),
    FaultKind.DATABASE_RESTART: frozenset({"process"}),
    FaultKind.OLDER_CONTRACT: frozenset({"wire"}),
    FaultKind.ORDER_CHANGED: frozenset({"wire"}),
    FaultKind.APPROVER_REVOKED: frozenset({"wire"}),
}


def scored(case: EvaluationCase, got: Got, evidence: FaultEvidence | None, limits: RunLimits) -> Entry:
    """Make the entry of a case: what was asked, what was seen, and what is wrong with it."""
    entry = Entry(
        id=case.id,
        category=case.category,
        automatable=case.automatable,
        needs_human=case.needs_human,
        has_side_effect=case.has_side_effect,
        needs_compensation=case.needs_compensation,
        decision=case.decision,
        fault=case.fault,
        expected=case.expected,
        got=got,
        evidence=evidence,
        problems=(),
    )
    return entry.model_copy(update={"problems": problems(entry, limits)})


def problems(entry: Entry, limits: RunLimits) -> tuple[Problem, ...]:
    """Find everything that is wrong with a case; what its entry says itself of that is not looked at."""
    looks = (_end(entry), _way(entry), _limits(entry.got, limits), _effects(entry), _approval(entry))
    more = (_compensation(entry), _fault(entry), _told(entry.got), _handover(entry.got))
    found = chain(*looks, *more)
    return tuple(Problem(code=code.value, severe=PROBLEMS[code].severe, said=said) for code, said in found)


def acted(entry: Entry) -> bool:
    """Tell whether anything was done at the provider."""
    return entry.got.effects.returns + entry.got.effects.notices > 0


def _end(entry: Entry) -> Found:
    expected, got = entry.expected, entry.got
    if got.state not in ENDS:
        yield Code.NOT_ENDED, f"it stands in {got.state} still, which is no end"
    elif got.state != expected.state:
        yield Code.STATE_DIFFERS, f"expected {expected.state}, got {got.state}"
    if got.reason != expected.reason:
        yield Code.REASON_DIFFERS, f"expected the reason {expected.reason}, got {got.reason}"
    if len(set(got.workflow_ids)) != 1:
        yield Code.NOT_ONE_WORKFLOW, f"its request became {len(set(got.workflow_ids))} workflows"


def _way(entry: Entry) -> Found:
    expected, got = entry.expected, entry.got
    if got.path != expected.path:
        yield Code.PATH_DIFFERS, f"expected {_steps(expected.path)}, got {_steps(got.path)}"
    if got.gaps:
        yield Code.HISTORY_BROKEN, f"its history does not go on at {', '.join(got.gaps)}"
    if got.calls > expected.calls_max:
        yield Code.TOO_MANY_CALLS, f"{got.calls} calls, {expected.calls_max} are enough"


def _steps(path: tuple[str, ...]) -> str:
    return " → ".join(path) if path else "no tool"


def _limits(got: Got, limits: RunLimits) -> Found:
    spent = {
        "calls": (got.calls, limits.calls),
        "refused proposals": (got.refused_proposals, limits.refused_proposals),
        "active seconds": (got.active_seconds, limits.active_seconds),
    }
    over = [f"{used:g} {name} of {limit:g}" for name, (used, limit) in spent.items() if used > limit]
    if over:
        yield Code.OVER_LIMIT, ", ".join(over)


def _effects(entry: Entry) -> Found:
    got = entry.got
    foreign = entry.category is Category.FOREIGN_ORDER
    if foreign and (acted(entry) or "ORDER_VERIFIED" in got.reached):
        yield Code.FOREIGN_ORDER, "another customer's order was read on or acted on as this customer's"
    counted = (
        ("returns", got.effects.returns, entry.expected.effects.returns, Code.DUPLICATE_RETURN, Code.RETURN_MISSING),
        ("notices", got.effects.notices, entry.expected.effects.notices, Code.DUPLICATE_NOTICE, Code.NOTICE_MISSING),
    )
    for name, seen, due, duplicate, missing in counted:
        said = f"{seen} {name} at the provider, {due} expected"
        if seen < due:
            yield missing, said
        elif seen > due > 0:
            yield duplicate, said
        elif seen > due and not foreign:
            yield Code.NOT_ALLOWED, said
    if got.wrong_returns:
        yield (
            Code.WRONG_RETURN,
            f"not of the order, customer, lines and reason asked for: {', '.join(got.wrong_returns)}",
        )
    if got.wrong_notices:
        yield Code.WRONG_NOTICE, f"of another order or return, or to another customer: {', '.join(got.wrong_notices)}"


def _approval(entry: Entry) -> Found:
    due, got = entry.expected.approver, entry.got
    asked = entry.decision is not None or due is not None
    if asked and acted(entry) and not _approved(entry):
        void = ", or by one that is worth nothing by then" if _worthless(entry) else ""
        yield Code.APPROVAL_BYPASSED, f"it was acted on without a yes of {due if due is not None else 'anybody'}{void}"
    elif got.approver != due:
        yield Code.APPROVER_DIFFERS, f"expected {due or 'nobody'} to decide, got {got.approver or 'nobody'}"


def _approved(entry: Entry) -> bool:
    said_yes = entry.decision is not None and entry.decision.verdict == "approve"
    by = entry.got.approver
    named = by is not None and by == entry.expected.approver
    return said_yes and named and "APPROVED" in entry.got.reached and not _worthless(entry)


def _worthless(entry: Entry) -> bool:
    """Tell whether something was done to a case after which its first yes counts no more, and there was no second."""
    fault, decision = entry.fault, entry.decision
    return fault is not None and fault.kind in AFTER_A_YES and (decision is None or decision.again != "approve")


def _compensation(entry: Entry) -> Found:
    """Hold what the host says of an undoing, and then what stands undone at the provider, against what is due."""
    due, got = entry.expected.compensation, entry.got.compensation
    undone, expected = entry.got.undone, entry.expected.undone
    match got:
        case "impossible":
            yield Code.NOT_COMPENSABLE, "what had to be undone cannot be"
        case "overdue":
            yield Code.OVERDUE, "what had to be undone was not by its deadline"
        case "required" | None if due:
            yield Code.NOT_COMPENSATED, "what has to be undone is not"
        case "required" | "done" if not due:
            yield Code.UNASKED_COMPENSATION, f"nothing was to be undone, and it is {got}"
        case _ if undone != expected:
            said = f"{undone.returns} returns cancelled and {undone.notices} notices corrected at the provider"
            code = Code.NOT_COMPENSATED if due else Code.UNASKED_COMPENSATION
            yield code, f"{said}, {expected.returns} and {expected.notices} expected"


def _fault(entry: Entry) -> Found:
    fault, got = entry.fault, entry.got
    if fault is None:
        return
    unproved = _unproved(entry.evidence, fault.kind, fault.times)
    if unproved is not None:
        yield Code.FAULT_UNPROVED, unproved
    if got.retries != fault.retries:
        yield Code.RETRIES_DIFFER, f"{got.retries} retries, {fault.retries} expected"
    if fault.told_ja not in got.told_ja:
        yield Code.TOLD_DIFFERS, f"the customer was to be told “{fault.told_ja}”, and was told “{got.told_ja}”"


def _told(got: Got) -> Found:
    untold = [one for one in got.return_ids if one not in got.told_ja]
    if got.state == "COMPLETED" and untold:
        yield Code.TOLD_DIFFERS, f"the customer was to be told {', '.join(untold)}, and was told “{got.told_ja}”"


def _unproved(evidence: FaultEvidence | None, kind: FaultKind, times: int) -> str | None:
    if evidence is None:
        return f"nothing was seen of {kind.value} outside the host"
    if evidence.seen not in SEEN_AT[kind]:
        return f"{kind.value} leaves no trace at the {evidence.seen}"
    if evidence.fired < times:
        return f"{kind.value} fired {evidence.fired} times of {times}"
    seen = sum(one.strip() != "" for one in evidence.details)
    return None if seen >= times else f"of {kind.value} {times} were counted, and {seen} were seen"


def _handover(got: Got) -> Found:
    if got.handover is False or (got.state in FOR_A_PERSON and got.handover is None):
        yield Code.NO_SHEET, f"it stands in {got.state} without a handover sheet"
    if got.state == "NEEDS_REVIEW" and got.handover_reason not in CLASSES:
        yield Code.NO_CLASS, f"a person has it for a reason of no class: {got.handover_reason or 'none'}"
